package peers

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	graphName = "pools"

	// kroID is the pool's id in kro's expressions.
	kroID = "schema.spec." + poolValue
)

var (
	graphKind = schema.GroupVersionKind{Group: "kro.run", Version: "v1alpha1", Kind: "ResourceGraphDefinition"}
	// instanceKind is what the graph defines: one instance is one pool.
	instanceKind = schema.GroupVersionKind{Group: "kro.run", Version: "v1alpha1", Kind: "Pool"}
)

// graph returns the definition by which kro makes the objects of any pool, from those of the pool with the mark.
func graph(parts []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var nodes []any
	namespaceNode := ""
	for number, part := range parts {
		// Such as networkPolicy4. A kind alone may stand for several objects, or be a word of the language.
		id := fmt.Sprintf("%s%s%d", strings.ToLower(part.GetKind()[:1]), part.GetKind()[1:], number)
		template, ok := withExpressions(part.Object).(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s %s of a pool is no object", part.GetKind(), part.GetName())
		}
		if part.GetKind() == "Namespace" {
			namespaceNode = id
		} else if err := unstructured.SetNestedField(template, "${"+namespaceNode+".metadata.name}", "metadata", "namespace"); err != nil {
			return nil, fmt.Errorf("place %s %s after its namespace: %w", part.GetKind(), part.GetName(), err)
		}
		nodes = append(nodes, map[string]any{"id": id, "template": template})
	}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"schema": map[string]any{
				"apiVersion": instanceKind.Version,
				"kind":       instanceKind.Kind,
				"spec":       map[string]any{poolValue: "string"},
			},
			"resources": nodes,
		},
	}}
	definition.SetGroupVersionKind(graphKind)
	definition.SetName(graphName)
	return definition, nil
}

// withExpressions returns a copy of a JSON value whose strings mean to kro what they say.
func withExpressions(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(value))
		for key, field := range value {
			copied[key] = withExpressions(field)
		}
		return copied
	case []any:
		copied := make([]any, 0, len(value))
		for _, item := range value {
			copied = append(copied, withExpressions(item))
		}
		return copied
	case string:
		return expression(value)
	default:
		return value
	}
}

// expression returns a text as kro is to read it: an expression if it contains the pool's id, or what kro would take for
// one, as shell scripts do.
func expression(text string) string {
	if !strings.Contains(text, mark) && !strings.Contains(text, "${") {
		return text
	}
	var terms []string
	for number, literal := range strings.Split(text, mark) {
		if number > 0 {
			terms = append(terms, kroID)
		}
		if literal != "" {
			terms = append(terms, quote(literal))
		}
	}
	return "${" + strings.Join(terms, " + ") + "}"
}

// quote writes a string literal of CEL without the characters by which kro finds expressions.
func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(fmt.Errorf("a string cannot be encoded: %w", err)) // any string can
	}
	return strings.NewReplacer("$", `\u0024`, "{", `\u007b`, "}", `\u007d`).Replace(string(quoted))
}
