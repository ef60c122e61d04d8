package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/health_check/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// What holds in Envoy when the configuration says nothing.
const (
	defaultRequestTimeout = 15 * time.Second
	defaultIdleTimeout    = 5 * time.Minute
	connectTimeout        = 10 * time.Second
)

var (
	errRequestTimeout = errors.New("the request took longer than its route allows")
	errIdleTimeout    = errors.New("nothing moved for longer than the route allows")
)

// proxy answers requests as the configuration says.
type proxy struct {
	transport http.RoundTripper
	log       *slog.Logger
}

func newProxy(log *slog.Logger) *proxy {
	dialer := &net.Dialer{Timeout: connectTimeout}
	return &proxy{
		transport: &http.Transport{DialContext: dialer.DialContext, DisableCompression: true, MaxIdleConnsPerHost: 100},
		log:       log,
	}
}

func (p *proxy) serve(configuration *store, manager *hcmv3.HttpConnectionManager, w http.ResponseWriter, r *http.Request) {
	if path := healthPath(manager); path != "" && path == r.URL.Path {
		return
	}
	recorder := &recorder{ResponseWriter: w}
	entry := &access{start: time.Now()}
	// A backend's broken answer reaches the client as a broken connection, by way of a panic.
	defer func() { p.logAccess(recorder, r, entry) }()
	switch {
	case hasUnderscoreHeader(r.Header):
		http.Error(recorder, "a header's name has an underscore", http.StatusBadRequest)
		return
	case hasEscapedSlash(r.URL):
		// Envoy takes a backslash for a slash, so the target has none left that would be redirected again.
		target := url.URL{Path: normalise(strings.ReplaceAll(r.URL.Path, `\`, "/")), RawQuery: r.URL.RawQuery}
		recorder.Header().Set("Location", target.String())
		recorder.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	r.URL.Path, r.URL.RawPath = normalise(r.URL.Path), ""
	route := findRoute(configuration.routes(manager), r.Host, r.URL.Path)
	if route == nil {
		recorder.WriteHeader(http.StatusNotFound)
		return
	}
	entry.route = route.GetName()
	switch action := route.GetAction().(type) {
	case *routev3.Route_DirectResponse:
		recorder.WriteHeader(int(action.DirectResponse.GetStatus()))
		_, _ = recorder.Write([]byte(action.DirectResponse.GetBody().GetInlineString()))
	case *routev3.Route_Redirect:
		recorder.Header().Set("Location", redirectTarget(action.Redirect, r))
		recorder.WriteHeader(redirectCodes[action.Redirect.GetResponseCode()])
	case *routev3.Route_Route:
		entry.upstream = pick(configuration, action.Route.GetCluster())
		p.forward(entry.upstream, limitsOf(action.Route, manager), recorder, r)
	}
}

// pick returns the address of one of a cluster's endpoints, or nothing.
func pick(configuration *store, cluster string) string {
	var addresses []string
	for _, locality := range configuration.assignment(cluster).GetEndpoints() {
		for _, endpoint := range locality.GetLbEndpoints() {
			switch endpoint.GetHealthStatus() {
			case corev3.HealthStatus_UNKNOWN, corev3.HealthStatus_HEALTHY, corev3.HealthStatus_DEGRADED:
				addresses = append(addresses, socketAddress(endpoint.GetEndpoint().GetAddress()))
			}
		}
	}
	if len(addresses) == 0 {
		return ""
	}
	return addresses[rand.IntN(len(addresses))]
}

// limits are the times that a request may take; zero means for ever.
type limits struct {
	request time.Duration
	idle    time.Duration
}

func limitsOf(route *routev3.RouteAction, manager *hcmv3.HttpConnectionManager) limits {
	return limits{
		request: orDefault(defaultRequestTimeout, route.GetTimeout()),
		idle:    orDefault(defaultIdleTimeout, route.GetIdleTimeout(), manager.GetStreamIdleTimeout()),
	}
}

// orDefault returns the first duration that is set.
func orDefault(fallback time.Duration, set ...*durationpb.Duration) time.Duration {
	for _, duration := range set {
		if duration != nil {
			return duration.AsDuration()
		}
	}
	return fallback
}

// forward passes a request on, as it comes and without an end of its own, and its answer back.
func (p *proxy) forward(upstream string, limits limits, w http.ResponseWriter, r *http.Request) {
	if upstream == "" {
		http.Error(w, "no healthy upstream", http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	if limits.request > 0 {
		timer := time.AfterFunc(limits.request, func() { cancel(errRequestTimeout) })
		defer timer.Stop()
	}
	alive := func() {}
	if limits.idle > 0 {
		timer := time.AfterFunc(limits.idle, func() { cancel(errIdleTimeout) })
		defer timer.Stop()
		alive = func() { timer.Reset(limits.idle) }
	}
	r.Body = &watched{ReadCloser: r.Body, alive: alive}
	// An answer may begin before its request has ended. Where the protocol always allows that there is nothing to enable.
	_ = http.NewResponseController(w).EnableFullDuplex()
	reverse := httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host = "http", upstream
			pr.Out.Host = pr.In.Host
			// The client's own address goes behind what the client claims.
			pr.Out.Header["X-Forwarded-For"] = pr.In.Header["X-Forwarded-For"]
			pr.SetXForwarded()
		},
		Transport:     p.transport,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
		ModifyResponse: func(response *http.Response) error {
			alive()
			response.Body = &watched{ReadCloser: response.Body, alive: alive}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			if cause := context.Cause(ctx); errors.Is(cause, errRequestTimeout) || errors.Is(cause, errIdleTimeout) {
				http.Error(w, cause.Error(), http.StatusGatewayTimeout)
				return
			}
			http.Error(w, "upstream connect error", http.StatusServiceUnavailable)
		},
	}
	reverse.ServeHTTP(w, r.WithContext(ctx))
}

// watched tells when bytes move. After an upgrade it is the backend's connection, which is written to as well.
type watched struct {
	io.ReadCloser
	alive func()
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.alive()
	return n, err
}

// Write implements io.Writer.
func (w *watched) Write(p []byte) (int, error) {
	w.alive()
	connection, ok := w.ReadCloser.(io.Writer)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	return connection.Write(p)
}

// healthPath returns the path at which a connection manager answers that all is well, if it has one.
func healthPath(manager *hcmv3.HttpConnectionManager) string {
	var filter healthv3.HealthCheck
	for _, candidate := range manager.GetHttpFilters() {
		if !candidate.GetTypedConfig().MessageIs(&filter) || candidate.GetTypedConfig().UnmarshalTo(&filter) != nil {
			continue
		}
		for _, header := range filter.GetHeaders() {
			if header.GetName() == ":path" {
				return header.GetStringMatch().GetExact()
			}
		}
	}
	return ""
}

// hasUnderscoreHeader reports what Envoy Gateway refuses: some programs take X_Y for X-Y.
func hasUnderscoreHeader(header http.Header) bool {
	for name := range header {
		if strings.Contains(name, "_") {
			return true
		}
	}
	return false
}
