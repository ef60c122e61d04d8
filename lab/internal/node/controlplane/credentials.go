package controlplane

import (
	"fmt"
	"os"

	"github.com/example-org/subrelay-operator/lab/internal/node/pki"
)

// user is a user of the cluster with a certificate of its own: <file>.crt and <file>.key, and
// <file>.kubeconfig for one that talks to the API server.
type user struct {
	file       string
	subject    pki.Subject
	kubeconfig bool
}

// AdminFile is the administrator's name among the control plane's files.
const AdminFile = "admin"

func (c Config) users() []user {
	all := []user{
		{"apiserver", pki.Subject{User: "kube-apiserver", Hosts: []string{
			"127.0.0.1", "localhost",
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
			serviceIP, c.AdvertiseAddress,
		}}, false},
		{AdminFile, pki.Subject{User: "lab-admin", Groups: []string{"system:masters"}}, true},
		{"kube-controller-manager", pki.Subject{User: "system:kube-controller-manager"}, true},
	}
	if c.Nodes {
		all = append(all,
			user{"kube-scheduler", pki.Subject{User: "system:kube-scheduler"}, true},
			user{"apiserver-kubelet", pki.Subject{User: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}}, false},
		)
	}
	return all
}

// NodeUsers are the names under which a node's programs talk to the API server.
type NodeUsers struct {
	// Name and Address of the node.
	Name    string
	Address string
	// Others maps the name of a kubeconfig to the user it is for.
	Others map[string]string
}

// Prepare writes certificates, keys, kubeconfigs and settings into the control plane's folder,
// with those of a node when there is one.
func (c Config) Prepare(node *NodeUsers) error {
	if err := os.MkdirAll(c.Folder, 0o700); err != nil {
		return fmt.Errorf("make the control plane's folder: %w", err)
	}
	if err := c.writeAuditPolicy(); err != nil {
		return err
	}
	if err := c.writeEtcdCertificates(); err != nil {
		return err
	}
	if err := c.writeServiceAccountKeys(); err != nil {
		return err
	}
	users := c.users()
	if node != nil {
		users = append(users, user{"kubelet", pki.Subject{
			User: "system:node:" + node.Name, Groups: []string{"system:nodes"}, Hosts: []string{node.Name, node.Address},
		}, true})
		for file, name := range node.Others {
			users = append(users, user{file, pki.Subject{User: name}, true})
		}
	}
	return c.writeUsers(users)
}

// writeEtcdCertificates uses an authority of its own, so that no user of the cluster is one of etcd.
func (c Config) writeEtcdCertificates() error {
	authority, err := pki.NewAuthority("lab-etcd")
	if err != nil {
		return err
	}
	if err := pki.WriteFile(c.File("etcd-ca.crt"), authority.Certificate()); err != nil {
		return err
	}
	for file, hosts := range map[string][]string{"etcd": {"127.0.0.1"}, "etcd-client": nil} {
		pair, err := authority.Issue(pki.Subject{User: file, Hosts: hosts})
		if err != nil {
			return err
		}
		if err := pair.Write(c.Folder, file); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) writeUsers(users []user) error {
	authority, err := pki.NewAuthority("lab")
	if err != nil {
		return err
	}
	own, err := authority.Pair()
	if err != nil {
		return err
	}
	if err := own.Write(c.Folder, "ca"); err != nil {
		return err
	}
	for _, user := range users {
		pair, err := authority.Issue(user.subject)
		if err != nil {
			return err
		}
		if err := pair.Write(c.Folder, user.file); err != nil {
			return err
		}
		if !user.kubeconfig {
			continue
		}
		config := pki.Kubeconfig{Server: c.Endpoint(), Authority: authority.Certificate(), User: user.subject.User, Client: pair}
		if err := config.Write(c.File(user.file + ".kubeconfig")); err != nil {
			return err
		}
		if user.file == AdminFile {
			config.Server = loopbackURL(c.HostPort)
			if err := config.Write(c.HostKubeconfig); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeServiceAccountKeys makes the pair of keys that signs and verifies service account tokens.
func (c Config) writeServiceAccountKeys() error {
	private, public, err := pki.NewSigningKey()
	if err != nil {
		return err
	}
	if err := pki.WriteFile(c.File("service-accounts.key"), private); err != nil {
		return err
	}
	return pki.WriteFile(c.File("service-accounts.pub"), public)
}
