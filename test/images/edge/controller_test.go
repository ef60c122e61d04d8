package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/example-org/subrelay-operator/test/images/internal/process"
)

const (
	waitFor = 30 * time.Second
	tick    = 10 * time.Millisecond
)

// resources are what a controller sends, by type.
type resources map[string][]types.Resource

// controller is an xDS server as Envoy Gateway has one, from the same library.
type controller struct {
	t       *testing.T
	address string
	// proxyNeeds is how proxies have to prove who they are.
	proxyNeeds tls.ClientAuthType
	folder     string // of the certificates for proxies
	server     *grpc.Server
	snapshots  cachev3.SnapshotCache
	version    int

	mu      sync.Mutex
	refused []string
	tokens  []string
}

func newController(t *testing.T, proxyNeeds tls.ClientAuthType) *controller {
	t.Helper()
	c := &controller{
		t: t, address: net.JoinHostPort("127.0.0.1", strconv.Itoa(process.FreePort(t))), proxyNeeds: proxyNeeds, folder: t.TempDir(),
		snapshots: cachev3.NewSnapshotCache(true, sameForAll{}, nil),
	}
	writeCertificate(t, c.folder, controllerName)
	c.start()
	t.Cleanup(func() { c.server.Stop() })
	return c
}

// sameForAll gives all proxies the same configuration.
type sameForAll struct{}

func (sameForAll) ID(*corev3.Node) string { return "all" }

func (c *controller) start() {
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.folder, "tls.crt"), filepath.Join(c.folder, "tls.key"))
	require.NoError(c.t, err)
	authority := x509.NewCertPool()
	authority.AddCert(pair.Leaf)
	listener, err := net.Listen("tcp", c.address)
	require.NoError(c.t, err)
	settings := &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: c.proxyNeeds, ClientCAs: authority, MinVersion: tls.VersionTLS12,
	}
	c.server = grpc.NewServer(grpc.Creds(credentials.NewTLS(settings)))
	callbacks := serverv3.CallbackFuncs{
		DeltaStreamOpenFunc: func(ctx context.Context, _ int64, _ string) error {
			received, _ := metadata.FromIncomingContext(ctx)
			c.note(&c.tokens, received.Get("authorization")...)
			return nil
		},
		StreamDeltaRequestFunc: func(_ int64, request *discoveryv3.DeltaDiscoveryRequest) error {
			if request.GetErrorDetail() != nil {
				c.note(&c.refused, request.GetErrorDetail().GetMessage())
			}
			if request.GetNode().GetCluster() == "" {
				return errors.New("a proxy has to name its fleet")
			}
			return nil
		},
	}
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(c.server, serverv3.NewServer(context.Background(), c.snapshots, callbacks))
	go func() { _ = c.server.Serve(listener) }() // ends when the server is stopped
}

func (c *controller) note(list *[]string, values ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*list = append(*list, values...)
}

func (c *controller) noted(list *[]string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), *list...)
}

// send puts a configuration into force for all proxies.
func (c *controller) send(all resources) {
	c.t.Helper()
	c.version++
	snapshot, err := cachev3.NewSnapshot(fmt.Sprint(c.version), all)
	require.NoError(c.t, err)
	require.NoError(c.t, c.snapshots.SetSnapshot(c.t.Context(), "all", snapshot))
}

// proxy starts the program under test for this controller, until the test ends.
func (c *controller) proxy(options options) {
	options.controller, options.serviceCluster, options.serviceNode = c.address, "front/edge", "edge-1"
	if options.certificates == "" {
		options.certificates = c.folder
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, options, slog.New(slog.DiscardHandler)) }()
	c.t.Cleanup(func() {
		cancel()
		require.NoError(c.t, <-ended)
	})
}

// writeCertificate stores a self-signed certificate for both ends of a connection, as ca.crt, tls.crt and tls.key.
func writeCertificate(t *testing.T, folder, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	encodedKey, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for file, content := range map[string][]byte{
		"ca.crt": certificate, "tls.crt": certificate, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encodedKey}),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), content, 0o600))
	}
}
