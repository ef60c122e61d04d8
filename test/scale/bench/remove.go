package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/harness"
	"github.com/example-org/subrelay-operator/test/scale/bench/report"
	"github.com/example-org/subrelay-operator/test/scale/internal/objects"
	"github.com/example-org/subrelay-operator/test/scale/internal/presence"

	"golang.org/x/sync/errgroup"
)

// remove deletes all pools at once.
func (t *turn) remove(ctx context.Context) error {
	if _, err := t.idle(ctx, idleSpan); err != nil {
		return err
	}
	pools := &v1alpha1.SubPoolList{}
	if err := t.Admin.List(ctx, pools); err != nil {
		return fmt.Errorf("list SubPools: %w", err)
	}
	resource := schema.GroupVersionResource{Version: corev1.SchemeGroupVersion.Version, Resource: "namespaces"}
	namespaces := make([]objects.Key, 0, len(pools.Items))
	for i := range pools.Items {
		namespaces = append(namespaces, objects.Key{Resource: resource, Name: harness.NamespaceOf(pools.Items[i].Name)})
	}
	gone := t.watch.Expect(presence.Gone, namespaces...)
	mark, err := t.Audit.Mark(ctx)
	if err != nil {
		return err
	}
	t.say("operator: deleting %d pools", len(pools.Items))
	began := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(t.operator.Workers())
	for i := range pools.Items {
		group.Go(func() error {
			if err := t.Admin.Delete(groupCtx, &pools.Items[i]); err != nil {
				return fmt.Errorf("delete SubPool %s: %w", pools.Items[i].Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	at, err := gone.Wait(ctx, patience(len(pools.Items)))
	if err != nil {
		return err
	}
	if _, err := t.idle(ctx, idleSpan); err != nil {
		return err
	}
	calls, err := t.calls(ctx, mark)
	t.found.Delete = &report.Deletion{Pools: len(pools.Items), Seconds: at.Sub(began).Seconds(), Traffic: trafficOf(calls)}
	return err
}
