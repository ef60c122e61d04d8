//go:build integration

package integration

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// A pool's series appear with it, follow its conditions, and go with it.
func TestMetricsFollowPools(t *testing.T) {
	t.Parallel()
	pool := createReady(t, "measured")
	series := func(condition, status string) string {
		return `subrelay_pool_condition{condition="` + condition + `",pool="` + pool.Name + `",status="` + status + `"} 1`
	}
	read := func() string { return string(metricsOf(t, cluster.operator)) }
	text := read()
	assert.Contains(t, text, series(v1alpha1.ConditionReady, "True"))
	assert.Contains(t, text, series(v1alpha1.ConditionSuspended, "False"))

	change(t, pool, func(spec *v1alpha1.SubPoolSpec) { spec.Suspend = true })
	awaitNotReady(t, pool, v1alpha1.ReasonSuspended)
	text = read()
	assert.Contains(t, text, series(v1alpha1.ConditionReady, "False"))
	assert.NotContains(t, text, series(v1alpha1.ConditionReady, "True"))
	assert.Contains(t, text, series(v1alpha1.ConditionSuspended, "True"))
	assert.Regexp(t, `subrelay_reconcile_outcomes_total\{reason="Suspended"\} [1-9]`, text)
	assert.Regexp(t, `subrelay_build_info\{go_version="go[^"]+",version="[^"]+"\} 1`, text)

	remove(t, pool)
	awaitGone(t, goneBudget, pool)
	assert.NotContains(t, read(), pool.Name)
}

// Labels of the operator's own series are the names of pools and words of the operator, of which there are few.
func TestMetricsLabels(t *testing.T) {
	t.Parallel()
	createReady(t, "labelled")
	label := regexp.MustCompile(`([a-z_]+)="`)
	allowed := map[string]bool{"pool": true, "condition": true, "status": true, "reason": true, "version": true, "go_version": true}
	found := 0
	for line := range strings.Lines(string(metricsOf(t, cluster.operator))) {
		if !strings.HasPrefix(line, "subrelay_") {
			continue
		}
		for _, name := range label.FindAllStringSubmatch(line, -1) {
			found++
			assert.True(t, allowed[name[1]], line)
		}
	}
	assert.Positive(t, found)
}
