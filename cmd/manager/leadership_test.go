package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	own   = "this replica"
	other = "another replica"

	// term is how long a renewal covers writes in these tests.
	term = 10 * time.Second
)

// paperLease is a Lease that is kept in memory.
type paperLease struct {
	resourcelock.Interface

	holder string
	broken error
}

func (l *paperLease) Identity() string { return own }

func (l *paperLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, l.broken
}

func (l *paperLease) Update(_ context.Context, lease resourcelock.LeaderElectionRecord) error {
	if l.broken == nil {
		l.holder = lease.HolderIdentity
	}
	return l.broken
}

func heldBy(identity string) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: identity}
}

// CTL-04: what is not covered by a renewal of the Lease is not written.
func TestCTL04WritesEndWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &paperLease{}
		l := newLeadership(lease, term)
		assert.False(t, l.holds(), "before the election")
		require.NoError(t, l.Update(t.Context(), heldBy(own)))
		assert.True(t, l.holds())
		pass(t, term-time.Second)
		assert.True(t, l.holds())
		require.NoError(t, l.Update(t.Context(), heldBy(own)))
		pass(t, term-time.Second)
		assert.True(t, l.holds(), "a renewal covers the same time again")
		lease.broken = context.DeadlineExceeded
		require.Error(t, l.Update(t.Context(), heldBy(own)))
		pass(t, time.Second)
		assert.False(t, l.holds(), "an attempt that failed covers nothing")
	})
}

// pass lets the clock of a synctest move on.
func pass(t *testing.T, duration time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	<-ctx.Done()
}

// CTL-04: a leader that slept while another one took the Lease writes nothing, and leaves it to that one.
func TestCTL04DeposedLeaderKeepsOff(t *testing.T) {
	lease := &paperLease{}
	l := newLeadership(lease, term)
	require.NoError(t, l.Update(t.Context(), heldBy(own)))
	lease.holder = other
	_, _, err := l.Get(t.Context())
	require.NoError(t, err)
	assert.False(t, l.holds())
	require.ErrorIs(t, l.Update(t.Context(), heldBy("")), errTaken)
	assert.Equal(t, other, lease.holder)
}

func TestOrderlyEnd(t *testing.T) {
	lease := &paperLease{}
	l := newLeadership(lease, term)
	require.NoError(t, l.Update(t.Context(), heldBy(own)))
	lease.broken = context.DeadlineExceeded
	require.Error(t, l.Update(t.Context(), heldBy("")))
	assert.False(t, l.holds(), "others may have seen the release, even if its answer was lost")
	lease.broken = nil
	require.NoError(t, l.Update(t.Context(), heldBy("")))
	assert.Empty(t, lease.holder)
}

func TestFence(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	l := newLeadership(&paperLease{}, term)
	client := &http.Client{Transport: l.fence(http.DefaultTransport)}
	send := func(method, path string) error {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader("{}"))
		require.NoError(t, err)
		response, err := client.Do(request)
		if err == nil {
			require.NoError(t, response.Body.Close())
		}
		return err
	}
	const pools = "/apis/subrelay.example.com/v1alpha1/subpools/demo"
	writing := []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	for _, method := range writing {
		require.ErrorIs(t, send(method, pools), errNotLeader, method)
	}
	require.NoError(t, send(http.MethodGet, pools), "a replica that waits fills its caches")
	require.NoError(t, send(http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews"), "and its metrics are read")
	require.NoError(t, send(http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews"))
	require.NoError(t, l.Update(t.Context(), heldBy(own)))
	for _, method := range writing {
		require.NoError(t, send(method, pools), method)
	}
}

// readerFunc reads by a function.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(into []byte) (int, error) { return f(into) }

// TestCTL04FenceOfSentRequests: a request that was let through is not completed when the Lease has run out on the way.
func TestCTL04FenceOfSentRequests(t *testing.T) {
	complete := make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		_, err := io.ReadAll(request.Body)
		complete <- err == nil
	}))
	defer server.Close()
	l := newLeadership(&paperLease{}, term)
	require.NoError(t, l.Update(t.Context(), heldBy(own)))
	body := readerFunc(func(into []byte) (int, error) {
		require.NoError(t, l.Update(t.Context(), heldBy("")))
		return copy(into, "{"), nil
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, server.URL, body)
	require.NoError(t, err)
	_, err = (&http.Client{Transport: l.fence(http.DefaultTransport)}).Do(request) //nolint:bodyclose // there is no answer
	require.ErrorIs(t, err, errNotLeader)
	require.False(t, <-complete)
}
