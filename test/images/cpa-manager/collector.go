package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	firstBackoff   = time.Second
	longestBackoff = 30 * time.Second
	pollTimeout    = 30 * time.Second
)

// States of the collector, as /status names them.
const (
	stateStopped  = "stopped" // the connection to cpa is not configured
	stateStarting = "starting"
	stateRunning  = "running"
	stateError    = "error"
)

type collectorStatus struct {
	Collector      string `json:"collector"`
	Upstream       string `json:"upstream"`
	Mode           string `json:"mode"`
	Transport      string `json:"transport"`
	LastConsumedAt int64  `json:"lastConsumedAt"` // Unix time in milliseconds
	LastInsertedAt int64  `json:"lastInsertedAt"` // Unix time in milliseconds
	TotalInserted  int64  `json:"totalInserted"`
	LastError      string `json:"lastError,omitempty"`
}

// collector moves usage events from cpa's queue to the database.
type collector struct {
	cfg    config
	db     *store
	client *http.Client
	wait   func(context.Context, time.Duration) // returns early when the context ends

	mu     sync.Mutex
	status collectorStatus
}

func newCollector(cfg config, db *store) *collector {
	return &collector{
		cfg:    cfg,
		db:     db,
		client: &http.Client{Timeout: pollTimeout},
		wait:   wait,
		status: collectorStatus{Collector: stateStopped, Mode: "http"},
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// run polls until ctx ends. A failed poll is repeated after 1, 2, 4 ... 30 s; a
// full batch is followed by the next poll at once.
func (c *collector) run(ctx context.Context) {
	if !c.cfg.configured() {
		return
	}
	c.update(func(status *collectorStatus) {
		status.Collector = stateStarting
		status.Upstream = c.cfg.upstream.String()
		status.Transport = "http"
	})
	backoff := firstBackoff
	for ctx.Err() == nil {
		popped, err := c.poll(ctx)
		if err != nil {
			c.failed(err)
			c.wait(ctx, backoff)
			backoff = min(2*backoff, longestBackoff)
			continue
		}
		backoff = firstBackoff
		if popped < c.cfg.batchSize {
			c.wait(ctx, c.cfg.pollInterval)
		}
	}
}

// poll pops one batch of events and stores it. It returns the batch's size.
func (c *collector) poll(ctx context.Context) (int, error) {
	events, err := c.pop(ctx)
	if err != nil {
		return 0, err
	}
	added, err := c.db.addEvents(ctx, events)
	if err != nil {
		return 0, err
	}
	c.update(func(status *collectorStatus) {
		status.Collector = stateRunning
		status.LastError = ""
		if len(events) > 0 {
			status.LastConsumedAt = time.Now().UnixMilli()
		}
		if added > 0 {
			status.LastInsertedAt = time.Now().UnixMilli()
			status.TotalInserted += added
		}
	})
	return len(events), nil
}

func (c *collector) pop(ctx context.Context) ([]json.RawMessage, error) {
	address := c.cfg.upstream.JoinPath("/v0/management/usage-queue")
	address.RawQuery = "count=" + strconv.Itoa(c.cfg.batchSize)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.cfg.managementKey)
	response, err := c.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1024)) // a help for the reader, nothing more
		return nil, fmt.Errorf("usage queue request failed: %s: %s", response.Status, strings.TrimSpace(string(body)))
	}
	var events []json.RawMessage
	if err := json.NewDecoder(response.Body).Decode(&events); err != nil {
		return nil, fmt.Errorf("usage queue answer: %w", err)
	}
	return events, nil
}

func (c *collector) failed(err error) {
	c.update(func(status *collectorStatus) {
		status.Collector = stateError
		status.LastError = "http: " + err.Error()
	})
}

func (c *collector) update(change func(*collectorStatus)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.status)
}

func (c *collector) currentStatus() collectorStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}
