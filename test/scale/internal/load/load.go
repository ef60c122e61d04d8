// Package load fills a cluster: with pools, and with objects of others that the operator must not pay for.
package load

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// writers is how many objects are made side by side. More of them only queue at the API server.
	writers = 8

	// namespaceTick is how often a new namespace is looked at, namespacePatience how long Kubernetes may take to fill it.
	namespaceTick     = 100 * time.Millisecond
	namespacePatience = time.Minute
)

// Create makes count objects, the first with number from. It returns the first error after all writers have ended.
func Create(ctx context.Context, admin client.Client, from, count int, object func(number int) client.Object) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for number := from; number < from+count; number++ {
		group.Go(func() error {
			made := object(number)
			if err := admin.Create(ctx, made); err != nil {
				return fmt.Errorf("create %T %s: %w", made, made.GetName(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// Namespace makes a namespace and waits until Pods can be made there, which need its default account.
func Namespace(ctx context.Context, admin client.Client, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := admin.Create(ctx, namespace); err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	err := wait.PollUntilContextTimeout(ctx, namespaceTick, namespacePatience, true, func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for the default ServiceAccount of namespace %s: %w", name, err)
	}
	return nil
}
