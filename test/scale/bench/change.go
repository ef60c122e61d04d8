package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example-org/subrelay-operator/internal/apply"
	"github.com/example-org/subrelay-operator/internal/operatorconfig"
	"github.com/example-org/subrelay-operator/test/harness"
	"github.com/example-org/subrelay-operator/test/scale/bench/report"
	"github.com/example-org/subrelay-operator/test/scale/internal/objects"
	"github.com/example-org/subrelay-operator/test/scale/internal/presence"
)

const (
	flaps = 10
	// flapTick is how long the endpoint is away, and there again.
	flapTick = 500 * time.Millisecond
)

// configurationChange is a field of the operator configuration that has another value, and the resource in each pool that
// follows.
type configurationChange struct {
	name     string
	path     []string
	value    string
	resource string
}

var configurationChanges = []configurationChange{
	{"another quota", []string{"maxPerPool", "requests", "cpu"}, "5", "resourcequotas"},
	{"another Pod template", []string{"startGate", "image"}, "registry.example.invalid/subrelay/start-gate:v2", "statefulsets"},
}

// change measures what something costs that concerns all pools.
func (t *turn) change(ctx context.Context) error {
	document, err := t.configuration(ctx)
	if err != nil {
		return err
	}
	for number, change := range configurationChanges {
		name := fmt.Sprintf("subpool-operator-config-v%d", number+2)
		if document, err = t.createConfiguration(ctx, name, document, change); err != nil {
			return err
		}
		t.operator.flags = append(t.operator.flags, "--operator-config="+name)
		if err := t.applyConfiguration(ctx, change); err != nil {
			return err
		}
	}
	return t.flap(ctx)
}

// configuration returns the document that is in force at first.
func (t *turn) configuration(ctx context.Context) (string, error) {
	configMap := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: harness.SystemNamespace, Name: harness.OperatorConfig}
	if err := t.Admin.Get(ctx, key, configMap); err != nil {
		return "", fmt.Errorf("read the operator configuration: %w", err)
	}
	return configMap.Data[operatorconfig.Key], nil
}

// createConfiguration makes the ConfigMap, and returns its document.
func (t *turn) createConfiguration(ctx context.Context, name, document string, change configurationChange) (string, error) {
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(document), &content); err != nil {
		return "", fmt.Errorf("read the operator configuration: %w", err)
	}
	if err := unstructured.SetNestedField(content, change.value, change.path...); err != nil {
		return "", fmt.Errorf("change the operator configuration: %w", err)
	}
	changed, err := yaml.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("write the operator configuration: %w", err)
	}
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: harness.SystemNamespace, Name: name},
		Immutable:  ptr.To(true),
		Data:       map[string]string{operatorconfig.Key: string(changed)},
	}
	if err := t.Admin.Create(ctx, configMap); err != nil {
		return "", fmt.Errorf("create an operator configuration: %w", err)
	}
	return string(changed), nil
}

// applyConfiguration restarts the operator, whose flags name the new configuration by now, and waits until all pools follow.
func (t *turn) applyConfiguration(ctx context.Context, change configurationChange) error {
	var changing []objects.Key
	for _, id := range t.pools {
		keys, err := t.keys(id)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if key.Resource.Resource == change.resource {
				changing = append(changing, key)
			}
		}
	}
	follows, err := t.followed(ctx, changing[0].Resource)
	if err != nil {
		return err
	}
	if err := t.operator.Stop(); err != nil {
		return err
	}
	return t.measureChange(ctx, change.name, t.watch.Expect(follows, changing...), func() error {
		return t.operator.Start(ctx, t.Cluster)
	})
}

// followed is the condition that an object was applied with another intent than now.
func (t *turn) followed(ctx context.Context, resource schema.GroupVersionResource) (presence.Condition, error) {
	reader, err := metadata.NewForConfig(metadata.ConfigFor(t.Config))
	if err != nil {
		return nil, fmt.Errorf("make a client for metadata: %w", err)
	}
	list, err := reader.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource.Resource, err)
	}
	before := map[string]string{}
	for i := range list.Items {
		before[list.Items[i].Namespace] = list.Items[i].Annotations[apply.AnnotationIntent]
	}
	return func(kind watch.EventType, object *metav1.PartialObjectMetadata) bool {
		return kind == watch.Modified && object.Annotations[apply.AnnotationIntent] != before[object.Namespace]
	}, nil
}

// flap takes the only endpoint of Mihomo away and brings it back, several times.
func (t *turn) flap(ctx context.Context) error {
	ticker := time.NewTicker(flapTick)
	defer ticker.Stop()
	return t.measureChange(ctx, fmt.Sprintf("%d flaps of Mihomo", flaps), nil, func() error {
		for range flaps {
			for _, ready := range []bool{false, true} {
				if err := t.setEndpoint(ctx, ready); err != nil {
					return err
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-ticker.C:
				}
			}
		}
		return nil
	})
}

func (t *turn) setEndpoint(ctx context.Context, ready bool) error {
	slice := &discoveryv1.EndpointSlice{}
	if err := t.Admin.Get(ctx, client.ObjectKeyFromObject(harness.MihomoSlice()), slice); err != nil {
		return fmt.Errorf("read the endpoint of Mihomo: %w", err)
	}
	slice.Endpoints[0].Conditions.Ready = ptr.To(ready)
	if err := t.Admin.Update(ctx, slice); err != nil {
		return fmt.Errorf("change the endpoint of Mihomo: %w", err)
	}
	return nil
}

// measureChange does something and counts the requests until all is idle again. If pools are to follow, it also measures how
// long that takes.
func (t *turn) measureChange(ctx context.Context, name string, follow *presence.Expectation, do func() error) error {
	mark, err := t.Audit.Mark(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := do(); err != nil {
		return err
	}
	change := report.Change{Name: name}
	if follow != nil {
		at, err := follow.Wait(ctx, patience(len(t.pools)))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		change.Seconds = at.Sub(began).Seconds()
	}
	idle, err := t.idle(ctx, idleSpan)
	if err != nil {
		return err
	}
	change.Idle = idle.Sub(began).Seconds()
	calls, err := t.calls(ctx, mark)
	if err != nil {
		return err
	}
	change.Traffic = trafficOf(calls)
	t.found.Changes = append(t.found.Changes, change)
	return nil
}
