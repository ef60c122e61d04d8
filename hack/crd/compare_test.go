package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

const shipped = "../../config/crd/bases/subrelay.example.com_subpools.yaml"

func value(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

// basis is a small definition with something of everything.
func basis() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.org", Scope: apiextensionsv1.ClusterScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Thing", Plural: "things"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &schema{Type: "object", Properties: map[string]schema{
				"name": {Type: "string", MaxLength: ptr.To[int64](10), Nullable: true},
				"mode": {Type: "string", Enum: []apiextensionsv1.JSON{*value(`"A"`), *value(`"B"`)}, Default: value(`"A"`)},
				"list": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{Type: "string"}}},
				"map":  {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &schema{Type: "string"}}},
			}},
		}}},
	}}
}

func TestCompare(t *testing.T) {
	type edit = func(*schema)
	field := func(name string, change edit) edit {
		return func(s *schema) {
			changed := s.Properties[name]
			change(&changed)
			s.Properties[name] = changed
		}
	}
	for name, c := range map[string]struct {
		change edit
		want   []string
	}{
		"nothing":         {func(*schema) {}, nil},
		"new field":       {func(s *schema) { s.Properties["new"] = schema{Type: "string"} }, nil},
		"new value":       {field("mode", func(s *schema) { s.Enum = append(s.Enum, *value(`"C"`)) }), nil},
		"longer":          {field("name", func(s *schema) { s.MaxLength = ptr.To[int64](20) }), nil},
		"description":     {field("name", func(s *schema) { s.Description = "What it is called." }), nil},
		"field removed":   {func(s *schema) { delete(s.Properties, "name") }, []string{"v1.name is gone"}},
		"shorter":         {field("name", func(s *schema) { s.MaxLength = ptr.To[int64](5) }), []string{"v1.name: longest is 5 now"}},
		"at least":        {field("name", func(s *schema) { s.MinLength = ptr.To[int64](1) }), []string{"v1.name: shortest is 1 now"}},
		"not null":        {field("name", func(s *schema) { s.Nullable = false }), []string{"v1.name may not be null any more"}},
		"pattern":         {field("name", func(s *schema) { s.Pattern = "^a" }), []string{"v1.name has to match ^a now"}},
		"other type":      {field("name", func(s *schema) { s.Type = "integer" }), []string{"v1.name: type was string and is integer"}},
		"value removed":   {field("mode", func(s *schema) { s.Enum = s.Enum[:1] }), []string{`v1.mode may not be "B" any more`}},
		"values":          {field("name", func(s *schema) { s.Enum = []apiextensionsv1.JSON{*value(`"x"`)} }), []string{"v1.name is limited to a list of values now"}},
		"required":        {func(s *schema) { s.Required = []string{"name"} }, []string{"v1.name is required now"}},
		"required, given": {func(s *schema) { s.Required = []string{"mode"} }, nil},
		"rule": {func(s *schema) { s.XValidations = apiextensionsv1.ValidationRules{{Rule: "self.a > 1"}} },
			[]string{"v1 has a new rule: self.a > 1"}},
		"item":  {field("list", func(s *schema) { s.Items.Schema.Pattern = "^a" }), []string{"v1.list[] has to match ^a now"}},
		"entry": {field("map", func(s *schema) { s.AdditionalProperties.Schema.Pattern = "^a" }), []string{"v1.map{} has to match ^a now"}},
	} {
		t.Run(name, func(t *testing.T) {
			present := basis()
			c.change(present.Spec.Versions[0].Schema.OpenAPIV3Schema)
			assert.Equal(t, c.want, compare(basis(), present))
		})
	}
}

func TestCompareDefinitions(t *testing.T) {
	present := basis()
	present.Spec.Scope = apiextensionsv1.NamespaceScoped
	present.Spec.Versions[0].Served = false
	assert.Equal(t, []string{"scope was Cluster and is Namespaced", "v1 is not served any more"}, compare(basis(), present))
	other := basis()
	other.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["mode"] = schema{Type: "string", Default: value(`"B"`)}
	assert.Len(t, compare(basis(), other), 1, "whoever left the field out gets something else")
}

// The shipped definition is read in full, and is compatible with itself.
func TestShippedDefinition(t *testing.T) {
	definition, err := read(shipped)
	require.NoError(t, err)
	document, err := json.Marshal(definition)
	require.NoError(t, err)
	require.Contains(t, string(document), "x-kubernetes-validations")
	assert.Empty(t, compare(definition, definition))
}
