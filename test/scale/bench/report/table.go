package report

import (
	"strings"
	"text/tabwriter"
)

// Table is rows of cells below a head. The first column is text, the others are numbers.
type Table struct {
	Head []string
	Rows [][]string
}

func (t *Table) add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Markdown writes the table for a page.
func (t Table) Markdown() string {
	var text strings.Builder
	line := func(cells []string) { text.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.Head)
	text.WriteString("|---" + strings.Repeat("|--:", len(t.Head)-1) + "|\n")
	for _, row := range t.Rows {
		line(row)
	}
	return text.String()
}

// Text writes the table for a terminal.
func (t Table) Text() string {
	const gap = 2
	var text strings.Builder
	writer := tabwriter.NewWriter(&text, 0, 0, gap, ' ', 0)
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		_, _ = writer.Write([]byte(strings.Join(row, "\t") + "\n")) // a Builder takes everything
	}
	_ = writer.Flush()
	return text.String()
}
