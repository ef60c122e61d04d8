package main

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/example-org/subrelay-operator/test/images/internal/httpjson"
)

// usageEvent has the field names of the real program's usage queue.
type usageEvent struct {
	Timestamp time.Time   `json:"timestamp"`
	LatencyMS int64       `json:"latency_ms"`
	Source    string      `json:"source"` // the provider's API key
	AuthIndex string      `json:"auth_index"`
	ClientIP  string      `json:"client_ip"`
	Tokens    usageTokens `json:"tokens"`
	Failed    bool        `json:"failed"`
	Provider  string      `json:"provider"`
	Model     string      `json:"model"`
	Alias     string      `json:"alias"`
	Endpoint  string      `json:"endpoint"`
	AuthType  string      `json:"auth_type"`
	RequestID string      `json:"request_id"`
}

type usageTokens struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	Total  int64 `json:"total_tokens"`
}

// usageQueue holds events in memory until somebody pops them or they are older
// than the retention. Events of a process that ends are lost.
type usageQueue struct {
	now func() time.Time

	mu     sync.Mutex
	events []queuedEvent
}

type queuedEvent struct {
	queuedAt time.Time
	event    usageEvent
}

func newUsageQueue() *usageQueue { return &usageQueue{now: time.Now} }

func (q *usageQueue) push(event usageEvent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events = append(q.events, queuedEvent{queuedAt: q.now(), event: event})
}

// pop removes and returns at most count of the oldest events, never nil.
func (q *usageQueue) pop(count int, retention time.Duration) []usageEvent {
	q.mu.Lock()
	defer q.mu.Unlock()
	oldest := q.now().Add(-retention)
	for len(q.events) > 0 && q.events[0].queuedAt.Before(oldest) {
		q.events = q.events[1:]
	}
	popped := []usageEvent{}
	for len(q.events) > 0 && len(popped) < count {
		popped = append(popped, q.events[0].event)
		q.events = q.events[1:]
	}
	return popped
}

func (s *server) popUsage(w http.ResponseWriter, r *http.Request) {
	count := 1
	if value := r.URL.Query().Get("count"); value != "" {
		var err error
		if count, err = strconv.Atoi(value); err != nil || count <= 0 {
			httpjson.Error(w, http.StatusBadRequest, "count must be a positive integer")
			return
		}
	}
	httpjson.Write(w, http.StatusOK, s.usage.pop(count, s.live.get().usageRetention()))
}

// recordUsage queues the event if somebody could ever fetch it: statistics are
// on and management is reachable.
func (s *server) recordUsage(event usageEvent) {
	cfg := s.live.get()
	managed := cfg.RemoteManagement.SecretKey != "" || s.managementPassword != ""
	if cfg.UsageStatisticsEnabled && managed {
		s.usage.push(event)
	}
}
