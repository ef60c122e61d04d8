package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// bootstrap is the part of the controller's bootstrap configuration that leads to the controller.
const bootstrap = `
static_resources:
  clusters:
  - name: prometheus_stats
    load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 19000}}}}]}]}
  - name: xds_cluster
    load_assignment:
      endpoints:
      - lb_endpoints:
        - endpoint:
            address:
              socket_address:
                address: envoy-gateway.envoy-gateway-system.svc.cluster.local.
                port_value: 18000
`

func TestOptionsAreEnvoys(t *testing.T) {
	parsed, err := parseOptions([]string{
		"--service-cluster", "front/edge", "--service-node", "edge-1", "--config-yaml", bootstrap, "--log-level", "warn",
		"--cpuset-threads", "--drain-strategy", "immediate", "--component-log-level", "misc:error", "--drain-time-s", "60",
	})
	require.NoError(t, err)
	require.Equal(t, "envoy-gateway.envoy-gateway-system.svc.cluster.local.:18000", parsed.controller)
	require.Equal(t, "front/edge", parsed.node().GetCluster())
	require.Equal(t, "edge-1", parsed.node().GetId())
}

func TestBadOptionsAreRefused(t *testing.T) {
	names := []string{"--service-cluster", "c", "--service-node", "n"}
	for complaint, arguments := range map[string][]string{
		"not defined":               {"--unknown"},
		"--service-node are needed": {"--service-cluster", "c", "--config-yaml", bootstrap},
		"no static cluster":         slices.Concat(names, []string{"--config-yaml", "static_resources: {}"}),
		"read --config-yaml":        slices.Concat(names, []string{"--config-yaml", "{"}),
	} {
		_, err := parseOptions(arguments)
		require.ErrorContains(t, err, complaint)
	}
}

func TestCertificatesHaveToBeThere(t *testing.T) {
	empty := options{certificates: t.TempDir(), controller: "127.0.0.1:1"}
	_, err := empty.connect()
	require.ErrorContains(t, err, "read the controller's authority")
	require.NoError(t, os.WriteFile(filepath.Join(empty.certificates, "ca.crt"), []byte("none"), 0o600))
	_, err = empty.connect()
	require.ErrorContains(t, err, "holds no certificate")
}
