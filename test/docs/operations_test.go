package docs

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/internal/metrics"
)

const operationsPage = root + "/docs/operations.md"

var (
	metricRow  = regexp.MustCompile("(?m)^\\| `(subrelay_[a-z_]+)` \\|")
	metricDesc = regexp.MustCompile(`fqName: "([^"]+)"`)
	flagRow    = regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\|")
	flagInCode = regexp.MustCompile(`flags\.[A-Za-z]+Var\(&[a-zA-Z.]+, "([a-z-]+)"`)
)

// column returns the first group of every match, sorted.
func column(pattern *regexp.Regexp, text []byte) []string {
	found := map[string]bool{}
	for _, match := range pattern.FindAllSubmatch(text, -1) {
		found[string(match[1])] = true
	}
	return slices.Sorted(maps.Keys(found))
}

func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(operationsPage)
	require.NoError(t, err)
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		for _, collector := range []prometheus.Collector{
			metrics.NewBuildInfo("v1"), metrics.NewOutcomes(), metrics.NewPools(nil, nil),
		} {
			collector.Describe(descs)
		}
	}()
	var told []byte
	for desc := range descs {
		told = append(told, desc.String()...)
	}
	names := column(metricDesc, told)
	require.NotEmpty(t, names)
	assert.Equal(t, names, column(metricRow, page))
}

func TestFlagsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(operationsPage)
	require.NoError(t, err)
	source, err := os.ReadFile(root + "/cmd/manager/options.go")
	require.NoError(t, err)
	names := column(flagInCode, source)
	require.NotEmpty(t, names)
	assert.Equal(t, names, column(flagRow, page))
}
