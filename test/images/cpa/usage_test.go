package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func models(events []usageEvent) []string {
	names := []string{}
	for _, event := range events {
		names = append(names, event.Model)
	}
	return names
}

func TestUsageQueue(t *testing.T) {
	now := time.Now()
	queue := newUsageQueue()
	queue.now = func() time.Time { return now }
	queue.push(usageEvent{Model: "too old"})
	now = now.Add(time.Minute)
	for _, model := range []string{"a", "b", "c"} {
		queue.push(usageEvent{Model: model})
	}
	assert.Equal(t, []string{"a", "b"}, models(queue.pop(2, 30*time.Second)))
	assert.Equal(t, []string{"c"}, models(queue.pop(2, 30*time.Second)))
	assert.Equal(t, []string{}, models(queue.pop(2, 30*time.Second)))
}

func TestUsageQueueOverHTTP(t *testing.T) {
	s, url := startDefault(t)
	url += "/v0/management/usage-queue"
	assert.Equal(t, "[]\n", call(t, "GET", url+"?count=5", "", withManagementKey()...).body)

	s.recordUsage(usageEvent{Model: "a"})
	s.recordUsage(usageEvent{Model: "b"})
	for _, want := range []string{"a", "b"} {
		var events []usageEvent
		call(t, "GET", url, "", withManagementKey()...).decode(t, &events)
		assert.Equal(t, []string{want}, models(events), "one event without count")
	}
	for _, count := range []string{"0", "-1", "many"} {
		assert.Equal(t, http.StatusBadRequest, call(t, "GET", url+"?count="+count, "", withManagementKey()...).status)
	}
}

func TestUsageIsNotRecordedWhenSwitchedOff(t *testing.T) {
	for name, replacement := range map[string][]string{
		"no statistics": {"usage-statistics-enabled: true", "usage-statistics-enabled: false"},
		"no management": {managementKey, ""},
	} {
		s, _ := startDefault(t, replacement...)
		s.recordUsage(usageEvent{Model: "a"})
		assert.Empty(t, s.usage.pop(1, time.Hour), name)
	}
}
