package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/example-org/subrelay-operator/test/scale/internal/usage"
)

// row is what the operator has taken in one situation.
type row struct {
	situation string
	// usage is that of the process, from its start.
	usage usage.Usage
	// The rest is about this situation alone. Requests for Leases are left out; writes are among the requests.
	cpu, took        time.Duration
	requests, writes int
}

func (r row) String() string {
	return fmt.Sprintf("%s: resident %s MiB, peak %s MiB, live heap %s MiB, CPU %.1f s, %d requests, %d of them writes, idle after %.0f s",
		r.situation, mebibytes(r.usage.Resident), mebibytes(r.usage.Peak), mebibytes(r.usage.LiveHeap),
		r.cpu.Seconds(), r.requests, r.writes, r.took.Seconds())
}

// report prints where the figures come from and the table.
func report(out io.Writer, rows []row) error {
	machine, err := usage.DescribeMachine()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Measured on %s on %s, which the operator shares with the API server, etcd, the controller manager "+
		"and the load.\n\n%s", time.Now().UTC().Format("2 January 2006"), machine, table(rows))
	return err
}

// table returns the rows as Markdown.
func table(rows []row) string {
	var text strings.Builder
	text.WriteString("| situation | resident MiB | peak MiB | live heap MiB | CPU s | requests | of them writes | idle after s |\n")
	text.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, r := range rows {
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %.1f | %s | %s | %.0f |\n", r.situation,
			mebibytes(r.usage.Resident), mebibytes(r.usage.Peak), mebibytes(r.usage.LiveHeap),
			r.cpu.Seconds(), grouped(r.requests), grouped(r.writes), r.took.Seconds())
	}
	return text.String()
}

func mebibytes(bytes uint64) string { return strconv.FormatFloat(float64(bytes)/(1<<20), 'f', 1, 64) }

// grouped writes a number of up to six digits with a comma between thousands.
func grouped(number int) string {
	if number < 1000 {
		return strconv.Itoa(number)
	}
	return fmt.Sprintf("%d,%03d", number/1000, number%1000)
}
