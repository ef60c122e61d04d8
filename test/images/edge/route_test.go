package main

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
)

// routes are as the controller makes them, for a pool whose management is not published and for a class-wide fallback.
const routes = `{
  "name": "front/edge/http",
  "ignorePortInHostMatching": true,
  "virtualHosts": [
    {"name": "pool", "domains": ["demo-pool.example.com"], "routes": [
      {"name": "page", "match": {"path": "/management.html"}, "directResponse": {"status": 500}},
      {"name": "management", "match": {"pathSeparatedPrefix": "/v0/management"}, "directResponse": {"status": 500}},
      {"name": "all", "match": {"prefix": "/"}, "route": {"cluster": "pool", "timeout": "0s", "idleTimeout": "0s"}}]},
    {"name": "below", "domains": ["*.example.com"], "routes": [{"name": "wild", "match": {"prefix": "/"}, "directResponse": {"status": 404}}]},
    {"name": "far below", "domains": ["*.deep.example.com"], "routes": [{"name": "wilder", "match": {"prefix": "/"}, "directResponse": {"status": 404}}]}
  ]
}`

func parseRoutes(t *testing.T, text string) *routev3.RouteConfiguration {
	t.Helper()
	var parsed routev3.RouteConfiguration
	require.NoError(t, protojson.Unmarshal([]byte(text), &parsed))
	return &parsed
}

func TestTheFirstRouteOfTheBestHostAnswers(t *testing.T) {
	configuration := parseRoutes(t, routes)
	require.NoError(t, checkRoutes(configuration))
	for _, test := range []struct{ host, path, route string }{
		{"demo-pool.example.com", "/v1/models", "all"},
		{"Demo-Pool.example.com:8080", "/", "all"},
		{"demo-pool.example.com", "/v0/management", "management"},
		{"demo-pool.example.com", "/v0/management/config.yaml", "management"},
		{"demo-pool.example.com", "/v0/managementx", "all"},
		{"demo-pool.example.com", "/V0/management", "all"},
		{"demo-pool.example.com", "/management.html", "page"},
		{"demo-pool.example.com", "/management.html/", "all"},
		{"other.example.com", "/", "wild"},
		{"other.deep.example.com", "/", "wilder"},
		{"example.com", "/", ""},
		{"example.org", "/", ""},
	} {
		require.Equal(t, test.route, findRoute(configuration, test.host, test.path).GetName(), "%s%s", test.host, test.path)
	}
}

func TestWhatCannotBeFollowedIsRefused(t *testing.T) {
	for complaint, route := range map[string]string{
		"paths are matched by":            `{"match": {"safeRegex": {"regex": "/a.*"}}, "directResponse": {"status": 200}}`,
		"more than their path":            `{"match": {"prefix": "/", "headers": [{"name": "x", "presentMatch": true}]}, "directResponse": {"status": 200}}`,
		"a cluster is chosen":             `{"match": {"prefix": "/"}, "route": {"weightedClusters": {"clusters": [{"name": "a", "weight": 1}]}}}`,
		"which this stand-in does not do": `{"match": {"prefix": "/"}, "route": {"cluster": "a", "prefixRewrite": "/x"}}`,
		"is unknown":                      `{"match": {"prefix": "/"}, "nonForwardingAction": {}}`,
	} {
		configuration := parseRoutes(t, `{"virtualHosts": [{"name": "h", "domains": ["*"], "routes": [`+route+`]}]}`)
		require.ErrorContains(t, checkRoutes(configuration), complaint)
	}
}

func TestPathsAreNormalised(t *testing.T) {
	for path, want := range map[string]string{
		"": "/", "/": "/", "/a/": "/a/", "//v0//management": "/v0/management", "/v0/./management/../management/": "/v0/management/",
		"/../..": "/", "/v1/chat/completions": "/v1/chat/completions",
	} {
		require.Equal(t, want, normalise(path), path)
	}
}

func TestRedirects(t *testing.T) {
	for _, test := range []struct{ action, from, want string }{
		{`{"httpsRedirect": true}`, "http://pool.example.com:80/v1?a=b", "https://pool.example.com/v1?a=b"},
		{`{"schemeRedirect": "https", "portRedirect": 443}`, "http://pool.example.com/", "https://pool.example.com/"},
		{`{"schemeRedirect": "https", "portRedirect": 8443}`, "http://pool.example.com/", "https://pool.example.com:8443/"},
		{`{"pathRedirect": "/healthz", "stripQuery": true}`, "https://pool.example.com/x?a=b", "https://pool.example.com/healthz"},
		{`{"hostRedirect": "other.example.com"}`, "http://pool.example.com/x", "http://other.example.com/x"},
	} {
		var action routev3.RedirectAction
		require.NoError(t, protojson.Unmarshal([]byte(test.action), &action))
		request := httptest.NewRequest(http.MethodGet, test.from, nil)
		if request.URL.Scheme == "https" {
			request.TLS = &tls.ConnectionState{}
		}
		require.Equal(t, test.want, redirectTarget(&action, request), test.action)
	}
}
