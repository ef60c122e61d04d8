package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/test/scale/internal/usage"
)

func wave(subject string, pools int, seconds, cpu float64) Wave {
	return Wave{
		Subject: subject, Pools: pools, Latencies: []float64{0.1, 0.3, 0.2},
		ToMade:  Cost{Seconds: seconds},
		ToIdle:  Cost{Seconds: 2 * seconds, CPU: CPU{APIServer: cpu, Subject: 0.01 * float64(pools)}},
		Traffic: Traffic{Requests: 15 * pools, Writes: 14 * pools, ByKind: map[string]int{"create secrets": pools, "get /apis": 1}},
		Memory:  Memory{Resident: 60 << 20, Peak: 90 << 20},
	}
}

// exampleRun makes pools at 0.8 of the rate of its references, with as much CPU time.
func exampleRun(pools, round int) Run {
	create := wave("operator", pools, 12.5, 10)
	busy := wave("operator", pools, 12.5, 10)
	busy.Resident = create.Resident + uint64(pools)*30<<20/1000
	before, after := wave(Reference, pools, 10, 9), wave(Reference, pools, 10, 11)
	return Run{
		Pools: pools, Round: round, Before: []Wave{before}, After: []Wave{after},
		Unmeasured: map[string]string{"kro": "build it first"},
		Operator: Operator{
			Create: &create, Alone: []float64{0.07, 0.05, 0.09},
			Steady:  &Span{Seconds: 60, CPU: 0.03},
			Restart: &Restart{Span: Span{Seconds: 3, Traffic: Traffic{Requests: 31 + pools}}, SecretReads: pools},
			Repairs: []Repair{{"delete", "secrets", 0.02, 3}, {"edit", "services", 0.01, 1}, {"edit", "services", 0.2, 1}},
			Busy:    &Busy{Repairs: []Repair{{"delete", "secrets", 0.4, 0}}, Before: create.Memory, Wave: busy},
			Changes: []Change{{Name: "10 flaps", Idle: 6, Traffic: Traffic{Requests: 20 * pools, Writes: 20 * pools}}},
			Delete:  &Deletion{Pools: pools, Seconds: 20, Traffic: Traffic{Requests: 2 * pools}},
		},
	}
}

func exampleResults() Results {
	return Results{
		Started: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Operator: "v0.1.0", Quiet: time.Minute, Objects: 13,
		Machine: usage.Machine{Cores: 2, CPU: "Example CPU", Memory: 8 << 30, Kernel: "6.1", Go: "go1.26"},
		Runs:    []Run{exampleRun(100, 1), exampleRun(1000, 1), exampleRun(1000, 2)},
	}
}

func TestStats(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	assert.InDelta(t, 2.5, Median(values), 0)
	assert.InDelta(t, 3, Median(values[:3]), 0)
	assert.InDelta(t, 2, Quantile(values, 0.5), 0)
	assert.InDelta(t, 4, Quantile(values, 0.99), 0)
	assert.InDelta(t, 1, Quantile(values, 0), 0)
	assert.Equal(t, "1,234.50", spread([]float64{1234.5}, 2))
	assert.Equal(t, "2 (1–4)", spread([]float64{2, 4, 1}, 0))
	assert.Equal(t, missing, spread(nil, 0))
}

func TestJudge(t *testing.T) {
	rate := figure{must: fixed(0.6), aim: fixed(0.75), more: true, noisy: true, from: 200}
	count := figure{must: perObject(4), aim: perObject(2)}
	for name, c := range map[string]struct {
		figure figure
		value  float64
		pools  int
		want   verdict
	}{
		"rate, aim":         {rate, 0.8, 200, aimMet},
		"rate, must":        {rate, 0.61, 200, met},
		"rate, slack":       {rate, 0.46, 200, withinSlack},
		"rate, missed":      {rate, 0.44, 200, missed},
		"rate, few pools":   {rate, 0.1, 199, unjudged},
		"count, aim":        {count, 15, 1, aimMet},
		"count, must":       {count, 17, 1, met},
		"count, no slack":   {count, 17.1, 1, missed},
		"without any goals": {figure{}, 1, 1000, unjudged},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, c.figure.judge([]float64{c.value}, c.pools, 13)) })
	}
	assert.Equal(t, unjudged, rate.judge(nil, 200, 13))
}

func TestGoals(t *testing.T) {
	goals := exampleResults().Goals()
	assert.Equal(t, []string{"figure", "N = 100", "N = 1,000", "must", "aim", "verdict"}, goals.Head)
	rows := map[string][]string{}
	for _, row := range goals.Rows {
		rows[row[0]] = row[1:]
	}
	for name, want := range map[string][]string{
		"pools/s created ÷ plain create with 8 workers":                  {"0.80", "0.80 (0.80–0.80)", "≥ 0.60", "≥ 0.75", "aim"},
		"operator's requests per pool, create to idle":                   {"15.0", "15.0 (15.0–15.0)", "≤ 17", "≤ 15", "aim"},
		"one new pool on an idle cluster, p50, ms":                       {"70", "70 (70–70)", "≤ 120", "≤ 60", "must"},
		"one new pool on an idle cluster, worst of 20, ms":               {"90", "90 (90–90)", "–", "–", "–"},
		"deleted or edited object back, worst, ms":                       {"200", "200 (200–200)", "≤ 100", "≤ 30", "missed"},
		"peak resident memory after the wave, MiB":                       {"90", "90 (90–90)", "≤ 120", "≤ 80", "must"},
		"resident memory of each further 1,000 pools, MiB":               {"30", "30 (30–30)", "≤ 70", "≤ 35", "aim"},
		"restart: requests until idle, without one check of each Secret": {"31", "31 (31–31)", "≤ 100", "≤ 100", "aim"},
		"CPU of all per pool, create to idle ÷ plain create":             {"1.00", "1.00 (1.00–1.00)", "≤ 1.35", "≤ 1.20", "aim"},
		"the same while as many pools again are being made, p99, ms":     {"400", "400 (400–400)", "≤ 500", "≤ 150", "must"},
	} {
		assert.Equal(t, want, rows[name], name)
	}
}

// A run of a few measurements has a report too.
func TestWritePage(t *testing.T) {
	few := exampleResults()
	few.Runs = []Run{{Pools: 50, Round: 1, Before: []Wave{wave("plain apply, 4 workers", 50, 5, 5)}}}
	for name, results := range map[string]Results{"everything": exampleResults(), "a few measurements": few, "nothing": {}} {
		t.Run(name, func(t *testing.T) {
			var page bytes.Buffer
			require.NoError(t, results.WritePage(&page))
			assert.NotContains(t, page.String(), "NaN")
			columns := 0
			for line := range strings.Lines(page.String()) {
				if !strings.HasPrefix(line, "|") {
					columns = 0
					continue
				}
				if columns == 0 {
					columns = strings.Count(line, "|")
				}
				assert.Equal(t, columns, strings.Count(line, "|"), line)
			}
		})
	}
	var page bytes.Buffer
	require.NoError(t, exampleResults().WritePage(&page))
	for _, text := range []string{
		"operator v0.1.0", "Example CPU", "Not measured: kro: build it first", "| create secrets | 1.00 (1.00–1.00) |",
		"| delete secrets | 20 | 20 | 3.0 | 400 | 400 |", "| 10 flaps: all pools have it after, s | – | – |",
	} {
		assert.Contains(t, page.String(), text)
	}
}

func TestWriteText(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, exampleResults().WriteText(&text))
	assert.Contains(t, text.String(), "Example CPU")
	assert.Contains(t, text.String(), "requests in the quiet window")
}

func TestWritePlot(t *testing.T) {
	for name, results := range map[string]Results{"everything": exampleResults(), "no wave": {Runs: []Run{{Pools: 50}}}} {
		t.Run(name, func(t *testing.T) {
			var plot bytes.Buffer
			require.NoError(t, results.WritePlot(&plot))
			assert.Contains(t, plot.String(), "requests per pool")
			decoder := xml.NewDecoder(&plot)
			for {
				_, err := decoder.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
			}
		})
	}
}
