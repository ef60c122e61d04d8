package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
	"github.com/example-org/subrelay-operator/test/scale/bench/report"
	"github.com/example-org/subrelay-operator/test/scale/internal/load"
	"github.com/example-org/subrelay-operator/test/scale/internal/objects"
	"github.com/example-org/subrelay-operator/test/scale/internal/presence"
)

// remove deletes all pools at once.
func (t *turn) remove(ctx context.Context) error {
	list := &v1alpha1.SubPoolList{}
	if err := t.Admin.List(ctx, list); err != nil {
		return fmt.Errorf("list SubPools: %w", err)
	}
	ids := make([]string, 0, len(list.Items))
	for i := range list.Items {
		ids = append(ids, list.Items[i].Name)
	}
	mark, err := t.Audit.Mark(ctx)
	if err != nil {
		return err
	}
	seconds, err := t.discard(ctx, ids)
	if err != nil {
		return err
	}
	calls, err := t.calls(ctx, mark)
	if err != nil {
		return err
	}
	t.found.Delete = &report.Deletion{Pools: len(ids), Seconds: seconds, Traffic: trafficOf(calls)}
	return nil
}

// discard deletes pools and returns when all is idle again, with the time until the last namespace was gone.
func (t *turn) discard(ctx context.Context, ids []string) (seconds float64, err error) {
	t.say("operator: deleting %d pools", len(ids))
	resource := corev1.SchemeGroupVersion.WithResource("namespaces")
	namespaces := make([]objects.Key, 0, len(ids))
	for _, id := range ids {
		namespaces = append(namespaces, objects.Key{Resource: resource, Name: harness.NamespaceOf(id)})
	}
	gone := t.watch.Expect(presence.Gone, namespaces...)
	began := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(t.operator.Workers())
	for _, id := range ids {
		group.Go(func() error {
			if err := t.Admin.Delete(groupCtx, load.NamedPool(id)); err != nil {
				return fmt.Errorf("delete SubPool %s: %w", id, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	at, err := gone.Wait(ctx, patience(len(ids)))
	if err != nil {
		return 0, err
	}
	_, err = t.idle(ctx, idleSpan)
	return at.Sub(began).Seconds(), err
}
