package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schema = apiextensionsv1.JSONSchemaProps

// compare returns every change that breaks users of the previous definition. It is strict: of rules and patterns it cannot
// tell whether a new one is looser, so each is named.
func compare(previous, present *apiextensionsv1.CustomResourceDefinition) []string {
	c := &comparison{}
	c.same("group", previous.Spec.Group, present.Spec.Group)
	c.same("scope", previous.Spec.Scope, present.Spec.Scope)
	c.same("kind", previous.Spec.Names.Kind, present.Spec.Names.Kind)
	c.same("plural", previous.Spec.Names.Plural, present.Spec.Names.Plural)
	for _, before := range previous.Spec.Versions {
		if !before.Served {
			continue
		}
		at := slices.IndexFunc(present.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == before.Name && v.Served
		})
		if at < 0 {
			c.report(before.Name, "is not served any more")
			continue
		}
		c.schemas(before.Name, before.Schema.OpenAPIV3Schema, present.Spec.Versions[at].Schema.OpenAPIV3Schema)
	}
	return c.problems
}

type comparison struct{ problems []string }

func (c *comparison) report(path, format string, args ...any) {
	c.problems = append(c.problems, path+" "+fmt.Sprintf(format, args...))
}

func (c *comparison) same(path string, before, after any) {
	if !reflect.DeepEqual(before, after) {
		c.report(path, "was %v and is %v", before, after)
	}
}

func (c *comparison) schemas(path string, before, after *schema) {
	c.same(path+": type", before.Type, after.Type)
	c.same(path+": format", before.Format, after.Format)
	c.same(path+": default", before.Default, after.Default)
	c.same(path+": list type", before.XListType, after.XListType)
	c.same(path+": list keys", before.XListMapKeys, after.XListMapKeys)
	c.same(path+": unknown fields", before.XPreserveUnknownFields, after.XPreserveUnknownFields)
	c.same(path+": int or string", before.XIntOrString, after.XIntOrString)
	if before.Nullable && !after.Nullable {
		c.report(path, "may not be null any more")
	}
	c.limits(path, before, after)
	c.values(path, before, after)
	for _, name := range slices.Sorted(maps.Keys(before.Properties)) {
		field, kept := after.Properties[name]
		if !kept {
			c.report(path+"."+name, "is gone")
			continue
		}
		known := before.Properties[name]
		c.schemas(path+"."+name, &known, &field)
	}
	for _, name := range after.Required {
		if !slices.Contains(before.Required, name) && after.Properties[name].Default == nil {
			c.report(path+"."+name, "is required now")
		}
	}
	c.nested(path, before, after)
}

// nested compares what lists and maps hold.
func (c *comparison) nested(path string, before, after *schema) {
	if before.Items != nil && before.Items.Schema != nil {
		if after.Items == nil || after.Items.Schema == nil {
			c.report(path+"[]", "is gone")
		} else {
			c.schemas(path+"[]", before.Items.Schema, after.Items.Schema)
		}
	}
	if before.AdditionalProperties != nil && before.AdditionalProperties.Schema != nil {
		if after.AdditionalProperties == nil || after.AdditionalProperties.Schema == nil {
			c.report(path+"{}", "is gone")
		} else {
			c.schemas(path+"{}", before.AdditionalProperties.Schema, after.AdditionalProperties.Schema)
		}
	}
}

func (c *comparison) limits(path string, before, after *schema) {
	upper(c, path+": longest", before.MaxLength, after.MaxLength)
	upper(c, path+": most items", before.MaxItems, after.MaxItems)
	upper(c, path+": most fields", before.MaxProperties, after.MaxProperties)
	upper(c, path+": maximum", before.Maximum, after.Maximum)
	lower(c, path+": shortest", before.MinLength, after.MinLength)
	lower(c, path+": fewest items", before.MinItems, after.MinItems)
	lower(c, path+": fewest fields", before.MinProperties, after.MinProperties)
	lower(c, path+": minimum", before.Minimum, after.Minimum)
}

func upper[N cmp.Ordered](c *comparison, path string, before, after *N) {
	if after != nil && (before == nil || *after < *before) {
		c.report(path, "is %v now", *after)
	}
}

func lower[N cmp.Ordered](c *comparison, path string, before, after *N) {
	if after != nil && (before == nil || *after > *before) {
		c.report(path, "is %v now", *after)
	}
}

// values compares what decides which values are allowed.
func (c *comparison) values(path string, before, after *schema) {
	if after.Pattern != before.Pattern && after.Pattern != "" {
		c.report(path, "has to match %s now", after.Pattern)
	}
	if len(before.Enum) == 0 && len(after.Enum) > 0 {
		c.report(path, "is limited to a list of values now")
	}
	for _, value := range before.Enum {
		kept := slices.ContainsFunc(after.Enum, func(v apiextensionsv1.JSON) bool { return bytes.Equal(v.Raw, value.Raw) })
		if len(after.Enum) > 0 && !kept {
			c.report(path, "may not be %s any more", value.Raw)
		}
	}
	for _, rule := range after.XValidations {
		known := slices.ContainsFunc(before.XValidations, func(v apiextensionsv1.ValidationRule) bool { return v.Rule == rule.Rule })
		if !known {
			c.report(path, "has a new rule: %s", rule.Rule)
		}
	}
}
