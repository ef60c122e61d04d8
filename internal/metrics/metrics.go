// Package metrics tells a monitoring system how the pools are. The names and labels are explained in docs/operations.md.
package metrics

import (
	"context"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// shownConditions are the condition types that become series: what somebody else puts into a status does not.
var shownConditions = map[string]bool{
	v1alpha1.ConditionReady: true, v1alpha1.ConditionIsolationEnforced: true, v1alpha1.ConditionWorkloadReady: true,
	v1alpha1.ConditionProxyReady: true, v1alpha1.ConditionExposureReady: true, v1alpha1.ConditionSuspended: true,
	v1alpha1.ConditionDeleting: true, v1alpha1.ConditionReconciling: true, v1alpha1.ConditionStalled: true,
}

// NewBuildInfo tells the version of the program.
func NewBuildInfo(version string) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "subrelay_build_info",
		Help:        "The version of the operator and of Go that it was built with; always 1.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	})
	info.Set(1)
	return info
}

// Outcomes count what passes over pools came to.
type Outcomes struct{ *prometheus.CounterVec }

// Conflict is the outcome of a pass that somebody else's write made out of date.
const Conflict = "Conflict"

// NewOutcomes returns counters at zero.
func NewOutcomes() *Outcomes {
	return &Outcomes{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "subrelay_reconcile_outcomes_total",
		Help: "Passes over pools by the reason of condition Ready that they came to, or Conflict.",
	}, []string{"reason"})}
}

// Add counts one pass. The reason is one of the operator's own words, never of a pool's content. A nil receiver counts nothing.
func (o *Outcomes) Add(reason string) {
	if o != nil {
		o.WithLabelValues(reason).Inc()
	}
}

// Pools reads the state of all pools from the cache when it is asked, so that series follow the pools and go with them.
type Pools struct {
	reader client.Reader
	// elected is closed when this process acts. Replicas that only watch tell nothing, so that sums over all are right.
	elected <-chan struct{}

	conditions, restarts *prometheus.Desc
}

// NewPools returns the collector of a process that acts when elected is closed.
func NewPools(reader client.Reader, elected <-chan struct{}) *Pools {
	return &Pools{
		reader: reader, elected: elected,
		conditions: prometheus.NewDesc("subrelay_pool_condition",
			"The conditions that pools have, each with its present status; always 1.",
			[]string{"pool", "condition", "status"}, nil),
		restarts: prometheus.NewDesc("subrelay_pools_awaiting_restart",
			"Pools whose Pod is to be replaced, but not before others are back.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (p *Pools) Describe(descs chan<- *prometheus.Desc) {
	descs <- p.conditions
	descs <- p.restarts
}

// Collect implements prometheus.Collector.
func (p *Pools) Collect(series chan<- prometheus.Metric) {
	select {
	case <-p.elected:
	default:
		return
	}
	pools := &v1alpha1.SubPoolList{}
	// They are read only. The cache answers at once.
	if err := p.reader.List(context.Background(), pools, client.UnsafeDisableDeepCopy); err != nil {
		series <- prometheus.NewInvalidMetric(p.conditions, err)
		return
	}
	restarts := 0
	for i := range pools.Items {
		for _, condition := range pools.Items[i].Status.Conditions {
			if shownConditions[condition.Type] {
				series <- prometheus.MustNewConstMetric(p.conditions, prometheus.GaugeValue, 1,
					pools.Items[i].Name, condition.Type, string(condition.Status))
			}
			if condition.Type == v1alpha1.ConditionWorkloadReady && condition.Reason == v1alpha1.ReasonRestartPending {
				restarts++
			}
		}
	}
	series <- prometheus.MustNewConstMetric(p.restarts, prometheus.GaugeValue, float64(restarts))
}
