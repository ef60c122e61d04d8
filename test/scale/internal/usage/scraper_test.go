package usage

import (
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSum(t *testing.T) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(`# TYPE passes_total counter
passes_total{result="success"} 3
passes_total{result="error"} 2
# TYPE live_bytes gauge
live_bytes 7
`))
	require.NoError(t, err)
	for name, want := range map[string]float64{"passes_total": 5, "live_bytes": 7} {
		sum, found := Metrics(families).Sum(name)
		assert.True(t, found, name)
		assert.InDelta(t, want, sum, 0, name)
	}
	_, found := Metrics(families).Sum("no_such_metric")
	assert.False(t, found)
}
