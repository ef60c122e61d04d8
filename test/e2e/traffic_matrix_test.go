//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// newPublishedPool returns a pool that clients reach through the shared Gateway.
func newPublishedPool(word string) *v1alpha1.SubPool {
	pool := newPool(word)
	pool.Spec.Exposure.Mode = v1alpha1.ExposureGateway
	return pool
}

// A target, and what is to become of attempts at it.
type target struct {
	name, way, address string
	// control is for a Pod that no policy holds back, pool for a pool's own Pod.
	control, pool outcome
	// proxied is for a pool's Pod through the shared Mihomo, with GET and with CONNECT. The control case is a proxy
	// without rules.
	freeProxied, proxied outcome
}

func (target target) direct() string { return target.way + "=" + target.address }

// NET-01: what a pool's Pod reaches directly and through the shared Mihomo. In the control case the same program, in a Pod that no
// policy holds back or through a proxy that has no rules, reaches the same target.
func TestNET01TrafficMatrix(t *testing.T) {
	t.Parallel()
	inside, other, opened := newPool("inside"), newPool("other"), newPool("opened")
	for _, pool := range []*v1alpha1.SubPool{inside, other, opened} {
		create(t, pool)
	}
	for _, pool := range []*v1alpha1.SubPool{inside, other, opened} {
		awaitReady(t, pool.Name)
	}
	openWalls(t, opened.Name)
	targets := trafficTargets(t, other.Name, opened.Name)

	var direct, proxied []string
	for _, target := range targets {
		direct = append(direct, target.direct())
		if target.proxied != untried {
			proxied = append(proxied, "get="+target.address, "connect="+target.address)
		}
	}
	mihomo, exit := serviceIP(t, sharedNamespace, "mihomo-gateway")+":7890", serviceIP(t, "mihomo-exit", "exit")+":7890"
	seenFree, seenPool := free.try(t, "", direct...), inPool(inside.Name).try(t, "", direct...)
	seenFreeProxied, seenProxied := free.try(t, exit, proxied...), inPool(inside.Name).try(t, mihomo, proxied...)

	var rows [][]string
	for _, target := range targets {
		assert.Equal(t, target.control, seenFree[target.direct()], "%s, from a Pod without policies", target.name)
		assert.Equal(t, target.pool, seenPool[target.direct()], "%s, from a pool", target.name)
		row := []string{target.name, string(seenFree[target.direct()]), string(seenPool[target.direct()])}
		if target.proxied == untried {
			rows = append(rows, append(row, string(untried), string(untried)))
			continue
		}
		for _, way := range []string{"get=", "connect="} {
			assert.Equal(t, target.freeProxied, seenFreeProxied[way+target.address], "%s, through a proxy without rules, %s", target.name, way)
			assert.Equal(t, target.proxied, seenProxied[way+target.address], "%s, through Mihomo, %s", target.name, way)
		}
		rows = append(rows, append(row, string(seenFreeProxied["get="+target.address]), string(seenProxied["get="+target.address])))
	}
	compareWithPage(t, "out of a pool", []string{
		"target", "Pod without policies", "pool's Pod", "Pod without policies, proxy without rules", "pool's Pod, through Mihomo",
	}, rows)
}

// trafficTargets are everything that a pool may want to reach. The walls of one of the two other pools stand, those of the
// other one have been opened, so that only the walls of the pool that tries are left.
func trafficTargets(t *testing.T, closed, opened string) []target {
	t.Helper()
	node := readPod(t, closed).Status.HostIP
	operator := &corev1.PodList{}
	require.NoError(t, admin.List(t.Context(), operator, client.InNamespace(systemNamespace)))
	require.NotEmpty(t, operator.Items)
	operatorIP := operator.Items[0].Status.PodIP
	mihomo := &corev1.PodList{}
	require.NoError(t, admin.List(t.Context(), mihomo, client.InNamespace(sharedNamespace)))
	require.NotEmpty(t, mihomo.Items)
	gateway := dataPlaneService(t).Spec.ClusterIP
	clientIP := read[corev1.Pod](t, free.namespace, free.pod).Status.PodIP

	tcp := func(host string, port int) string { return fmt.Sprintf("%s:%d", host, port) }
	// The only ways: the shared Mihomo, which takes connections from pools alone, and resolvers.
	targets := []target{
		{"Mihomo, Service", "tcp", tcp(serviceIP(t, sharedNamespace, "mihomo-gateway"), 7890), refused, reached, untried, untried},
		{"Mihomo, Pod", "tcp", tcp(mihomo.Items[0].Status.PodIP, 7890), refused, reached, untried, untried},
		{"cluster DNS, UDP", "dns-udp", tcp(serviceIP(t, "kube-system", "kube-dns"), 53), reached, reached, untried, untried},
		{"cluster DNS, TCP", "dns-tcp", tcp(serviceIP(t, "kube-system", "kube-dns"), 53), reached, reached, untried, untried},
		{"outside address", "tcp", tcp(providerAddress, 80), reached, refused, reached, reached},
	}
	for _, forbidden := range []struct {
		name string
		host string
		port int
	}{
		{"API server, Service", serviceIP(t, metav1.NamespaceDefault, "kubernetes"), 443},
		{"API server, node's address", node, 6443},
		{"kubelet, 10250", node, 10250},
		{"kubelet, 10255", node, 10255},
		{"metadata service", metadataAddress, 80},
		{"operator's metrics, Service", serviceIP(t, systemNamespace, "subpool-operator-metrics"), 8443},
		{"operator's metrics, Pod", operatorIP, 8443},
		{"operator's health", operatorIP, 8081},
		{"Pod of somebody else", clientIP, 8080},
		{"the Gateway's data plane", gateway, 80},
		{"opened pool's cpa, Service", serviceIP(t, namespaceOf(opened), cpaName), cpaPort},
		{"opened pool's cpa, Pod", readPod(t, opened).Status.PodIP, cpaPort},
		{"opened pool's cpa-manager, Service", serviceIP(t, namespaceOf(opened), managerName), managerPort},
		{"opened pool's cpa-manager, Pod", readPod(t, opened).Status.PodIP, managerPort},
	} {
		targets = append(targets, target{forbidden.name, "tcp", tcp(forbidden.host, forbidden.port), reached, refused, reached, refused})
	}
	for _, walled := range []struct {
		name string
		host string
		port int
	}{
		{"another pool's cpa, Service", serviceIP(t, namespaceOf(closed), cpaName), cpaPort},
		{"another pool's cpa, Pod", readPod(t, closed).Status.PodIP, cpaPort},
		{"another pool's cpa-manager, Service", serviceIP(t, namespaceOf(closed), managerName), managerPort},
		{"another pool's cpa-manager, Pod", readPod(t, closed).Status.PodIP, managerPort},
	} {
		targets = append(targets, target{walled.name, "tcp", tcp(walled.host, walled.port), refused, refused, refused, refused})
	}
	return append(targets, target{
		"cache for names that is not configured", "dns-udp", tcp(nameCacheAddress, 53), reached, refused, untried, untried,
	})
}

// openWalls lets everybody in to a pool, as a tenant's administrator might, and waits until that is so.
func openWalls(t *testing.T, poolID string) {
	t.Helper()
	create(t, &netv1.NetworkPolicy{
		ObjectMeta: inNamespace(namespaceOf(poolID), "everybody"),
		Spec:       netv1.NetworkPolicySpec{Ingress: []netv1.NetworkPolicyIngressRule{{}}, PolicyTypes: []netv1.PolicyType{netv1.PolicyTypeIngress}},
	})
	cpa := fmt.Sprintf("tcp=%s:%d", readPod(t, poolID).Status.PodIP, cpaPort)
	eventually(t, healBudget, func(c *assert.CollectT) {
		assert.Equal(c, reached, free.try(t, "", cpa)[cpa])
	})
}

// Who comes in to a pool: nobody but the shared Gateway's data plane, and that only to cpa of a pool of mode Gateway; and
// whoever may use kubectl port-forward. The control case is a pool whose walls somebody has opened.
func TestWaysIntoAPool(t *testing.T) {
	t.Parallel()
	internal, public, opened := newPool("internal"), newPublishedPool("public"), newPool("open")
	for _, pool := range []*v1alpha1.SubPool{internal, public, opened} {
		create(t, pool)
	}
	for _, pool := range []*v1alpha1.SubPool{internal, public, opened} {
		awaitReady(t, pool.Name)
	}
	openWalls(t, opened.Name)
	edge := inDataPlane(t)
	from := []struct {
		name string
		prober
	}{{"Pod without policies", free}, {"the Gateway's data plane", edge}, {"another pool's Pod", inPool(opened.Name)}}

	var rows [][]string
	for _, target := range []struct {
		name, pool, service string
		port                int
		want                [3]outcome
	}{
		{"cpa, Internal", internal.Name, cpaName, cpaPort, [3]outcome{refused, refused, refused}},
		{"cpa-manager, Internal", internal.Name, managerName, managerPort, [3]outcome{refused, refused, refused}},
		{"cpa, Gateway", public.Name, cpaName, cpaPort, [3]outcome{refused, reached, refused}},
		{"cpa-manager, Gateway", public.Name, managerName, managerPort, [3]outcome{refused, refused, refused}},
		// A pool's Pod always reaches itself.
		{"cpa, opened", opened.Name, cpaName, cpaPort, [3]outcome{reached, reached, reached}},
		{"cpa-manager, opened", opened.Name, managerName, managerPort, [3]outcome{reached, reached, reached}},
	} {
		pod := fmt.Sprintf("tcp=%s:%d", readPod(t, target.pool).Status.PodIP, target.port)
		service := fmt.Sprintf("tcp=%s:%d", serviceIP(t, namespaceOf(target.pool), target.service), target.port)
		row := []string{target.name}
		for i, client := range from {
			ways := []string{pod, service}
			if client.pod == podName && target.pool == opened.Name {
				ways = []string{pod}
			}
			seen := client.try(t, "", ways...)
			for _, way := range ways {
				assert.Equal(t, target.want[i], seen[way], "%s, from %s, %s", target.name, client.name, way)
			}
			row = append(row, string(seen[pod]))
		}
		rows = append(rows, append(row, string(portForwardReaches(t, target.pool, target.service, target.port))))
	}
	heading := []string{"target"}
	for _, client := range from {
		heading = append(heading, client.name)
	}
	compareWithPage(t, "into a pool", append(heading, "kubectl port-forward"), rows)
}

func portForwardReaches(t *testing.T, poolID, service string, port int) outcome {
	t.Helper()
	paths := map[string]string{cpaName: "/healthz", managerName: "/health"}
	status := forward(t, "http", namespaceOf(poolID), service, port).get(t, paths[service], "").status
	assert.Equal(t, http.StatusOK, status, "%s of pool %s through port-forward", service, poolID)
	if status == http.StatusOK {
		return reached
	}
	return refused
}
