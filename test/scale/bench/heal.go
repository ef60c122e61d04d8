package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
	"github.com/example-org/subrelay-operator/test/scale/bench/report"
	"github.com/example-org/subrelay-operator/test/scale/internal/audit"
	"github.com/example-org/subrelay-operator/test/scale/internal/objects"
	"github.com/example-org/subrelay-operator/test/scale/internal/presence"
)

const (
	// repairsEach is how often each kind is deleted, and edited.
	repairsEach = 20

	// healPatience is how long an object may stay away.
	healPatience = 2 * time.Minute
)

// disturbance is something that an administrator does to an object of a pool, and the operator has to undo.
type disturbance struct {
	action   string // delete or edit
	resource string
	poolID   string
	at       time.Time
}

// heal deletes and edits objects of all kinds while nothing else happens.
func (t *turn) heal(ctx context.Context) error {
	hand, err := newHand(t)
	if err != nil {
		return err
	}
	mark, err := t.Audit.Mark(ctx)
	if err != nil {
		return err
	}
	if err := hand.disturb(ctx, nil); err != nil {
		return err
	}
	if _, err := t.idle(ctx, idleSpan); err != nil {
		return err
	}
	calls, err := t.calls(ctx, mark)
	if err != nil {
		return err
	}
	countRequests(hand.repairs, hand.disturbances, calls)
	t.found.Repairs = hand.repairs
	return nil
}

// healWhileBusy does the same while as many pools again are being made, until they are.
func (t *turn) healWhileBusy(ctx context.Context) error {
	hand, err := newHand(t)
	if err != nil {
		return err
	}
	made := make(chan struct{})
	busy := &report.Busy{}
	if busy.Before, err = t.memory(); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		busy.Wave, err = t.wave(ctx, waveOptions{ids: poolIDs("more", len(t.pools)), untilIdle: true, made: made})
		return err
	})
	group.Go(func() error { return hand.disturb(ctx, made) })
	if err := group.Wait(); err != nil {
		return err
	}
	busy.Repairs = hand.repairs
	t.found.Busy = busy
	return nil
}

// hand disturbs pools and waits for the repair, one at a time.
type hand struct {
	*turn
	client       metadata.Interface
	repairs      []report.Repair
	disturbances []disturbance
}

func newHand(t *turn) (*hand, error) {
	client, err := metadata.NewForConfig(metadata.ConfigFor(t.Config))
	if err != nil {
		return nil, fmt.Errorf("make a client for an administrator: %w", err)
	}
	return &hand{turn: t, client: client}, nil
}

// disturb goes through all kinds, again and again, each time in another pool; it ends early when stop is closed.
func (h *hand) disturb(ctx context.Context, stop <-chan struct{}) error {
	number := 0
	for range repairsEach {
		for _, action := range []string{"delete", "edit"} {
			keys, err := h.keys(h.pools[0])
			if err != nil {
				return err
			}
			seen := map[string]bool{}
			for i, key := range keys {
				if seen[key.Resource.Resource] || !healable(action, key) {
					continue
				}
				seen[key.Resource.Resource] = true
				select {
				case <-stop:
					return nil
				default:
				}
				if err := h.disturbOne(ctx, action, h.pools[number%len(h.pools)], i); err != nil {
					return err
				}
				number++
			}
		}
	}
	return nil
}

// healable is false for what is no repair: with its namespace a pool's data is gone, and a Secret is only ever made, since nothing but
// its keys is of use.
func healable(action string, key objects.Key) bool {
	return action == "delete" && key.Resource.Resource != "namespaces" || action == "edit" && key.Resource.Resource != "secrets"
}

// disturbOne does something to the object of the pool with this index.
func (h *hand) disturbOne(ctx context.Context, action, poolID string, index int) error {
	keys, err := h.keys(poolID)
	if err != nil {
		return err
	}
	key := keys[index]
	object := h.client.Resource(key.Resource).Namespace(key.Namespace)
	began := time.Now()
	var back *presence.Expectation
	if action == "delete" {
		back = h.watch.Expect(again, key)
		err = object.Delete(ctx, key.Name, metav1.DeleteOptions{})
	} else {
		label, value := editOf(key)
		patch, encodeErr := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{label: value}}})
		if encodeErr != nil {
			return encodeErr
		}
		back = h.watch.Expect(mended(label, value), key)
		_, err = object.Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	answered := time.Now()
	if err != nil {
		return fmt.Errorf("%s %s %s/%s: %w", action, key.Resource.Resource, key.Namespace, key.Name, err)
	}
	at, err := back.Wait(ctx, healPatience)
	if err != nil {
		return fmt.Errorf("after %s of %s in pool %s: %w", action, key.Resource.Resource, poolID, err)
	}
	h.disturbances = append(h.disturbances, disturbance{action: action, resource: key.Resource.Resource, poolID: poolID, at: began})
	h.repairs = append(h.repairs, report.Repair{
		Action: action, Kind: key.Resource.Resource, Seconds: max(0, at.Sub(answered)).Seconds(),
	})
	return nil
}

// editOf returns a label of the operator's that no watch selects by, and a wrong value that the API server accepts.
func editOf(key objects.Key) (label, value string) {
	if key.Resource.Resource == "namespaces" {
		return "pod-security.kubernetes.io/warn", "privileged"
	}
	return v1alpha1.LabelPool, "edited"
}

// again is the condition that an object that was deleted was made anew.
func again(kind watch.EventType, _ *metav1.PartialObjectMetadata) bool { return kind == watch.Added }

// mended is the condition that a label was edited and then set right.
func mended(label, wrong string) presence.Condition {
	was := false
	return func(kind watch.EventType, object *metav1.PartialObjectMetadata) bool {
		broken := object.Labels[label] == wrong
		was = was || broken
		return kind == watch.Modified && was && !broken
	}
}

// countRequests puts each call to the last disturbance of its pool before it.
func countRequests(repairs []report.Repair, disturbances []disturbance, calls audit.Calls) {
	for _, call := range calls {
		last := -1
		for i, disturbance := range disturbances {
			if call.About(disturbance.poolID) && !call.Received.Time.Before(disturbance.at) {
				last = i
			}
		}
		if last >= 0 {
			repairs[last].Requests++
		}
	}
}
