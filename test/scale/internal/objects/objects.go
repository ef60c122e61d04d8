// Package objects lists what a pool is made of, for those who make it without the operator and for those who watch for it.
package objects

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/internal/operatorconfig"
	"github.com/example-org/subrelay-operator/internal/subpool"
	"github.com/example-org/subrelay-operator/test/harness"
	"github.com/example-org/subrelay-operator/test/scale/internal/load"
)

// credentials stands in the Pod template where the operator puts the UID of the pool's Secret.
const credentials types.UID = "00000000-0000-4000-8000-000000000000"

// Key says where an object is in the API.
type Key struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Name      string
}

// Blueprint makes the objects of pools.
type Blueprint struct {
	config *operatorconfig.Config
}

// NewBlueprint makes one for an operator configuration, given as the document that a ConfigMap holds.
func NewBlueprint(document string) (*Blueprint, error) {
	config, err := operatorconfig.Parse([]byte(document))
	if err != nil {
		return nil, err
	}
	return &Blueprint{config: config}, nil
}

// ReadBlueprint makes one for the operator configuration that the cluster has.
func ReadBlueprint(ctx context.Context, cluster *harness.Cluster) (*Blueprint, error) {
	configMap := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: harness.SystemNamespace, Name: harness.OperatorConfig}
	if err := cluster.Admin.Get(ctx, key, configMap); err != nil {
		return nil, fmt.Errorf("read the operator configuration: %w", err)
	}
	return NewBlueprint(configMap.Data[operatorconfig.Key])
}

// Pool returns all objects of an internal pool with a way out, its Namespace first. They are those that the operator makes,
// without owners, since there is no SubPool, and without the hash by which the operator knows its own intent.
func (b *Blueprint) Pool(poolID string) ([]*unstructured.Unstructured, error) {
	in := subpool.Input{
		Pool:        load.NamedPool(poolID),
		Config:      b.config,
		Operator:    subpool.Identity{Namespace: harness.SystemNamespace, Name: harness.OperatorAccount},
		Proxy:       &subpool.Proxy{PodLabels: harness.MihomoService().Spec.Selector, Port: harness.MihomoPodPort},
		Credentials: credentials,
	}
	secret, err := subpool.Credentials(in.Pool, rand.Reader)
	if err != nil {
		return nil, err
	}
	secret.APIVersion, secret.Kind = "v1", "Secret"
	parts := []any{secret}
	for _, intent := range subpool.Desired(in).All() {
		parts = append(parts, intent)
	}
	parts = append(parts, subpool.Workload(in))
	var namespace *unstructured.Unstructured
	var rest []*unstructured.Unstructured
	for _, part := range parts {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(part)
		if err != nil {
			return nil, fmt.Errorf("encode %T of pool %s: %w", part, poolID, err)
		}
		object := &unstructured.Unstructured{Object: content}
		object.SetOwnerReferences(nil)
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		if object.GetKind() == "Namespace" {
			namespace = object
			continue
		}
		rest = append(rest, object)
	}
	return append([]*unstructured.Unstructured{namespace}, rest...), nil
}

// Keys returns where the objects are, in their order.
func Keys(mapper meta.RESTMapper, parts []*unstructured.Unstructured) ([]Key, error) {
	keys := make([]Key, 0, len(parts))
	for _, part := range parts {
		kind := part.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("find the resource of %s: %w", kind, err)
		}
		keys = append(keys, Key{mapping.Resource, part.GetNamespace(), part.GetName()})
	}
	return keys, nil
}
