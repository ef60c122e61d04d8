package peers

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/example-org/subrelay-operator/internal/operatorconfig"
	"github.com/example-org/subrelay-operator/test/scale/internal/objects"
)

// hard is text that templates may take for their own language.
const hard = "$" + mark + " ${" + mark + "} ${HOME:-\"${1}\"} {{ .Values.pool }} }} \\n\n\ttail: 'x' <&> \u2028"

// pool returns the objects of a pool, and one more with hard text.
func pool(t *testing.T, poolID string) []*unstructured.Unstructured {
	t.Helper()
	document, err := os.ReadFile("../../../../config/default/operator-config.yaml")
	require.NoError(t, err)
	configMap := &corev1.ConfigMap{}
	require.NoError(t, yaml.UnmarshalStrict(document, configMap))
	blueprint, err := objects.NewBlueprint(configMap.Data[operatorconfig.Key])
	require.NoError(t, err)
	parts, err := blueprint.Pool(poolID)
	require.NoError(t, err)
	return append(parts, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "hard", "namespace": "subpool-" + poolID},
		"data":     map[string]any{"text": strings.ReplaceAll(hard, mark, poolID)},
	}})
}

// comparableTexts returns each object as text by kind and name, without what differs from one pool to the next: random keys, and
// the mark of a Pod template.
func comparableTexts(t *testing.T, parts []*unstructured.Unstructured) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, part := range parts {
		content := part.DeepCopy().Object
		if part.GetKind() == "Secret" {
			unstructured.RemoveNestedField(content, "data")
		}
		unstructured.RemoveNestedField(content, "metadata", "annotations", "subrelay.example.com/template")
		text, err := yaml.Marshal(content)
		require.NoError(t, err)
		texts[part.GetKind()+" "+part.GetName()] = string(text)
	}
	require.Len(t, texts, len(parts))
	return texts
}

func decode(t *testing.T, file []byte) []*unstructured.Unstructured {
	t.Helper()
	var parts []*unstructured.Unstructured
	for document := range bytes.SplitSeq(file, []byte("\n---\n")) {
		part := &unstructured.Unstructured{}
		require.NoError(t, yaml.UnmarshalStrict(document, &part.Object))
		parts = append(parts, part)
	}
	return parts
}

func TestManifest(t *testing.T) {
	parts := pool(t, "one")
	file, err := manifest(parts)
	require.NoError(t, err)
	assert.Equal(t, comparableTexts(t, parts), comparableTexts(t, decode(t, file)))
}

func TestHelmTemplate(t *testing.T) {
	template, err := helmTemplate(pool(t, mark))
	require.NoError(t, err)
	chart := helmChart(template)
	values, err := util.ToRenderValues(chart, map[string]any{poolValue: "one"}, common.ReleaseOptions{}, nil)
	require.NoError(t, err)
	files, err := engine.Render(chart, values)
	require.NoError(t, err)
	require.Len(t, files, 1)
	for _, file := range files {
		assert.Equal(t, comparableTexts(t, pool(t, "one")), comparableTexts(t, decode(t, []byte(file))))
	}
}

func TestGraph(t *testing.T) {
	definition, err := graph(pool(t, mark))
	require.NoError(t, err)
	nodes, _, err := unstructured.NestedSlice(definition.Object, "spec", "resources")
	require.NoError(t, err)
	variables := map[string]any{
		"schema":     map[string]any{"spec": map[string]any{poolValue: "one"}},
		"namespace0": map[string]any{"metadata": map[string]any{"name": "subpool-one"}},
	}
	var parts []*unstructured.Unstructured
	ids := map[string]bool{}
	for _, node := range nodes {
		node := node.(map[string]any)
		id := node["id"].(string)
		assert.Regexp(t, "^[a-z][a-zA-Z0-9]*$", id)
		ids[id] = true
		if id != "namespace0" {
			namespace, _, err := unstructured.NestedString(node, "template", "metadata", "namespace")
			require.NoError(t, err)
			assert.Equal(t, "${namespace0.metadata.name}", namespace, "%s comes after the namespace", id)
		}
		parts = append(parts, &unstructured.Unstructured{Object: evaluate(t, variables, node["template"]).(map[string]any)})
	}
	assert.Len(t, ids, len(nodes))
	assert.Equal(t, comparableTexts(t, pool(t, "one")), comparableTexts(t, parts))
}

// evaluate does with the strings of a value what kro does with those of a template.
func evaluate(t *testing.T, variables map[string]any, value any) any {
	t.Helper()
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			value[key] = evaluate(t, variables, field)
		}
	case []any:
		for i, item := range value {
			value[i] = evaluate(t, variables, item)
		}
	case string:
		expression := regexp.MustCompile(`(?s)^\$\{([^$]*)\}$`).FindStringSubmatch(value)
		if expression == nil {
			assert.NotContains(t, value, "${")
			return value
		}
		return run(t, variables, expression[1])
	}
	return value
}

func run(t *testing.T, variables map[string]any, expression string) string {
	t.Helper()
	options := []cel.EnvOption{}
	for name := range variables {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	environment, err := cel.NewEnv(options...)
	require.NoError(t, err)
	ast, issues := environment.Compile(expression)
	require.NoError(t, issues.Err(), expression)
	program, err := environment.Program(ast)
	require.NoError(t, err)
	result, _, err := program.Eval(variables)
	require.NoError(t, err)
	return result.Value().(string)
}
