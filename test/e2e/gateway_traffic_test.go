//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// GW-01: an answer that comes in pieces for three minutes arrives whole and piece by piece, all the way from a provider
// outside through the shared Mihomo, cpa and the Gateway.
func TestGW01Stream(t *testing.T) {
	t.Parallel()
	const events, pause = 18, 10 * time.Second
	id := createReady(t, newPublishedPool("stream"))
	useProvider(t, id)
	e := throughGateway(t, id)
	awaitServed(t, e)

	ctx, cancel := context.WithTimeout(t.Context(), events*pause+readyBudget)
	defer cancel()
	body := fmt.Sprintf(`{"model":"small-model","stream":true,"events":%d,"pause_ms":%d}`, events, pause.Milliseconds())
	begin := time.Now()
	request, err := e.request(ctx, http.MethodPost, "/v1/chat/completions", key(t, id, "cpa_client_key"), body)
	require.NoError(t, err)
	response, err := (&http.Client{}).Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	assert.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))

	arrivals := []time.Duration{}
	last := ""
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
			arrivals, last = append(arrivals, time.Since(begin)), data
		}
	}
	require.Len(t, arrivals, events+1)
	assert.Equal(t, "[DONE]", last)
	for i, at := range arrivals[:events] {
		assert.InDelta(t, (time.Duration(i+1) * pause).Seconds(), at.Seconds(), pause.Seconds(), "event %d came when it was sent", i)
	}
	progress("a stream of %.0f s arrived whole through the Gateway", arrivals[events].Seconds())
}

// GW-09: large requests, upgrades and the way back from a sign-in pass the Gateway.
func TestGW09BodiesAndUpgrades(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPublishedPool("large"))
	useProvider(t, id)
	e := throughGateway(t, id)
	awaitServed(t, e)
	clientKey := key(t, id, "cpa_client_key")

	t.Run("20 MB", func(t *testing.T) {
		const size = 20 << 20
		body := `{"model":"small-model","messages":[{"role":"user","content":"` + strings.Repeat("x", size) + `"}]}`
		answer := e.ask(t, http.MethodPost, "/v1/chat/completions", clientKey, body)
		require.Equal(t, http.StatusOK, answer.status, answer.body)
		assert.Contains(t, answer.body, fmt.Sprintf(`"prompt_tokens":%d`, size), "all of it came to the provider")
	})
	t.Run("WebSocket", func(t *testing.T) {
		address := strings.Replace(e.url, "http://", "ws://", 1) + "/v1/ws"
		_, refusal, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{Host: e.host}) //nolint:bodyclose // Dial closes it.
		require.Error(t, err)
		assert.Equal(t, http.StatusUnauthorized, refusal.StatusCode, "without a key")
		connection, _, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{ //nolint:bodyclose // Dial closes it.
			Host: e.host, HTTPHeader: http.Header{"Authorization": {"Bearer " + clientKey}},
		})
		require.NoError(t, err)
		defer func() { _ = connection.CloseNow() }()
		for _, said := range []string{"hello", strings.Repeat("y", 16<<10)} {
			require.NoError(t, connection.Write(t.Context(), websocket.MessageText, []byte(said)))
			_, heard, err := connection.Read(t.Context())
			require.NoError(t, err)
			assert.Equal(t, said, string(heard))
		}
	})
	t.Run("callback", func(t *testing.T) {
		for _, provider := range []string{"anthropic", "antigravity", "codex"} {
			assert.Equal(t, http.StatusOK, e.status(t, "/"+provider+"/callback?code=a&state=b", ""))
		}
	})
}

// GW-09: a suspended pool is not served, and answers are clean; a resumed one is served again without a burst of errors;
// and of many quick changes the last one counts.
func TestGW09Suspend(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPublishedPool("withdrawn"))
	e := throughGateway(t, id)
	awaitServed(t, e)
	record := askAllTheTime(t, e)

	suspended := time.Now()
	suspend(t, id, true)
	awaitCondition(t, id, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	awaitNoPod(t, id)
	resumed := time.Now()
	suspend(t, id, false)
	awaitReady(t, id)
	record.awaitServed(t, resumed)
	served := time.Now()
	for i := range 20 {
		suspend(t, id, i%2 == 0)
	}
	awaitReady(t, id)
	awaitServed(t, e)
	suspend(t, id, true)
	awaitCondition(t, id, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	awaitNoPod(t, id)
	assert.Equal(t, http.StatusNotFound, e.status(t, "/healthz", ""))

	record.between(t, suspended.Add(healBudget), resumed, http.StatusNotFound, http.StatusServiceUnavailable)
	record.between(t, record.first(t, resumed, http.StatusOK), served, http.StatusOK)
	record.between(t, suspended, served, http.StatusOK, http.StatusNotFound, http.StatusServiceUnavailable)
}

// answers are what a client got that asks all the time.
type answers struct {
	mu   sync.Mutex
	seen []sample
}

type sample struct {
	at     time.Time
	status int
}

// askAllTheTime asks for the pool's health until the test ends. A request that gets no answer counts as status 0.
func askAllTheTime(t *testing.T, e *edge) *answers {
	t.Helper()
	record := &answers{}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ticker := time.NewTicker(tick); ; {
			select {
			case <-ctx.Done():
				ticker.Stop()
				return
			case <-ticker.C:
				at, status := time.Now(), e.statusOrNone(ctx)
				if ctx.Err() == nil {
					record.add(sample{at, status})
				}
			}
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	return record
}

// statusOrNone asks for the pool's health; 0 if nobody answers.
func (e *edge) statusOrNone(ctx context.Context) int {
	request, err := e.request(ctx, http.MethodGet, "/healthz", "", "")
	if err != nil {
		return 0
	}
	response, err := e.client.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close() // only the status counts
	return response.StatusCode
}

func (a *answers) add(s sample) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = append(a.seen, s)
}

// between checks that the requests of a time were all answered by one of the statuses.
func (a *answers) between(t *testing.T, from, to time.Time, allowed ...int) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	found := 0
	for _, s := range a.seen {
		if s.at.After(from) && s.at.Before(to) {
			found++
			assert.True(t, slices.Contains(allowed, s.status), "%s after the beginning: %d", s.at.Sub(from), s.status)
		}
	}
	assert.Positive(t, found, "requests from %s to %s", from, to)
}

// awaitServed waits until many requests in a row were served after a time.
func (a *answers) awaitServed(t *testing.T, after time.Time) {
	t.Helper()
	const many = 20
	eventually(t, readyBudget, func(c *assert.CollectT) {
		a.mu.Lock()
		defer a.mu.Unlock()
		require.GreaterOrEqual(c, len(a.seen), many)
		newest := a.seen[len(a.seen)-many:]
		assert.True(c, newest[0].at.After(after))
		assert.False(c, slices.ContainsFunc(newest, func(s sample) bool { return s.status != http.StatusOK }))
	})
}

// first is when the status was seen first after a time.
func (a *answers) first(t *testing.T, after time.Time, status int) time.Time {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	index := slices.IndexFunc(a.seen, func(s sample) bool { return s.at.After(after) && s.status == status })
	require.GreaterOrEqual(t, index, 0)
	return a.seen[index].at
}
