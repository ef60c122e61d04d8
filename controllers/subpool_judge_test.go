package controllers

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/internal/apply"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
	"github.com/example-org/subrelay-operator/internal/subpool"
)

const poolUID = "0d9c7b1e-0000-4000-8000-000000000001"

func load(t testing.TB, path string, into any) {
	t.Helper()
	document, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(document, into))
}

// healthy is what a pass sees of the shipped example with the shipped configuration before anything was made,
// but for the proxy, which is ready.
func healthy(t testing.TB) *observation {
	t.Helper()
	pool, manifest := &v1alpha1.SubPool{}, &corev1.ConfigMap{}
	load(t, "../examples/subpool-internal.yaml", pool)
	load(t, "../config/default/operator-config.yaml", manifest)
	config, err := operatorconfig.Parse([]byte(manifest.Data[operatorconfig.Key]))
	require.NoError(t, err)
	pool.UID, pool.Generation = poolUID, 3
	return &observation{
		pool:       pool,
		now:        time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
		config:     &operatorconfig.Snapshot{Config: config, Name: manifest.Name, Hash: "0123456789abcdef"},
		live:       apply.Live{},
		proxy:      &subpool.Proxy{Port: 7890},
		proxyReady: true,
	}
}

// owned is the metadata of an object whose controlling owner is a SubPool of the given UID.
func owned(name string, uid types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SubPool", Name: "demo-pool", UID: uid, Controller: ptr.To(true),
	}}}
}

func TestJudge(t *testing.T) {
	deleted := metav1.Now()
	for name, c := range map[string]struct {
		change  func(*observation)
		reason  string
		stalled bool
		says    []string
	}{
		"nothing in the way": {func(*observation) {}, "", false, nil},
		"no configuration": {func(o *observation) {
			o.config, o.configProblem = nil, "ConfigMap subpool-system/c: it does not exist"
		}, v1alpha1.ReasonOperatorConfigurationInvalid, true, []string{"subpool-system/c"}},
		"our namespace": {func(o *observation) {
			o.namespace = &corev1.Namespace{ObjectMeta: owned("subpool-demo-pool", poolUID)}
		}, "", false, nil},
		"DEL-03 namespace of nobody": {func(o *observation) {
			o.namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "subpool-demo-pool"}}
		}, v1alpha1.ReasonNamespaceConflict, true, []string{"subpool-demo-pool", poolUID}},
		"DEL-01 namespace of an earlier SubPool": {func(o *observation) {
			o.namespace = &corev1.Namespace{ObjectMeta: owned("subpool-demo-pool", "another-uid")}
		}, v1alpha1.ReasonNamespaceConflict, true, []string{"subpool-demo-pool"}},
		"DEL-06 namespace going away": {func(o *observation) {
			o.namespace = &corev1.Namespace{ObjectMeta: owned("subpool-demo-pool", poolUID)}
			o.namespace.DeletionTimestamp = &deleted
			o.namespace.Status.Conditions = []corev1.NamespaceCondition{{
				Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "pods. has 1 resource instances",
			}}
		}, v1alpha1.ReasonNamespaceTerminating, false, []string{"built anew", "pods. has 1 resource instances"}},
		"request above limit": {func(o *observation) {
			o.pool.Spec.CPAManager.Resources.Requests.Memory = resource.MustParse("1Gi")
		}, v1alpha1.ReasonInvalidPoolResources, true, []string{"spec.cpaManager.resources"}},
		"nothing requested": {func(o *observation) {
			o.pool.Spec.CPA.Resources.Requests.CPU = resource.Quantity{}
		}, v1alpha1.ReasonInvalidPoolResources, true, []string{"spec.cpa.resources"}},
		"too much CPU": {func(o *observation) {
			o.pool.Spec.CPA.Resources.Requests.CPU = resource.MustParse("3900m")
			o.pool.Spec.CPA.Resources.Limits.CPU = resource.MustParse("3900m")
		}, v1alpha1.ReasonResourcesExceedBaseline, true, []string{"requests.cpu 4100m > 4", "subpool-operator-config-v1"}},
		"too much of everything": {func(o *observation) {
			o.pool.Spec.Storage.Size = resource.MustParse("101Gi")
			o.pool.Spec.CPAManager.Resources.Requests.Memory = resource.MustParse("6Gi")
			o.pool.Spec.CPAManager.Resources.Limits = v1alpha1.ComputeResources{CPU: resource.MustParse("5"), Memory: resource.MustParse("13Gi")}
		}, v1alpha1.ReasonResourcesExceedBaseline, true, []string{
			"requests.memory 9Gi > 8Gi", "limits.cpu 8200m > 8", "limits.memory 17Gi > 16Gi", "storage.size 101Gi > 100Gi",
		}},
		"good credentials": {func(o *observation) { o.credentials = credentialsOf(secret(poolUID)) }, "", false, nil},
		"credentials of others": {func(o *observation) { o.credentials = credentialsOf(secret("another-uid")) },
			v1alpha1.ReasonCredentialConflict, true, []string{"subpool-credentials"}},
		"credential missing": {func(o *observation) {
			lacking := secret(poolUID)
			delete(lacking.Data, subpool.KeyCPAMPAdmin)
			o.credentials = credentialsOf(lacking)
		}, v1alpha1.ReasonCredentialInvalid, true, []string{"cpamp_admin_key"}},
		"credential empty": {func(o *observation) {
			lacking := secret(poolUID)
			lacking.Data[subpool.KeyCPAClient] = nil
			o.credentials = credentialsOf(lacking)
		}, v1alpha1.ReasonCredentialInvalid, true, []string{"cpa_client_key"}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := healthy(t)
			c.change(seen)
			blocked := judge(seen)
			if c.reason == "" {
				require.Nil(t, blocked)
				return
			}
			require.NotNil(t, blocked)
			require.Equal(t, c.reason, blocked.reason)
			require.Equal(t, c.stalled, blocked.stalled)
			for _, words := range c.says {
				require.Contains(t, blocked.message, words)
			}
		})
	}
}

func secret(owner types.UID) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: owned(subpool.CredentialsName, owner), Data: map[string][]byte{}}
	for _, key := range subpool.CredentialKeys {
		secret.Data[key] = []byte("x")
	}
	return secret
}
