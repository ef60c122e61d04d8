package presence

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/example-org/subrelay-operator/test/scale/internal/objects"
)

var (
	secrets  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	services = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

func newWatch() *Watch {
	return &Watch{waiting: map[objects.Key]map[*Expectation]struct{}{}, failed: make(chan struct{})}
}

func feed(t *testing.T, w *Watch, resource schema.GroupVersionResource, kind watch.EventType, name string) {
	events := make(chan watch.Event, 1)
	events <- watch.Event{Type: kind, Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}}
	close(events)
	require.NoError(t, w.follow(resource, events))
}

// An expectation is met by the last of its objects, each by the right resource, name and event.
func TestExpect(t *testing.T) {
	w := newWatch()
	met := w.Expect(There, objects.Key{Resource: secrets, Namespace: "ns", Name: "a"}, objects.Key{Resource: services, Namespace: "ns", Name: "a"})
	feed(t, w, secrets, watch.Added, "a")
	feed(t, w, services, watch.Added, "b")
	feed(t, w, services, watch.Deleted, "a")
	_, err := met.Wait(t.Context(), time.Millisecond)
	require.ErrorContains(t, err, "services")
	assert.Empty(t, w.waiting, "an expectation that was given up")

	met = w.Expect(There, objects.Key{Resource: services, Namespace: "ns", Name: "a"})
	before := time.Now()
	feed(t, w, services, watch.Modified, "a")
	at, err := met.Wait(t.Context(), time.Minute)
	require.NoError(t, err)
	assert.False(t, at.Before(before))
	assert.Empty(t, w.waiting, "an expectation that was met")
}
