package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/test/scale/internal/usage"
)

func TestReport(t *testing.T) {
	var out strings.Builder
	require.NoError(t, report(&out, []row{{
		situation: "1,000 pools",
		usage:     usage.Usage{Resident: 100 << 20, Peak: 120<<20 + 512<<10, LiveHeap: 40 << 20},
		cpu:       2500 * time.Millisecond, took: 61 * time.Second, requests: 23456, writes: 20005,
	}}))
	machine, table, found := strings.Cut(out.String(), "\n\n")
	require.True(t, found)
	assert.Regexp(t, `on [1-9][0-9]* cores \(.+\) with [1-9][0-9]* GiB of memory, Linux .+, go1\.`, machine)
	lines := strings.Split(strings.TrimSpace(table), "\n")
	require.Len(t, lines, 3)
	assert.Equal(t, "| 1,000 pools | 100.0 | 120.5 | 40.0 | 2.5 | 23,456 | 20,005 | 61 |", lines[2])
	for _, line := range lines {
		assert.Equal(t, strings.Count(lines[0], "|"), strings.Count(line, "|"), line)
	}
}

func TestOptions(t *testing.T) {
	good := options{pools: 10, foreign: 0, large: 0}
	require.NoError(t, good.validate())
	for name, bad := range map[string]struct {
		options options
		want    string
	}{
		"too few pools":   {options{pools: 9}, "--pools"},
		"negative others": {options{pools: 10, foreign: -1}, "--foreign"},
		"negative large":  {options{pools: 10, large: -1}, "--large"},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorContains(t, bad.options.validate(), bad.want) })
	}
}
