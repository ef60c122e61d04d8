package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

const (
	// The controller's certificate is for this name; Envoy compares it with the certificate, whatever it dialled.
	controllerName = "envoy-gateway"
	// The static cluster of the bootstrap configuration that leads to the controller.
	controllerCluster = "xds_cluster"
)

// options is what Envoy is told on its command line.
type options struct {
	serviceCluster string
	serviceNode    string
	// controller is the address of the xDS server.
	controller string
	// certificates is the folder of the Secret, or ConfigMap, that the controller gives its proxies.
	certificates string
	// token is the file of a service account's token, with which a proxy proves who it is when it has no certificate.
	token string
}

// parseOptions refuses what Envoy would refuse and ignores what means nothing to a stand-in.
func parseOptions(arguments []string) (options, error) {
	parsed := options{certificates: "/certs", token: "/var/run/secrets/token/sa-token"}
	var bootstrap string
	flags := flag.NewFlagSet("envoy", flag.ContinueOnError)
	flags.StringVar(&parsed.serviceCluster, "service-cluster", "", "name of the fleet that this proxy belongs to")
	flags.StringVar(&parsed.serviceNode, "service-node", "", "name of this proxy")
	flags.StringVar(&bootstrap, "config-yaml", "", "bootstrap configuration")
	for _, name := range []string{"log-level", "component-log-level", "drain-strategy", "drain-time-s", "concurrency"} {
		flags.String(name, "", "ignored")
	}
	flags.Bool("cpuset-threads", false, "ignored")
	if err := flags.Parse(arguments); err != nil {
		return options{}, err
	}
	if parsed.serviceCluster == "" || parsed.serviceNode == "" {
		return options{}, errors.New("--service-cluster and --service-node are needed: by them the controller knows what to send")
	}
	var err error
	parsed.controller, err = findController(bootstrap)
	return parsed, err
}

// findController reads the controller's address from a bootstrap configuration.
func findController(bootstrap string) (string, error) {
	var read struct {
		StaticResources struct {
			Clusters []struct {
				Name           string
				LoadAssignment struct {
					Endpoints []struct {
						LBEndpoints []struct {
							Endpoint struct {
								Address struct {
									SocketAddress struct {
										Address   string
										PortValue int `yaml:"port_value"`
									} `yaml:"socket_address"`
								}
							}
						} `yaml:"lb_endpoints"`
					}
				} `yaml:"load_assignment"`
			}
		} `yaml:"static_resources"`
	}
	if err := yaml.Unmarshal([]byte(bootstrap), &read); err != nil {
		return "", fmt.Errorf("read --config-yaml: %w", err)
	}
	for _, cluster := range read.StaticResources.Clusters {
		if cluster.Name != controllerCluster {
			continue
		}
		for _, locality := range cluster.LoadAssignment.Endpoints {
			for _, endpoint := range locality.LBEndpoints {
				address := endpoint.Endpoint.Address.SocketAddress
				return net.JoinHostPort(address.Address, strconv.Itoa(address.PortValue)), nil
			}
		}
	}
	return "", fmt.Errorf("--config-yaml has no static cluster %s with an endpoint: it leads to the controller", controllerCluster)
}

func (o options) node() *corev3.Node {
	return &corev3.Node{Id: o.serviceNode, Cluster: o.serviceCluster, UserAgentName: "envoy"}
}

// connect prepares a connection that is made, and made again, when it is needed.
func (o options) connect() (*grpc.ClientConn, error) {
	authority, err := os.ReadFile(filepath.Join(o.certificates, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the controller's authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s/ca.crt holds no certificate", o.certificates)
	}
	settings := &tls.Config{RootCAs: roots, ServerName: controllerName, MinVersion: tls.VersionTLS12}
	var dial []grpc.DialOption
	own, err := tls.LoadX509KeyPair(filepath.Join(o.certificates, "tls.crt"), filepath.Join(o.certificates, "tls.key"))
	switch {
	case err == nil:
		settings.Certificates = []tls.Certificate{own}
	case errors.Is(err, fs.ErrNotExist):
		dial = append(dial, grpc.WithPerRPCCredentials(bearer(o.token)))
	default:
		return nil, fmt.Errorf("read the proxy's certificate: %w", err)
	}
	return grpc.NewClient(o.controller, append(dial, grpc.WithTransportCredentials(credentials.NewTLS(settings)))...)
}

// bearer is the path of a token that is read for each call, because its file changes.
type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := os.ReadFile(string(b))
	if err != nil {
		return nil, fmt.Errorf("read the service account's token: %w", err)
	}
	return map[string]string{"authorization": "Bearer " + strings.TrimSpace(string(token))}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (bearer) RequireTransportSecurity() bool { return true }
