//go:build integration

package integration

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	netv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// handTokens are tokens of the operator's account that tests use by hand. What they tried is no work of the operator.
var handTokens struct {
	sync.Mutex
	ids []string
}

func usedByHand(c harness.Call) bool {
	handTokens.Lock()
	defer handTokens.Unlock()
	return slices.Contains(handTokens.ids, c.TokenID())
}

// byHand returns a client with a token of the operator's own account. Everything it writes is a dry run: roles and policies
// judge it all the same.
func byHand(t *testing.T) client.Client {
	t.Helper()
	token, err := cluster.RequestToken(t.Context(), systemNamespace, operatorAccount)
	require.NoError(t, err)
	config := rest.AnonymousClientConfig(cluster.Config)
	config.BearerToken = token
	operator, err := client.New(config, client.Options{Scheme: cluster.Admin.Scheme()})
	require.NoError(t, err)
	review := &authenticationv1.SelfSubjectReview{}
	require.NoError(t, operator.Create(t.Context(), review))
	require.Equal(t, harness.OperatorUser, review.Status.UserInfo.Username)
	call := harness.Call{}
	call.User.Extra = map[string][]string{}
	for key, values := range review.Status.UserInfo.Extra {
		call.User.Extra[key] = values
	}
	require.NotEmpty(t, call.TokenID())
	handTokens.Lock()
	handTokens.ids = append(handTokens.ids, call.TokenID())
	handTokens.Unlock()
	return client.NewDryRunClient(operator)
}

// attempt is something that somebody tries.
type attempt struct {
	what string
	do   func(t *testing.T, c client.Client) error
	// refusal is a part of the words by which it is refused; empty if it is allowed.
	refusal string
}

// Words of the two who refuse: roles, and what they cannot say.
const (
	byRoles  = " cannot "
	byPolicy = "ValidatingAdmissionPolicy 'subpool-operator' with binding 'subpool-operator' denied request: "
)

// tryAll makes each attempt a test.
func tryAll(t *testing.T, c client.Client, attempts []attempt) {
	t.Helper()
	for _, attempt := range attempts {
		t.Run(attempt.what, func(t *testing.T) {
			err := attempt.do(t, c)
			if attempt.refusal == "" {
				assert.NoError(t, err)
				return
			}
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			assert.ErrorContains(t, err, attempt.refusal)
		})
	}
}

type try = func(t *testing.T, c client.Client) error

func creating(object client.Object) try {
	return func(t *testing.T, c client.Client) error {
		t.Helper()
		return c.Create(t.Context(), object.DeepCopyObject().(client.Object))
	}
}

func reading(object client.Object) try {
	return func(t *testing.T, c client.Client) error {
		t.Helper()
		return c.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
	}
}

func listing(list client.ObjectList, options ...client.ListOption) try {
	return func(t *testing.T, c client.Client) error {
		t.Helper()
		return c.List(t.Context(), list, options...)
	}
}

func deleting(object client.Object) try {
	return func(t *testing.T, c client.Client) error {
		t.Helper()
		return c.Delete(t.Context(), object.DeepCopyObject().(client.Object))
	}
}

// patching sends a merge patch.
func patching(object client.Object, patch string) try {
	return func(t *testing.T, c client.Client) error {
		t.Helper()
		return c.Patch(t.Context(), object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

// applyingNothing is an apply that says nothing: its answer would be the object.
func applyingNothing(object client.Object, kind string) try {
	return func(t *testing.T, c client.Client) error {
		t.Helper()
		nothing := client.RawPatch(types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"`+kind+`"}`))
		return c.Patch(t.Context(), object.DeepCopyObject().(client.Object), nothing, client.FieldOwner("subpool-operator"))
	}
}

// named returns where an object outside of pools is.
func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// rootCA is a ConfigMap that Kubernetes keeps in every namespace.
const rootCA = "kube-root-ca.crt"

// itself is the operator as the subject of a binding.
var itself = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: operatorAccount}

func bindingOf(role string, meta metav1.ObjectMeta, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
}

// access is a binding as that by which the operator reads a pool's Secret.
func access(namespace string) *rbacv1.RoleBinding {
	return bindingOf("subpool-operator-pool", named(namespace, "subpool-operator"), itself)
}

// statefulSet returns one that Pod Security admits everywhere.
func statefulSet(meta metav1.ObjectMeta) *appsv1.StatefulSet {
	labels := map[string]string{"app": "another"}
	return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: podTemplate(labels),
	}}
}

func podTemplate(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "another", Image: string(cpaImage),
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			Resources: corev1.ResourceRequirements{Requests: little, Limits: little},
		}},
	}}
}

var little = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("1Mi")}

// eventAbout returns an Event as the operator writes them.
func eventAbout(namespace string, regarding corev1.ObjectReference) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: named(namespace, "event-"+rand.String(5)), Regarding: regarding,
		EventTime: metav1.NowMicro(), ReportingController: "subpool-operator", ReportingInstance: "by-hand",
		Action: "Reconcile", Reason: "Tried", Type: corev1.EventTypeNormal,
	}
}

// takeover is a patch that makes the pool the controlling owner of an object.
func takeover(t *testing.T, pool *v1alpha1.SubPool) string {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SubPool", Name: pool.Name, UID: pool.UID, Controller: ptr.To(true),
	}}}})
	require.NoError(t, err)
	return string(patch)
}

// CTL-01: no role gives the operator Secrets, but for the one of each pool.
func TestCTL01NoRightToSecrets(t *testing.T) {
	pool := createReady(t, "secrets")
	operator := byHand(t)
	own := &corev1.Secret{ObjectMeta: in(pool, "subpool-credentials")}
	neighbour := &corev1.Secret{ObjectMeta: in(pool, "neighbour")}
	foreign := &corev1.Secret{ObjectMeta: named(metav1.NamespaceSystem, pool.Name)}
	create(t, neighbour)
	create(t, foreign)
	tryAll(t, operator, []attempt{
		{"read the Secret of a pool", reading(own), ""},
		{"list all Secrets", listing(&corev1.SecretList{}), byRoles},
		{"list the Secrets of a pool", listing(&corev1.SecretList{}, client.InNamespace(own.Namespace)), byRoles},
		{"list the Secrets of kube-system", listing(&corev1.SecretList{}, client.InNamespace(metav1.NamespaceSystem)), byRoles},
		{"read another Secret of a pool", reading(neighbour), byRoles},
		{"read a Secret in kube-system", reading(foreign), byRoles},
		{"read a Secret in kube-system by an empty apply", applyingNothing(foreign, "Secret"), byRoles},
		{"read another Secret of a pool by an empty apply", applyingNothing(neighbour, "Secret"), byRoles},
		{"bind the pool role in kube-system", creating(access(metav1.NamespaceSystem)), byPolicy},
		{"bind the pool role in subpool-gateway", creating(access(sharedNamespace)), byPolicy},
		{"make a Secret in kube-system", creating(&corev1.Secret{ObjectMeta: named(metav1.NamespaceSystem, "made")}), byRoles},
		{"make another Secret in a pool", creating(&corev1.Secret{ObjectMeta: in(pool, "made")}), byPolicy},
		{"change the Secret of a pool", patching(own, `{}`), byRoles},
		{"delete the Secret of a pool", deleting(own), byRoles},
	})
}

// With its own token the operator does not get out of its pools.
func TestOperatorIsConfined(t *testing.T) {
	pool := createReady(t, "confined")
	withGateway(t)
	operator := byHand(t)
	foreign := bareNamespace("foreign-" + pool.Name)
	create(t, foreign)
	walls := &netv1.NetworkPolicy{ObjectMeta: named(sharedNamespace, harness.MihomoName)}
	create(t, walls)
	account := named(metav1.NamespaceSystem, "default")
	const somebody = `{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"somebody"}`
	tryAll(t, operator, slices.Concat([]attempt{
		{"make a namespace without the prefix", creating(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}), byPolicy},
		{"make a namespace of no pool", creating(bareNamespace("nobody")), byPolicy},
		{"delete a namespace of Kubernetes", deleting(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}}), byPolicy},
		{"delete subpool-system", deleting(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}), byPolicy},
		{"delete subpool-gateway", deleting(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: sharedNamespace}}), byPolicy},
		{"delete a foreign namespace with the prefix", deleting(foreign), byPolicy},
		{"label a foreign namespace", patching(foreign, `{"metadata":{"labels":{"subrelay.example.com/pool":"a"}}}`), byPolicy},
		{"take a foreign namespace over", patching(foreign, takeover(t, pool)), byPolicy},
		{"write into a foreign namespace", creating(access(foreign.Name)), byPolicy},
		{"weaken Pod Security", patching(bareNamespace(pool.Name),
			`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`), byPolicy},
		{"give a pool's namespace away", patching(bareNamespace(pool.Name), `{"metadata":{"ownerReferences":null}}`), byPolicy},
		{"force the end of a pool's namespace", func(t *testing.T, c client.Client) error {
			t.Helper()
			return c.SubResource("finalize").Update(t.Context(), poolNamespace(t, pool))
		}, byRoles},
		{"bind another role", creating(bindingOf("admin", in(pool, "admin"), itself)), "attempting to grant RBAC permissions"},
		{"bind the pool role to somebody else", patching(access(namespaceOf(pool.Name)), `{"subjects":[`+somebody+`]}`), byPolicy},
		{"bind the pool role to somebody besides", patching(access(namespaceOf(pool.Name)),
			`{"subjects":[{"kind":"ServiceAccount","namespace":"subpool-system","name":"subpool-operator"},`+somebody+`]}`), byPolicy},
		{"bind the pool role by another name", creating(bindingOf("subpool-operator-pool", in(pool, "more"), itself)), byPolicy},
		{"change its own role", patching(&rbacv1.ClusterRole{ObjectMeta: named("", "subpool-operator")}, `{"rules":[]}`), byRoles},
		{"change its binding", patching(&rbacv1.ClusterRoleBinding{ObjectMeta: named("", "subpool-operator")}, `{}`), byRoles},
		{"change a role in its namespace", patching(&rbacv1.Role{
			ObjectMeta: named(systemNamespace, "subpool-operator-leader-election")}, `{}`), byRoles},
		{"change its Deployment", patching(&appsv1.Deployment{ObjectMeta: named(systemNamespace, "subpool-operator")}, `{}`), byRoles},
		{"change its configuration", patching(&corev1.ConfigMap{ObjectMeta: named(systemNamespace, operatorConfig)}, `{}`), byPolicy},
		{"start something in its namespace", creating(statefulSet(named(systemNamespace, "runtime"))), byPolicy},
		{"take another Lease", creating(&coordinationv1.Lease{ObjectMeta: named(systemNamespace, "another")}), byPolicy},
		{"take a Lease in kube-system", creating(&coordinationv1.Lease{ObjectMeta: named(metav1.NamespaceSystem, "subpool-operator")}), byRoles},
		{"delete a ConfigMap in subpool-gateway", deleting(&corev1.ConfigMap{ObjectMeta: named(sharedNamespace, rootCA)}), byPolicy},
		{"delete a NetworkPolicy in subpool-gateway", deleting(walls), byPolicy},
		{"change a Service in subpool-gateway", patching(&corev1.Service{ObjectMeta: walls.ObjectMeta}, `{"spec":{"selector":{"a":"b"}}}`), byPolicy},
		{"start something in kube-system", creating(statefulSet(named(metav1.NamespaceSystem, "runtime"))), byPolicy},
		{"change an account in kube-system", patching(&corev1.ServiceAccount{ObjectMeta: account}, `{}`), byPolicy},
		{"change a Service of the cluster", patching(&corev1.Service{ObjectMeta: named("default", "kubernetes")}, `{"spec":{"selector":{"a":"b"}}}`), byPolicy},
		{"delete a Pod elsewhere", deleting(&corev1.Pod{ObjectMeta: named(metav1.NamespaceSystem, "runtime-0")}), byRoles},
		{"read Events elsewhere", listing(&corev1.EventList{}, client.InNamespace(metav1.NamespaceSystem)), byRoles},
		{"tell about others' objects", creating(eventAbout(metav1.NamespaceDefault, corev1.ObjectReference{Kind: "Node", Name: "a"})), byPolicy},
		{"tell about SubPools elsewhere", creating(eventAbout(metav1.NamespaceSystem, corev1.ObjectReference{Kind: "SubPool", Name: "a"})), byPolicy},
	}, outOfPool(t, pool)))
}

// outOfPool are attempts to make more of a pool than it is.
func outOfPool(t *testing.T, pool *v1alpha1.SubPool) []attempt {
	t.Helper()
	outside := &corev1.Service{ObjectMeta: in(pool, "cpa")}
	route := &gatewayv1.HTTPRoute{ObjectMeta: in(pool, "cpa")}
	route.Spec.Hostnames = []gatewayv1.Hostname{"another.example.com"}
	script := &corev1.ConfigMap{ObjectMeta: in(pool, "of-the-tenant")}
	create(t, script)
	return []attempt{
		{"start something else in a pool", creating(statefulSet(in(pool, "another"))), byPolicy},
		{"open another door in a pool", creating(&netv1.NetworkPolicy{ObjectMeta: in(pool, "allow-all")}), byPolicy},
		{"make a Service with an outside address", patching(outside, `{"spec":{"externalIPs":["192.0.2.1"]}}`), byPolicy},
		{"make a Service with a load balancer", patching(outside, `{"spec":{"type":"LoadBalancer"}}`), byPolicy},
		{"publish another host", creating(route), byPolicy},
		{"delete what the pool does not own", deleting(script), byPolicy},
		{"change the spec of a SubPool", patching(pool, `{"spec":{"suspend":true}}`), byPolicy},
		{"label a SubPool", patching(pool, `{"metadata":{"labels":{"a":"b"}}}`), byPolicy},
		{"annotate a SubPool", patching(pool, `{"metadata":{"annotations":{"a":"b"}}}`), byPolicy},
		{"take off a foreign finalizer", patching(pool, `{"metadata":{"finalizers":["`+v1alpha1.Finalizer+`","example.org/more"]}}`), byPolicy},
		{"make a SubPool", creating(newPool("made")), byRoles},
		{"delete a SubPool", deleting(pool), byRoles},
	}
}
