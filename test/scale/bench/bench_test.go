package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/example-org/subrelay-operator/test/harness"
	"github.com/example-org/subrelay-operator/test/scale/bench/report"
	"github.com/example-org/subrelay-operator/test/scale/internal/audit"
)

func TestParse(t *testing.T) {
	opts, err := parse([]string{"--pools", "50,5000", "--only", "limit,heal"})
	require.NoError(t, err)
	assert.Equal(t, []int{50, 5000}, opts.pools)
	assert.True(t, opts.wants("heal", "delete"))
	assert.False(t, opts.wants("create"))

	opts, err = parse([]string{"--quick"})
	require.NoError(t, err)
	assert.Equal(t, []int{50}, opts.pools)
	assert.Equal(t, 1, opts.rounds)

	for name, bad := range map[string]struct{ flag, want string }{
		"no number":       {"--pools=a", "--pools"},
		"too few pools":   {"--pools=19", "from 20"},
		"no round":        {"--rounds=0", "--rounds"},
		"no quiet window": {"--quiet=0s", "--quiet"},
		"unknown":         {"--only=walk", `"walk"`},
		"no flag":         {"walk", "walk"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse([]string{bad.flag})
			require.ErrorContains(t, err, bad.want)
		})
	}
}

// The report compares with a subject that is measured.
func TestReferenceIsPlain(t *testing.T) {
	var names []string
	for _, plain := range plainSubjects() {
		names = append(names, plain.Name())
	}
	assert.Contains(t, names, report.Reference)
}

// What happened before the edit, or to something else, is no repair.
func TestMended(t *testing.T) {
	condition := mended("label", "wrong")
	object := func(value string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"label": value}}}
	}
	assert.False(t, condition(watch.Modified, object("right")))
	assert.False(t, condition(watch.Modified, object("wrong")))
	assert.True(t, condition(watch.Modified, object("right")))
}

// A request belongs to the last thing that was done to its pool.
func TestCountRequests(t *testing.T) {
	begun := time.Now()
	at := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
	call := func(poolID string, seconds int) harness.Call {
		call := harness.Call{Received: metav1.NewMicroTime(at(seconds))}
		call.ObjectRef.Namespace = harness.NamespaceOf(poolID)
		return call
	}
	repairs := make([]report.Repair, 3)
	countRequests(repairs, []disturbance{
		{poolID: "one", at: at(10)}, {poolID: "two", at: at(20)}, {poolID: "one", at: at(30)},
	}, audit.Calls{call("one", 9), call("one", 11), call("one", 31), call("one", 32), call("two", 33), call("three", 34)})
	counts := []int{repairs[0].Requests, repairs[1].Requests, repairs[2].Requests}
	assert.Equal(t, []int{1, 1, 2}, counts)
}
