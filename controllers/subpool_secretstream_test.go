package controllers

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// openFrom opens the stream of demo-pool's Secret at a server that answers with a status and a body.
func openFrom(t *testing.T, code int, body string) (*secretStream, *http.Request, error) {
	t.Helper()
	var request *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request = r
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, err := w.Write([]byte(body))
		assert.NoError(t, err)
	}))
	t.Cleanup(server.Close)
	version := schema.GroupVersion{Version: "v1"}
	api, err := rest.RESTClientFor(&rest.Config{Host: server.URL, APIPath: "/api", ContentConfig: rest.ContentConfig{
		GroupVersion: &version, NegotiatedSerializer: clientgoscheme.Codecs.WithoutConversion(),
	}})
	require.NoError(t, err)
	opened, err := openerOf(api)(t.Context(), "demo-pool", "7")
	return opened, request, err
}

func TestSecretStream(t *testing.T) {
	opened, request, err := openFrom(t, http.StatusOK,
		`{"type":"ADDED","object":{"metadata":{"uid":"1"}}}`+"\n"+
			`{"type":"MODIFIED","object":{"metadata":{"uid":"2"}}}`+"\n"+
			`{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}`+"\n")
	require.NoError(t, err)
	t.Cleanup(opened.close)
	assert.Equal(t, "/api/v1/namespaces/subpool-demo-pool/secrets", request.URL.Path)
	assert.Equal(t, "fieldSelector=metadata.name%3Dsubpool-credentials&resourceVersion=7&watch=true", request.URL.RawQuery)
	assert.Equal(t, []string{"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}, request.Header["Accept"], "no values")
	for _, uid := range []types.UID{"1", "2"} {
		secret, err := opened.next()
		require.NoError(t, err)
		assert.Equal(t, uid, secret.UID)
	}
	_, err = opened.next()
	assert.True(t, gone(err), err)
}

func TestSecretStreamIsRefused(t *testing.T) {
	_, _, err := openFrom(t, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden"}`)
	require.True(t, apierrors.IsForbidden(err), err)
}

// A stream that breaks off, or says what no API server says, has ended.
func TestSecretStreamBreaksOff(t *testing.T) {
	for name, body := range map[string]string{
		"at once":                 "",
		"inside an event":         `{"type":"ADDED","obj`,
		"with an unclear object":  `{"type":"ADDED","object":[]}`,
		"with an unclear failure": `{"type":"ERROR","object":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			opened, _, err := openFrom(t, http.StatusOK, body)
			require.NoError(t, err)
			t.Cleanup(opened.close)
			_, err = opened.next()
			require.Error(t, err)
			assert.False(t, gone(err), err)
		})
	}
}
