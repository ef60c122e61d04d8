// Package peers makes the objects of pools with what a user might pick instead of the operator, to be measured beside it. The
// version of Helm is that in test/scale/go.mod, the version of kro that in test/scale/peers-modules/kro/go.mod, and kubectl is
// the lab's.
package peers

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/example-org/subrelay-operator/test/scale/internal/subject"
)

// workers is how many pools are asked for at once. More of them only queue at the API server.
const workers = 8

// All returns all peers, none of them started.
func All() []subject.Subject {
	return []subject.Subject{&kubectl{}, &helm{}, &kro{}}
}

// folder holds what a peer needs on disk. The zero value is none.
type folder string

// makeFolder makes one that has a kubeconfig with the rights of config.
func makeFolder(config *rest.Config) (folder, error) {
	path, err := os.MkdirTemp("", "peer-")
	if err != nil {
		return "", fmt.Errorf("make a folder for a peer: %w", err)
	}
	made := folder(path)
	const name = "peer"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		CertificateAuthority:     config.CAFile,
		CertificateAuthorityData: config.CAData,
	}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificate:     config.CertFile,
		ClientCertificateData: config.CertData,
		ClientKey:             config.KeyFile,
		ClientKeyData:         config.KeyData,
	}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	// Only its owner can read the file that this writes.
	if err := clientcmd.WriteToFile(*kubeconfig, made.kubeconfig()); err != nil {
		return made, fmt.Errorf("write a peer's kubeconfig: %w", err)
	}
	return made, nil
}

func (f folder) kubeconfig() string { return f.file("kubeconfig") }

// cache is where a peer keeps what it has learned about the API.
func (f folder) cache() string { return f.file("cache") }

func (f folder) file(name string) string { return filepath.Join(string(f), name) }

func (f folder) remove() error { return os.RemoveAll(string(f)) }
