package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// sites keeps a server for each listener of the configuration.
type sites struct {
	current atomic.Pointer[store]
	servers map[string]*http.Server // by listener
	proxy   *proxy
	log     *slog.Logger
}

func newSites(log *slog.Logger) *sites {
	return &sites{servers: map[string]*http.Server{}, proxy: newProxy(log), log: log}
}

// update puts a configuration into force: it opens and closes listeners; everything else is looked up for each request.
func (s *sites) update(configuration *store) {
	s.current.Store(configuration)
	for name, server := range s.servers {
		if _, wanted := configuration.resources[listenerType][name]; !wanted {
			_ = server.Close()
			delete(s.servers, name)
			s.log.Info("closed", "listener", name)
		}
	}
	for name := range configuration.resources[listenerType] {
		if s.servers[name] != nil {
			continue
		}
		server, err := s.open(name, lookup[*listenerv3.Listener](configuration, listenerType, name))
		if err != nil {
			// It is tried again with the next change; until then the listener's probe or its clients notice.
			s.log.Error("cannot listen", "listener", name, "error", err)
			continue
		}
		s.servers[name] = server
	}
}

func (s *sites) open(name string, listener *listenerv3.Listener) (*http.Server, error) {
	address := socketAddress(listener.GetAddress())
	socket, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(name, w, r) }),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	serve := server.Serve
	if slices.ContainsFunc(filterChains(listener), func(c *listenerv3.FilterChain) bool { return len(secretNames(c)) > 0 }) {
		choose := func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return certificate(s.current.Load(), name, hello.ServerName)
		}
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: choose}
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	go func() {
		if err := serve(socket); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("a listener ended", "listener", name, "error", err)
		}
	}()
	s.log.Info("listening", "listener", name, "address", socket.Addr().String())
	return server, nil
}

func (s *sites) close() {
	for _, server := range s.servers {
		_ = server.Close()
	}
}

func (s *sites) serve(listener string, w http.ResponseWriter, r *http.Request) {
	configuration := s.current.Load()
	serverName := ""
	if r.TLS != nil {
		serverName = r.TLS.ServerName
	}
	chain := chainFor(lookup[*listenerv3.Listener](configuration, listenerType, listener), serverName)
	if chain == nil {
		http.Error(w, "no such listener", http.StatusNotFound)
		return
	}
	http, err := manager(chain)
	if err != nil {
		panic(err) // check has refused such a listener
	}
	s.proxy.serve(configuration, http, w, r)
}

// chainFor returns the filter chain for a TLS server name: the one that names it, else the one for every name.
func chainFor(listener *listenerv3.Listener, serverName string) *listenerv3.FilterChain {
	for _, chain := range listener.GetFilterChains() {
		names := chain.GetFilterChainMatch().GetServerNames()
		if len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return hostMatches(name, serverName) }) {
			return chain
		}
	}
	return listener.GetDefaultFilterChain()
}

func certificate(configuration *store, listener, serverName string) (*tls.Certificate, error) {
	chain := chainFor(lookup[*listenerv3.Listener](configuration, listenerType, listener), serverName)
	names := secretNames(chain)
	if len(names) == 0 {
		return nil, fmt.Errorf("no certificate for %q", serverName)
	}
	pair := lookup[*tlsv3.Secret](configuration, secretType, names[0]).GetTlsCertificate()
	loaded, err := tls.X509KeyPair(pair.GetCertificateChain().GetInlineBytes(), pair.GetPrivateKey().GetInlineBytes())
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", names[0], err)
	}
	return &loaded, nil
}

// hostMatches compares a name with a pattern: a name itself, *.domain for all below it, or * for all.
func hostMatches(pattern, name string) bool {
	if suffix, wildcard := strings.CutPrefix(pattern, "*"); wildcard {
		return strings.HasSuffix(strings.ToLower(name), strings.ToLower(suffix)) && len(name) > len(suffix)
	}
	return strings.EqualFold(pattern, name)
}

func socketAddress(address *corev3.Address) string {
	socket := address.GetSocketAddress()
	return net.JoinHostPort(socket.GetAddress(), strconv.Itoa(int(socket.GetPortValue())))
}
