package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestIssuedCertificatesServeTheirHostsAndNameTheirUser(t *testing.T) {
	authority, err := NewAuthority("test")
	require.NoError(t, err)
	pair, err := authority.Issue(Subject{User: "system:node:n", Groups: []string{"system:nodes"}, Hosts: []string{"10.96.0.1", "kubernetes"}})
	require.NoError(t, err)
	loaded, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	require.NoError(t, err)
	certificate := loaded.Leaf
	require.Equal(t, "system:node:n", certificate.Subject.CommonName)
	require.Equal(t, []string{"system:nodes"}, certificate.Subject.Organization)

	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(authority.Certificate()))
	for _, host := range []string{"10.96.0.1", "kubernetes"} {
		_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		require.NoError(t, err, host)
	}
	_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	require.NoError(t, err)
	_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: "elsewhere"})
	require.Error(t, err)

	other, err := NewAuthority("test")
	require.NoError(t, err)
	foreign := x509.NewCertPool()
	require.True(t, foreign.AppendCertsFromPEM(other.Certificate()))
	_, err = certificate.Verify(x509.VerifyOptions{Roots: foreign})
	require.Error(t, err, "another authority of the same name has not signed it")
}

func TestKeysAreForTheirOwnerOnly(t *testing.T) {
	folder := t.TempDir()
	authority, err := NewAuthority("test")
	require.NoError(t, err)
	pair, err := authority.Pair()
	require.NoError(t, err)
	require.NoError(t, pair.Write(folder, "ca"))
	for _, name := range []string{"ca.crt", "ca.key"} {
		info, err := os.Stat(filepath.Join(folder, name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
	}
	require.ErrorContains(t, pair.Write(filepath.Join(folder, "missing"), "ca"), "no such file")
}

func TestSigningKeysBelongTogether(t *testing.T) {
	private, public, err := NewSigningKey()
	require.NoError(t, err)
	block, _ := pem.Decode(private)
	key, err := x509.ParseECPrivateKey(block.Bytes)
	require.NoError(t, err)
	block, _ = pem.Decode(public)
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	require.NoError(t, err)
	require.True(t, key.PublicKey.Equal(parsed))
}

func TestKubeconfigHoldsEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := Kubeconfig{
		Server: "https://127.0.0.1:1234", Authority: []byte("authority"), User: "somebody",
		Client: Pair{Certificate: []byte("certificate"), Key: []byte("key")},
	}
	require.NoError(t, config.Write(path))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var read struct {
		Clusters []struct {
			Name    string
			Cluster struct {
				Server    string
				Authority string `json:"certificate-authority-data"`
			}
		}
		Users []struct {
			Name string
			User struct {
				Certificate string `json:"client-certificate-data"`
				Key         string `json:"client-key-data"`
			}
		}
		Contexts []struct {
			Name    string
			Context struct{ Cluster, User string }
		}
		CurrentContext string `json:"current-context"`
	}
	require.NoError(t, yaml.Unmarshal(data, &read))
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	require.Equal(t, "https://127.0.0.1:1234", read.Clusters[0].Cluster.Server)
	require.Equal(t, encoded("authority"), read.Clusters[0].Cluster.Authority)
	require.Equal(t, encoded("certificate"), read.Users[0].User.Certificate)
	require.Equal(t, encoded("key"), read.Users[0].User.Key)
	require.Equal(t, read.CurrentContext, read.Contexts[0].Name)
	require.Equal(t, read.Clusters[0].Name, read.Contexts[0].Context.Cluster)
	require.Equal(t, read.Users[0].Name, read.Contexts[0].Context.User)
}
