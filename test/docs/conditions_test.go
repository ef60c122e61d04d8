// Package docs checks that the pages in docs/ say what is true of the source.
package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/hack/docs"
)

const (
	root          = "../.."
	conditions    = root + "/api/v1alpha1/conditions.go"
	conditionPage = root + "/docs/conditions.md"
)

// readVocabulary returns the conditions, reasons and Events of the API.
func readVocabulary(t *testing.T) []docs.Group {
	t.Helper()
	groups, err := docs.ReadVocabulary(conditions)
	require.NoError(t, err)
	require.NotEmpty(t, groups)
	return groups
}

// identifiers returns every name in the Go files below folders of the repository for which keep is true.
func identifiers(t *testing.T, keep func(path string) bool, folders ...string) map[string]bool {
	t.Helper()
	for i, folder := range folders {
		folders[i] = filepath.Join(root, folder)
	}
	files, err := docs.GoFiles(keep, folders...)
	require.NoError(t, err)
	return docs.Names(files)
}

func TestConditionPageIsUpToDate(t *testing.T) {
	page, err := os.ReadFile(conditionPage)
	require.NoError(t, err)
	require.Equal(t, docs.Page(readVocabulary(t)), string(page), "run: make generate")
}

// What users can see in status and Events is explained, the operator says it, and a test shows when.
func TestVocabularyIsDocumentedUsedAndTested(t *testing.T) {
	product := func(path string) bool { return !docs.IsTest(path) }
	used := identifiers(t, product, "cmd", "controllers", "internal")
	tested := identifiers(t, docs.IsTest, "cmd", "controllers", "internal", "test/integration", "test/clusterwide", "test/e2e")
	require.NotEmpty(t, used)
	require.NotEmpty(t, tested)
	for _, group := range readVocabulary(t) {
		for _, term := range group.Terms {
			explanation := strings.TrimLeft(strings.TrimPrefix(term.Meaning, term.Name), ": ")
			assert.NotEmpty(t, explanation, "%s: write a comment that says what it means", term.Name)
			assert.True(t, used[term.Name], "%s is used nowhere: remove it", term.Name)
			assert.True(t, tested[term.Name], "no test shows that %s can be reached", term.Name)
		}
	}
}

func TestPageShowsComments(t *testing.T) {
	source := filepath.Join(t.TempDir(), "conditions.go")
	require.NoError(t, os.WriteFile(source, []byte(`package v1

// Condition types of a thing.
const (
	// ConditionReady sums up
	// the others.
	ConditionReady = "Ready"
)

// Reasons | of ConditionReady.
const (
	// ReasonNameTaken: name <id> is taken, see spec.suspend.
	ReasonNameTaken = "NameTaken"

	// ReasonIdle: spec.suspend is true.
	ReasonIdle = "Idle"
)

// EventMade tells of a thing.
const EventMade = "Made"
`), 0o600))
	groups, err := docs.ReadVocabulary(source)
	require.NoError(t, err)
	page := docs.Page(groups)
	for _, want := range []string{
		"\n## Conditions\n\nCondition types of a thing.\n\n| type | meaning |\n|---|---|\n| `Ready` | `Ready` sums up the others. |\n",
		"\n## Reasons\n\nReasons \\| of `Ready`.\n\n| reason | meaning |\n|---|---|\n",
		"| `NameTaken` | Name \\<id> is taken, see `spec.suspend`. |\n",
		"| `Idle` | `spec.suspend` is true. |\n",
		"\n## Events\n\n| reason | meaning |\n|---|---|\n| `Made` | `Made` tells of a thing. |\n",
	} {
		assert.Contains(t, page, want)
	}
}

// A constant that the page cannot show is refused with what to do.
func TestVocabularyRefuses(t *testing.T) {
	for name, declaration := range map[string]string{
		"computed":  `const ReasonIdle = "I" + "dle"`,
		"number":    `const ReasonIdle = 7`,
		"two names": `const ReasonIdle, ReasonBusy = "Idle", "Busy"`,
	} {
		t.Run(name, func(t *testing.T) {
			source := filepath.Join(t.TempDir(), "conditions.go")
			require.NoError(t, os.WriteFile(source, []byte("package v1\n\n"+declaration+"\n"), 0o600))
			_, err := docs.ReadVocabulary(source)
			require.ErrorContains(t, err, "ReasonIdle: write")
		})
	}
}
