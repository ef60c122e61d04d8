package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Behind returns the cluster as operators see it whose calls all go through meddle, until ctx ends. The administrator's
// do not. Each call has the connection for itself, so that ending one disturbs no other.
func (c *Cluster) Behind(ctx context.Context, meddle func(http.Handler) http.Handler) (*Cluster, error) {
	target, err := url.Parse(c.Config.Host)
	if err != nil {
		return nil, fmt.Errorf("read the API server's address: %w", err)
	}
	tls, err := rest.TLSConfigFor(rest.AnonymousClientConfig(c.Config))
	if err != nil {
		return nil, fmt.Errorf("trust the API server: %w", err)
	}
	quiet := log.New(io.Discard, "", 0) // calls that are cut off are what this is for
	transport := &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true}
	proxy := httptest.NewUnstartedServer(meddle(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorLog:      quiet,
	}))
	proxy.Config.ErrorLog = quiet
	proxy.StartTLS()
	context.AfterFunc(ctx, func() {
		proxy.CloseClientConnections()
		proxy.Close()
		transport.CloseIdleConnections()
	})

	behind := *c
	behind.Config = &rest.Config{Host: proxy.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw}),
	}}
	return &behind, nil
}

// Cut ends the call without an answer.
func Cut() { panic(http.ErrAbortHandler) }

// LoseAnswer lets the API server do what it is asked for, and ends the call without an answer.
func LoseAnswer(next http.Handler, request *http.Request) {
	next.ServeHTTP(httptest.NewRecorder(), request)
	Cut()
}

var poolPath = regexp.MustCompile(`/(?:namespaces/subpool-|subpools/)([a-z0-9-]+)`)

// WrittenPool returns the id of the pool of which a call is to change something: its SubPool, its namespace or something in
// there. It is empty for other calls. The request can still be sent on.
func WrittenPool(request *http.Request) (string, error) {
	if request.Method == http.MethodGet {
		return "", nil
	}
	if found := poolPath.FindStringSubmatch(request.URL.Path); found != nil {
		return found[1], nil
	}
	if request.Method != http.MethodPost || request.URL.Path != "/api/v1/namespaces" {
		return "", nil
	}
	content, err := io.ReadAll(request.Body)
	if err != nil {
		return "", fmt.Errorf("read the Namespace that is to be made: %w", err)
	}
	request.Body = io.NopCloser(bytes.NewReader(content))
	namespace := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(content, namespace); err != nil {
		return "", fmt.Errorf("read the Namespace that is to be made: %w", err)
	}
	return strings.TrimPrefix(namespace.Name, NamespaceOf("")), nil
}
