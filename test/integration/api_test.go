//go:build integration

package integration

import (
	"bufio"
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const casesFolder = "testdata/api"

// apiCase is one file: a SubPool and, in comments at its top, what a refusal must say.
type apiCase struct {
	pool  *unstructured.Unstructured
	wants []string
}

// readCases returns the cases of a folder by name.
func readCases(t *testing.T, folder string) map[string]apiCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(casesFolder, folder, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	cases := map[string]apiCase{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		c := apiCase{pool: &unstructured.Unstructured{}, wants: wants(content)}
		require.NoError(t, yaml.UnmarshalStrict(content, &c.pool.Object), file)
		cases[strings.TrimSuffix(filepath.Base(file), ".yaml")] = c
	}
	return cases
}

func wants(content []byte) []string {
	var found []string
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		if want, ok := strings.CutPrefix(lines.Text(), "# want: "); ok {
			found = append(found, want)
		}
	}
	return found
}

func TestAPI02Accepted(t *testing.T) {
	t.Parallel()
	for name, c := range readCases(t, "accepted") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, submit(t, c))
		})
	}
}

func TestAPI02Refused(t *testing.T) {
	t.Parallel()
	for name, c := range readCases(t, "refused") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NotEmpty(t, c.wants, "the file says what the refusal tells the user")
			err := submit(t, c)
			require.Error(t, err)
			for _, want := range c.wants {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

// submit asks the API server to judge a SubPool as kubectl does, and keeps nothing.
func submit(t *testing.T, c apiCase) error {
	t.Helper()
	return cluster.Admin.Create(t.Context(), c.pool.DeepCopy(),
		client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
}

// A rule of the schema without a case that shows its message could be wrong, or gone, and nobody would notice.
func TestEveryAPIRuleHasARefusedCase(t *testing.T) {
	t.Parallel()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	})
	crd.SetName("subpools.subrelay.example.com")
	get(t, crd)
	versions, found, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	require.NoError(t, err)
	require.True(t, found)
	require.Len(t, versions, 1)
	root, found, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema")
	require.NoError(t, err)
	require.True(t, found)
	// Only the operator writes the status.
	unstructured.RemoveNestedField(root, "properties", "status")

	refused := slices.Collect(maps.Values(readCases(t, "refused")))
	rules := schemaRules("", root)
	require.Greater(t, len(rules), 40, "the walk finds the rules")
	for _, rule := range rules {
		if rule[len(rule)-1] == sizeImmutable {
			continue // TestSTO02SizeIsImmutable: only an update can break it
		}
		shown := slices.ContainsFunc(refused, func(c apiCase) bool {
			return !slices.ContainsFunc(rule, func(text string) bool {
				return !strings.Contains(strings.Join(c.wants, "\n"), text)
			})
		})
		assert.True(t, shown, "no file in %s/refused wants a refusal with: %q", casesFolder, rule)
	}
}

// schemaRules returns for each rule at and below a path what a refusal by it contains.
func schemaRules(path string, node map[string]any) [][]string {
	var rules [][]string
	add := func(texts ...string) { rules = append(rules, texts) }
	for _, rule := range list(node, "x-kubernetes-validations") {
		add(path, rule.(map[string]any)["message"].(string))
	}
	for _, name := range list(node, "required") {
		add(strings.TrimPrefix(path+"."+name.(string), ".") + ": Required value")
	}
	for keyword, words := range map[string][]string{
		"enum":      {path + ": Unsupported value"},
		"minLength": {path + ": Invalid value", "should be at least"},
		"maxLength": {path + ": Too long"},
		"pattern":   {path, "should match"},
	} {
		if _, found := node[keyword]; found {
			add(words...)
		}
	}
	properties, _ := node["properties"].(map[string]any)
	for name, child := range properties {
		rules = append(rules, schemaRules(strings.TrimPrefix(path+"."+name, "."), child.(map[string]any))...)
	}
	return rules
}

func list(node map[string]any, key string) []any {
	items, _ := node[key].([]any)
	return items
}
