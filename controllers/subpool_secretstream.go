package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/example-org/subrelay-operator/internal/subpool"
)

// metadataOnly has no alternative: an API server that cannot leave out the values says so instead of sending them.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// secretStream is what the API server sends of a watch on one Secret. client-go's own watch has a goroutine, a channel and a
// decoder that live as long as it does, and there is one watch for each pool.
type secretStream struct {
	body io.Closer
	rest io.Reader
}

// secretStreamOpener watches the Secret of a pool from a version on; without one, the first event says what there is.
// The stream ends with ctx.
type secretStreamOpener func(ctx context.Context, poolID, since string) (*secretStream, error)

// newSecretStreamOpener returns an opener that uses the manager's connection.
func newSecretStreamOpener(mgr manager.Manager) (secretStreamOpener, error) {
	api, err := apiutil.RESTClientForGVK(corev1.SchemeGroupVersion.WithKind("Secret"), true, false,
		mgr.GetConfig(), serializer.NewCodecFactory(mgr.GetScheme()), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client for Secrets: %w", err)
	}
	return openerOf(api), nil
}

func openerOf(api rest.Interface) secretStreamOpener {
	return func(ctx context.Context, poolID, since string) (*secretStream, error) {
		body, err := api.Get().
			Namespace(subpool.NamespaceName(poolID)).Resource("secrets").
			Param("watch", "true").
			Param("fieldSelector", fields.OneTermEqualSelector(metav1.ObjectNameField, subpool.CredentialsName).String()).
			Param("resourceVersion", since).
			SetHeader("Accept", metadataOnly).
			Stream(ctx)
		if err != nil {
			return nil, err
		}
		return newSecretStream(body), nil
	}
}

func newSecretStream(body io.ReadCloser) *secretStream { return &secretStream{body: body, rest: body} }

// next waits for an event and returns the Secret that it is about. An error means that the stream has ended.
func (s *secretStream) next() (*metav1.PartialObjectMetadata, error) {
	var event metav1.WatchEvent
	decoder := json.NewDecoder(s.rest)
	if err := decoder.Decode(&event); err != nil {
		return nil, err
	}
	// The next event may not come for hours: the decoder's buffer is not kept until then.
	begun, err := io.ReadAll(decoder.Buffered())
	if err != nil {
		return nil, err
	}
	s.rest = io.MultiReader(bytes.NewReader(begun), s.rest)
	if event.Type == string(watch.Error) {
		status := &metav1.Status{}
		if err := json.Unmarshal(event.Object.Raw, status); err != nil {
			return nil, err
		}
		return nil, apierrors.FromObject(status)
	}
	secret := &metav1.PartialObjectMetadata{}
	return secret, json.Unmarshal(event.Object.Raw, secret)
}

func (s *secretStream) close() { _ = s.body.Close() }
