//go:build chaos

package chaos

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// What the ledger is there for happens in no good run, so that it is seen to work only here.
func TestLedgerFindsFaults(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(*ledger)
		fault   string
	}{
		"one Pod after the other": {happens: func(l *ledger) {
			l.podSeen(pod("a", corev1.PodRunning))
			l.podSeen(pod("a", corev1.PodSucceeded))
			l.podSeen(pod("b", corev1.PodPending))
			l.podGone(pod("a", corev1.PodSucceeded))
			l.podSeen(pod("b", corev1.PodRunning))
		}},
		"two live Pods": {fault: "beside a live one", happens: func(l *ledger) {
			l.podSeen(pod("a", corev1.PodRunning))
			l.podSeen(pod("b", corev1.PodPending))
		}},
		"Pod removed by force": {fault: "before its containers had ended", happens: func(l *ledger) {
			l.podSeen(pod("a", corev1.PodRunning))
			l.podGone(pod("a", corev1.PodRunning))
		}},
		"events lost": {fault: "has lost the end of subpool-x/runtime-0", happens: func(l *ledger) {
			handler(l, l.podSeen, l.podGone).OnDelete(cache.DeletedFinalStateUnknown{Key: "subpool-x/runtime-0"})
		}},
		"Secret replaced for no reason": {fault: "2 Secrets, with cause for 1", happens: func(l *ledger) {
			l.secretSeen(secret("a", "key"))
			l.secretSeen(secret("b", "key"))
		}},
		"Secret deleted by hand": {happens: func(l *ledger) {
			l.secretSeen(secret("a", "key"))
			l.deletedByHand("a")
			l.secretSeen(secret("b", "other key"))
		}},
		"Secret changed": {fault: "has new content", happens: func(l *ledger) {
			l.secretSeen(secret("a", "key"))
			l.secretSeen(secret("a", "other key"))
		}},
		"namespace replaced for no reason": {fault: "2 namespaces, with cause for 1", happens: func(l *ledger) {
			l.namespaceSeen(namespace("a"))
			l.namespaceSeen(namespace("b"))
		}},
		"namespace deleted by hand": {happens: func(l *ledger) {
			l.namespaceSeen(namespace("a"))
			l.secretSeen(secret("c", "key"))
			l.deletedByHand("a")
			l.namespaceSeen(namespace("b"))
			l.secretSeen(secret("d", "other key"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			test.happens(l)
			if test.fault == "" {
				assert.NoError(t, l.verdict())
				return
			}
			assert.ErrorContains(t, l.verdict(), test.fault)
		})
	}
}

func pod(uid types.UID, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "subpool-x", Name: "runtime-0", UID: uid},
		Spec:       corev1.PodSpec{NodeName: "node"},
		Status:     corev1.PodStatus{Phase: phase},
	}
}

func secret(uid types.UID, key string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: owned(uid), Data: map[string][]byte{"key": []byte(key)}}
}

func namespace(uid types.UID) *corev1.Namespace { return &corev1.Namespace{ObjectMeta: owned(uid)} }

// owned belongs always to the same SubPool.
func owned(uid types.UID) metav1.ObjectMeta {
	owner := metav1.OwnerReference{Kind: "SubPool", UID: "pool", Controller: ptr.To(true)}
	return metav1.ObjectMeta{UID: uid, OwnerReferences: []metav1.OwnerReference{owner}}
}
