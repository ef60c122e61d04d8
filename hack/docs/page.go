package docs

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const introduction = `<!-- Made by "make generate" from api/v1alpha1/conditions.go: change the comments there. -->

# Conditions of a SubPool

What ` + "`kubectl describe subpool`" + ` shows below "Conditions" and "Events". Every condition says in ` + "`observedGeneration`" + `
which generation of the SubPool it is about. A message names the object that is meant and what to do next. Scripts should go by
type, status and reason: the words of a message may change with every release.
`

// sections of the page, by the beginning of the constants' names.
var sections = []struct{ prefix, title, column string }{
	{"Condition", "Conditions", "type"},
	{"Reason", "Reasons", "reason"},
	{"Event", "Events", "reason"},
}

// Page returns the page about conditions, reasons and Events, in Markdown.
func Page(groups []Group) string {
	values := map[string]string{}
	for _, group := range groups {
		for _, term := range group.Terms {
			values[term.Name] = term.Value
		}
	}
	page := &strings.Builder{}
	page.WriteString(introduction)
	for _, section := range sections {
		fmt.Fprintf(page, "\n## %s\n", section.title)
		inTable := false
		for _, group := range groups {
			if !strings.HasPrefix(group.Terms[0].Name, section.prefix) {
				continue
			}
			if group.About != "" || !inTable {
				startTable(page, prose(group.About, values), section.column)
				inTable = true
			}
			for _, term := range group.Terms {
				fmt.Fprintf(page, "| `%s` | %s |\n", term.Value, meaning(term, values))
			}
		}
	}
	return page.String()
}

func startTable(page *strings.Builder, about, column string) {
	if about != "" {
		fmt.Fprintf(page, "\n%s\n", about)
	}
	fmt.Fprintf(page, "\n| %s | meaning |\n|---|---|\n", column)
}

// meaning leaves out the name at the beginning of a comment such as "ReasonSuspended: ...", since the row begins with it.
func meaning(term Term, values map[string]string) string {
	text, found := strings.CutPrefix(term.Meaning, term.Name+": ")
	text = prose(text, values)
	if !found {
		return text
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

var (
	constantName = regexp.MustCompile(`\b(Condition|Reason|Event)[A-Z]\w*`)
	fieldPath    = regexp.MustCompile(`\b(spec|status)(\.\w+)+`)
)

// prose is a comment as Markdown: what users see in place of constants' names, and nothing taken for markup.
func prose(comment string, values map[string]string) string {
	text := strings.NewReplacer("<", `\<`, "|", `\|`, "*", `\*`, "_", `\_`).Replace(comment)
	text = fieldPath.ReplaceAllString(text, "`$0`")
	return constantName.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := values[name]; ok {
			return "`" + value + "`"
		}
		return name
	})
}
