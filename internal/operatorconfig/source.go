package operatorconfig

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Source finds the configuration in the cluster. Every Load reads the current ConfigMap, so all pools
// and all replicas act on the same content.
type Source struct {
	// Reader should be a cache: Load is called once per reconcile.
	Reader client.Reader

	// Namespace and Name of the ConfigMap.
	Namespace string
	Name      string

	// SharedNamespace is the only namespace whose Services the operator can see besides those of pools.
	SharedNamespace string

	last atomic.Pointer[parsed]
}

// Snapshot is one version of the configuration. It is shared by all who load it, and not to be changed.
type Snapshot struct {
	Config *Config
	Name   string
	Hash   string
}

// parsed is what was made of a document.
type parsed struct {
	document string
	snapshot *Snapshot
}

// Load returns the configuration. An InvalidError is about the configuration itself and
// lasts until a person mends it; any other error is one of reading.
func (s *Source) Load(ctx context.Context) (*Snapshot, error) {
	var object corev1.ConfigMap
	err := s.Reader.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, &object)
	if apierrors.IsNotFound(err) {
		return nil, s.invalid("it does not exist; create it, or name an existing one with --operator-config")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read ConfigMap %s/%s: %w", s.Namespace, s.Name, err)
	}
	document, found := object.Data[Key]
	if !found {
		return nil, s.invalid("it has no entry %q", Key)
	}
	if last := s.last.Load(); last != nil && last.document == document {
		return last.snapshot, nil
	}
	config, err := Parse([]byte(document))
	if err != nil {
		return nil, s.invalid("%w", err)
	}
	if namespace := config.Mihomo.Namespace; namespace != s.SharedNamespace {
		return nil, s.invalid("mihomo.namespace is %q, but the manager watches only %q: change one of them (flag --shared-namespace)",
			namespace, s.SharedNamespace)
	}
	snapshot := &Snapshot{Config: config, Name: s.Name, Hash: Hash([]byte(document))}
	s.last.Store(&parsed{document, snapshot})
	return snapshot, nil
}

func (s *Source) invalid(format string, args ...any) error {
	return &InvalidError{fmt.Errorf("ConfigMap %s/%s: "+format, append([]any{s.Namespace, s.Name}, args...)...)}
}

// InvalidError says what is wrong with the configuration and what to do.
type InvalidError struct{ error }

// Unwrap gives the errors of the single fields.
func (e *InvalidError) Unwrap() error { return e.error }
