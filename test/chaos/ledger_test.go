//go:build chaos

package chaos

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
)

// ledger watches during the whole run what must never happen, not even for a moment.
type ledger struct {
	mu sync.Mutex
	// live are the Pods of each namespace whose containers may run.
	live map[string]map[types.UID]bool
	// namespaces and secrets are what each SubPool has had, by its UID.
	namespaces, secrets map[types.UID][]types.UID
	// content is a digest of each Secret.
	content map[types.UID][sha256.Size]byte
	// byHand are the objects that an administrator has deleted.
	byHand map[types.UID]bool
	// faults is what must not have happened.
	faults []error
}

func newLedger() *ledger {
	return &ledger{
		live:       map[string]map[types.UID]bool{},
		namespaces: map[types.UID][]types.UID{},
		secrets:    map[types.UID][]types.UID{},
		content:    map[types.UID][sha256.Size]byte{},
		byHand:     map[types.UID]bool{},
	}
}

// openLedger returns when it sees everything that exists; it watches until ctx ends.
func openLedger(ctx context.Context) (*ledger, error) {
	clients, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client for watching: %w", err)
	}
	l := newLedger()
	ofPools := func(o *metav1.ListOptions) {
		o.LabelSelector = v1alpha1.LabelManaged + "=" + v1alpha1.LabelManagedValue
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithTweakListOptions(ofPools))
	core := factory.Core().V1()
	_, podErr := core.Pods().Informer().AddEventHandler(handler(l, l.podSeen, l.podGone))
	_, secretErr := core.Secrets().Informer().AddEventHandler(handler(l, l.secretSeen, nil))
	_, namespaceErr := core.Namespaces().Informer().AddEventHandler(handler(l, l.namespaceSeen, nil))
	if err := errors.Join(podErr, secretErr, namespaceErr); err != nil {
		return nil, fmt.Errorf("watch the pools: %w", err)
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("watch the pools: no list of %s", kind)
		}
	}
	return l, nil
}

// handler calls seen for every state of an object, and gone, if there is one, with its last state.
func handler[T metav1.Object](l *ledger, seen, gone func(T)) cache.ResourceEventHandlerFuncs {
	locked := func(do func(T), object any) {
		l.mu.Lock()
		defer l.mu.Unlock()
		do(object.(T))
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { locked(seen, object) },
		UpdateFunc: func(_, object any) { locked(seen, object) },
		DeleteFunc: func(object any) {
			if lost, ok := object.(cache.DeletedFinalStateUnknown); ok {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.fault("the watch has lost the end of %s, so nothing can be said about it", lost.Key)
				return
			}
			if gone != nil {
				locked(gone, object)
			}
		},
	}
}

// fault notes what must not happen. The caller holds the lock.
func (l *ledger) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Errorf(format, args...))
}

func (l *ledger) podSeen(pod *corev1.Pod) {
	live := l.live[pod.Namespace]
	if live == nil {
		live = map[types.UID]bool{}
		l.live[pod.Namespace] = live
	}
	if harness.Ended(pod) {
		delete(live, pod.UID)
		return
	}
	if !live[pod.UID] && len(live) > 0 {
		l.fault("namespace %s has Pod %s (%s) beside a live one", pod.Namespace, pod.Name, pod.UID)
	}
	live[pod.UID] = true
}

// podGone finds Pods that were removed by force: on a real node their containers would still run.
func (l *ledger) podGone(pod *corev1.Pod) {
	if !harness.Ended(pod) && pod.Spec.NodeName != "" {
		l.fault("Pod %s/%s (%s) was removed before its containers had ended", pod.Namespace, pod.Name, pod.UID)
	}
	delete(l.live[pod.Namespace], pod.UID)
}

func (l *ledger) namespaceSeen(namespace *corev1.Namespace) { note(l.namespaces, namespace) }

func (l *ledger) secretSeen(secret *corev1.Secret) {
	note(l.secrets, secret)
	data, err := json.Marshal(secret.Data)
	if err != nil {
		l.fault("Secret of %s: %w", secret.Namespace, err)
	}
	digest := sha256.Sum256(data)
	if before, known := l.content[secret.UID]; known && before != digest {
		l.fault("the Secret of %s (%s) has new content", secret.Namespace, secret.UID)
	}
	l.content[secret.UID] = digest
}

// note adds an object to those that its SubPool has had.
func note(had map[types.UID][]types.UID, object metav1.Object) {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != "SubPool" {
		return
	}
	known := had[owner.UID]
	if len(known) == 0 || known[len(known)-1] != object.GetUID() {
		had[owner.UID] = append(known, object.GetUID())
	}
}

func (l *ledger) deletedByHand(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byHand[uid] = true
}

// verdict returns what must not have happened. A SubPool has one namespace and one Secret as long as it lives, and one
// more for each that was deleted by hand; a new namespace has a new Secret.
func (l *ledger) verdict() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	faults := l.faults
	for owner, namespaces := range l.namespaces {
		if allowed := 1 + l.countByHand(namespaces); len(namespaces) > allowed {
			faults = append(faults, fmt.Errorf("SubPool %s has had %d namespaces, with cause for %d: %v",
				owner, len(namespaces), allowed, namespaces))
		}
	}
	for owner, secrets := range l.secrets {
		if allowed := 1 + l.countByHand(secrets) + l.countByHand(l.namespaces[owner]); len(secrets) > allowed {
			faults = append(faults, fmt.Errorf("SubPool %s has had %d Secrets, with cause for %d: %v",
				owner, len(secrets), allowed, secrets))
		}
	}
	return errors.Join(faults...)
}

func (l *ledger) countByHand(objects []types.UID) int {
	count := 0
	for _, uid := range objects {
		if l.byHand[uid] {
			count++
		}
	}
	return count
}
