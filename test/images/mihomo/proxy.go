package main

import (
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/elazarl/goproxy"
)

// proxy is the forward proxy of the port.
type proxy struct {
	routes atomic.Pointer[router]
	users  []string // user:password; empty: everybody may use the proxy
	log    *slog.Logger
}

func newProxy(routes *router, users []string, log *slog.Logger) *proxy {
	p := &proxy{users: users, log: log}
	p.routes.Store(routes)
	return p
}

func (p *proxy) handler() http.Handler {
	forward := goproxy.NewProxyHttpServer()
	forward.Logger = slog.NewLogLogger(p.log.Handler(), slog.LevelDebug)
	forward.KeepAcceptEncoding = true
	forward.NonproxyHandler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
	})
	forward.OnRequest().HijackConnect(p.tunnel)
	forward.OnRequest().DoFunc(func(r *http.Request, ctx *goproxy.ProxyCtx) (*http.Request, *http.Response) {
		ctx.RoundTripper = goproxy.RoundTripperFunc(p.forward)
		return r, nil
	})
	forward.OnResponse().DoFunc(func(response *http.Response, ctx *goproxy.ProxyCtx) *http.Response {
		if response == nil {
			return goproxy.NewResponse(ctx.Req, goproxy.ContentTypeText, http.StatusBadGateway, "")
		}
		return response
	})
	return p.authenticate(forward)
}

// authenticate answers 407 without credentials and 403 with wrong ones.
func (p *proxy) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(p.users) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		offered := r.Header.Get("Proxy-Authorization")
		if offered == "" {
			w.Header().Set("Proxy-Authenticate", "Basic")
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		if !p.isUser(offered) {
			p.log.Info("proxy authentication failed", "client", r.RemoteAddr)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (p *proxy) isUser(proxyAuthorization string) bool {
	// BasicAuth parses the Authorization header, which has the same format.
	parser := http.Request{Header: http.Header{"Authorization": {proxyAuthorization}}}
	name, password, ok := parser.BasicAuth()
	if !ok {
		return false
	}
	known := 0
	for _, user := range p.users {
		known |= subtle.ConstantTimeCompare([]byte(user), []byte(name+":"+password))
	}
	return known == 1
}

// forward sends a plain HTTP request over a connection of its own, so that
// every request is judged by the rules and logged.
func (p *proxy) forward(r *http.Request, _ *goproxy.ProxyCtx) (*http.Response, error) {
	transport := &http.Transport{
		DisableKeepAlives:  true,
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, hostPort string) (net.Conn, error) {
			return p.dial(ctx, r, hostPort)
		},
	}
	return transport.RoundTrip(r)
}

// tunnel serves CONNECT. Like the real program it answers 200 before it dials,
// so a refused or dead target shows as a closed connection.
func (p *proxy) tunnel(r *http.Request, client net.Conn, _ *goproxy.ProxyCtx) {
	defer func() { _ = client.Close() }()
	if _, err := fmt.Fprintf(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	remote, err := p.dial(r.Context(), r, r.Host)
	if err != nil {
		return
	}
	defer func() { _ = remote.Close() }()
	var copying sync.WaitGroup
	copying.Go(func() { copyUntilEnd(remote, client) })
	copying.Go(func() { copyUntilEnd(client, remote) })
	copying.Wait()
}

// copyUntilEnd passes the end of the stream on and leaves the other direction
// open where the connection can do that.
func copyUntilEnd(to, from net.Conn) {
	_, _ = io.Copy(to, from) // either side going away is the normal end
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
}

// dial writes the access log: one line per connection with its source, target
// and decision.
func (p *proxy) dial(ctx context.Context, r *http.Request, hostPort string) (net.Conn, error) {
	conn, taken, err := p.routes.Load().dial(ctx, r.Method, hostPort)
	attributes := []any{
		"source", r.RemoteAddr, "method", r.Method, "host", hostPort, "rule", taken.rule, "decision", taken.via,
	}
	if err != nil {
		attributes = append(attributes, "error", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	p.log.Info("access", attributes...)
	return conn, err
}
