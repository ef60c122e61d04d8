//go:build integration

package integration

import (
	"cmp"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/hack/docs"
)

const securityPage = "../../docs/security.md"

// A row of the page: API group (empty for the core's), resource, verbs, reason.
var rightRow = regexp.MustCompile("(?m)^\\| (?:`([a-z0-9.]+)`|core) \\| `([a-z/]+)` \\| ([a-z, ]+) \\| (.+) \\|$")

// The page has a reason for each right, and no right that the roles do not grant.
func TestSecurityPageNamesEveryRight(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(securityPage)
	require.NoError(t, err)
	explained := map[permission]bool{}
	for _, row := range rightRow.FindAllStringSubmatch(string(page), -1) {
		for verb := range strings.SplitSeq(row[3], ", ") {
			explained[permission{row[1], row[2], verb}] = true
		}
	}
	rights, err := grantedRights(t.Context())
	require.NoError(t, err)
	byName := func(a, b permission) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), cmp.Compare(a.verb, b.verb))
	}
	assert.Equal(t, slices.SortedFunc(maps.Keys(rights), byName), slices.SortedFunc(maps.Keys(explained), byName))
}

var namedTest = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")

// What the threat model says that somebody cannot do is shown by tests that exist.
func TestThreatModelNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/threat-model.md")
	require.NoError(t, err)
	files, err := docs.GoFiles(docs.IsTest, "../../controllers", "../../internal", "../../test")
	require.NoError(t, err)
	tests := docs.Tests(files)
	names := namedTest.FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		assert.True(t, tests[name[1]], "there is no %s", name[1])
	}
}
