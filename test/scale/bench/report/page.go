package report

import (
	_ "embed"
	"fmt"
	"io"
	"text/template"
)

// Reference is the plain way to make pools that all others are compared with.
const Reference = "plain create, 8 workers"

//go:embed performance.md.tmpl
var pageText string

var page = template.Must(template.New("performance.md").Funcs(template.FuncMap{
	"grouped": func(n int) string { return number(float64(n), 0) },
}).Parse(pageText))

// WritePage writes the Markdown report. The plot is expected beside it, as performance.svg.
func (r Results) WritePage(out io.Writer) error {
	if err := page.Execute(out, r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// WriteText writes the goals and the subjects side by side for a terminal.
func (r Results) WriteText(out io.Writer) error {
	_, err := fmt.Fprintf(out, "%s\n\n%s\n%s\n", r.Machine, r.Goals().Text(), r.Waves().Text())
	return err
}
