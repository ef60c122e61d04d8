package controllers

import (
	"context"
	"encoding/json"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/example-org/subrelay-operator/internal/subpool"
)

// secretServer is an API server on which each watch can be made to say something.
type secretServer struct {
	opened  chan *toldStream
	refuses atomic.Bool
	// since is the version from which the last watch was opened.
	since string
}

// toldStream is the server's end of a stream.
type toldStream struct {
	*io.PipeWriter

	closed <-chan struct{} // when the operator has closed its end
}

func newSecretServer() *secretServer { return &secretServer{opened: make(chan *toldStream, 1)} }

func (s *secretServer) open(ctx context.Context, _, since string) (*secretStream, error) {
	if s.refuses.Load() {
		return nil, apierrors.NewForbidden(corev1.Resource("secrets"), "", nil)
	}
	s.since = since
	reader, writer := io.Pipe()
	closed, closes := context.WithCancel(context.Background())
	context.AfterFunc(ctx, func() { _ = reader.CloseWithError(ctx.Err()) })
	s.opened <- &toldStream{writer, closed.Done()}
	return newSecretStream(pipeBody{reader, closes}), nil
}

type pipeBody struct {
	*io.PipeReader

	closes context.CancelFunc
}

func (b pipeBody) Close() error {
	b.closes()
	return b.PipeReader.Close()
}

// says sends an event.
func (s *toldStream) says(kind watch.EventType, object any) {
	raw, err := json.Marshal(object)
	if err == nil {
		err = json.NewEncoder(s).Encode(metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: raw}})
	}
	if err != nil {
		_ = s.CloseWithError(err)
	}
}

func secretMetadata(uid types.UID, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
}

// TestCFG01CredentialWatches: what was read holds until the watch says anything, and then the pool is looked at again.
func TestCFG01CredentialWatches(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old").Status()
	for name, happens := range map[string]func(*toldStream){
		"changed":                     func(s *toldStream) { s.says(watch.Modified, secretMetadata("1", "8")) },
		"deleted":                     func(s *toldStream) { s.says(watch.Deleted, secretMetadata("1", "9")) },
		"forgotten by the API server": func(s *toldStream) { s.says(watch.Error, &expired) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newSecretServer()
				watches := newCredentialWatches(server.open)
				read := credentialsOf(&corev1.Secret{ObjectMeta: secretMetadata("1", "7").ObjectMeta})
				watches.remember("demo-pool", read)
				for range 3 { // the API server ends a watch now and then
					opened := <-server.opened
					require.Equal(t, "7", server.since, "nothing that happened since the reading is missed")
					current, holds := watches.current("demo-pool")
					require.True(t, holds)
					require.Equal(t, read, current)
					require.NoError(t, opened.Close())
				}

				opened := <-server.opened
				happens(opened)
				require.Equal(t, "demo-pool", (<-watches.events).Object.GetName())
				_, holds := watches.current("demo-pool")
				require.False(t, holds)
				_, holds = watches.recognise(t.Context(), "demo-pool", &appsv1.StatefulSet{})
				require.False(t, holds)
				require.Empty(t, server.opened, "a Secret that changed is read at once")
				<-opened.closed
			})
		})
	}
}

// What was read is not taken for granted while nothing says that it still holds.
func TestCFG01BlindCredentialWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newSecretServer()
		server.refuses.Store(true)
		watches := newCredentialWatches(server.open)
		watches.remember("demo-pool", credentialsOf(&corev1.Secret{ObjectMeta: secretMetadata("1", "7").ObjectMeta}))
		synctest.Wait()
		_, holds := watches.current("demo-pool")
		require.False(t, holds)

		server.refuses.Store(false)
		<-server.opened
		synctest.Wait()
		_, holds = watches.current("demo-pool")
		require.True(t, holds)
		watches.stop("demo-pool")
	})
}

// TestCFG01CredentialsAreRecognised: the Secret that a StatefulSet uses need not be read again, and no other one is taken for it.
func TestCFG01CredentialsAreRecognised(t *testing.T) {
	for name, c := range map[string]struct {
		says func(*toldStream)
		want bool
	}{
		"the same":    {func(s *toldStream) { s.says(watch.Added, secretMetadata("1", "8")) }, true},
		"another one": {func(s *toldStream) { s.says(watch.Added, secretMetadata("2", "8")) }, false},
		"none":        {func(*toldStream) {}, false},
		"no answer":   {func(s *toldStream) { _ = s.Close() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newSecretServer()
				watches := newCredentialWatches(server.open)
				go func() { c.says(<-server.opened) }()
				workload := &appsv1.StatefulSet{}
				workload.Spec.Template.Annotations = map[string]string{"subrelay.example.com/credentials": "1"}
				known, ok := watches.recognise(t.Context(), "demo-pool", workload)
				require.Equal(t, c.want, ok)
				require.Empty(t, server.since, "what there is counts, not only what happens")
				_, holds := watches.current("demo-pool")
				require.Equal(t, c.want, holds)
				if c.want {
					require.Equal(t, "8", known.ResourceVersion)
				}
				watches.stop("demo-pool")
				_, holds = watches.current("demo-pool")
				require.False(t, holds)
			})
		})
	}
}

// No value outlives the look at it.
func TestCredentialsKeepNoValue(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "subpool-credentials", UID: "1", Annotations: map[string]string{"copy": "secret"}},
		Data:       map[string][]byte{subpool.KeyCPAClient: []byte("secret"), subpool.KeyCPAMPAdmin: {}},
	}
	kept := credentialsOf(secret)
	require.Equal(t, []string{subpool.KeyCPAManagement, subpool.KeyCPAMPAdmin}, kept.empty)
	require.Empty(t, kept.Annotations)
	require.NotContains(t, kept.String(), "secret")
}
