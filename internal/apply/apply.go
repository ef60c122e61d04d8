// Package apply brings objects in the cluster to what the operator intends, by server-side apply with one
// field manager, and knows when there is nothing to do.
//
// An intent is written when the object is missing, when the intent differs from the one applied last (its
// hash is an annotation of the object, so a field that is no longer wanted is dropped), or when applying it
// would change the live object (somebody edited a field that is ours), unless the live object comes from a cache
// that does not have the engine's last write yet. Fields, labels and list entries that the intent does not name
// belong to others and survive.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"golang.org/x/sync/errgroup"
)

// AnnotationIntent carries the hash of the intent that was applied last.
const AnnotationIntent = "subrelay.example.com/intent"

// Key identifies an object.
type Key struct {
	schema.GroupVersionKind
	client.ObjectKey
}

func (k Key) String() string { return k.Kind + " " + k.ObjectKey.String() }

// Live are objects as the cluster has them, by key.
type Live map[Key]client.Object

// Cause is why an intent was written.
type Cause string

const (
	// Missing means that the object was not there.
	Missing Cause = "Missing"
	// Outdated means that the intent differs from the one applied last.
	Outdated Cause = "Outdated"
	// Edited means that somebody else changed what the intent says.
	Edited Cause = "Edited"
	// Unseen means that an earlier call has written the intent and the live object is older than that: nothing was sent.
	Unseen Cause = "Unseen"
)

// Write is one intent that was written: what was seen of the object is out of date.
type Write struct {
	Key   Key
	Cause Cause
}

// Engine writes intents. It is safe for concurrent use.
type Engine struct {
	client     client.Client
	converters map[string]managedfields.TypeConverter // by API group; "" has those of Kubernetes itself
	written    written
}

// NewEngine returns an engine that writes through c as the given field manager. For kinds that are not Kubernetes' own
// it needs the converter that belongs to the apply configurations of their API group.
func NewEngine(c client.Client, owner string, more map[string]managedfields.TypeConverter) *Engine {
	converters := map[string]managedfields.TypeConverter{"": applyconfigurations.NewTypeConverter(c.Scheme())}
	maps.Copy(converters, more)
	return &Engine{client: client.WithFieldOwner(c, owner), converters: converters, written: newWritten()}
}

func (e *Engine) converter(group string) managedfields.TypeConverter {
	if converter, found := e.converters[group]; found {
		return converter
	}
	return e.converters[""]
}

// Add puts an object, as the cluster has it, into the collection.
func (l Live) Add(scheme *runtime.Scheme, object client.Object) error {
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return err
	}
	l[Key{kind, client.ObjectKeyFromObject(object)}] = object
	return nil
}

// Apply writes those intents that are not in place yet, side by side, and returns what it wrote.
// A failing one does not keep back the others: all errors are joined.
func (e *Engine) Apply(ctx context.Context, live Live, intents ...runtime.ApplyConfiguration) ([]Write, error) {
	writes, errs := make([]*Write, len(intents)), make([]error, len(intents))
	var group errgroup.Group
	for i, configuration := range intents {
		group.Go(func() error {
			writes[i], errs[i] = e.applyOne(ctx, live, configuration)
			return nil
		})
	}
	_ = group.Wait() // errors are in errs

	var written []Write
	for _, write := range writes {
		if write != nil {
			written = append(written, *write)
		}
	}
	return written, errors.Join(errs...)
}

// applyOne returns nil when there was nothing to write.
func (e *Engine) applyOne(ctx context.Context, live Live, configuration runtime.ApplyConfiguration) (*Write, error) {
	intent, err := newIntent(configuration)
	if err != nil {
		return nil, err
	}
	write := &Write{Key: intent.key, Cause: Missing}
	if object, found := live[intent.key]; found {
		write.Cause, err = e.compare(object, intent)
		if err != nil || write.Cause == "" {
			return nil, err
		}
		if write.Cause == Unseen {
			return write, nil
		}
		// Whoever replaced the object since it was seen gets a conflict, not our fields.
		intent.object.SetUID(object.GetUID())
	}
	if err := e.write(ctx, intent); err != nil {
		return nil, fmt.Errorf("cannot apply %s: %w", intent.key, err)
	}
	return write, nil
}

// write asks for the object's metadata only as the answer: the rest would be encoded, sent and decoded for nobody.
func (e *Engine) write(ctx context.Context, intent *intent) error {
	data, err := json.Marshal(intent.object)
	if err != nil {
		return err
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: intent.key.Namespace, Name: intent.key.Name}}
	answer.SetGroupVersionKind(intent.key.GroupVersionKind)
	if err := e.client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, data), client.ForceOwnership); err != nil {
		return err
	}
	e.written.remember(intent, answer)
	return nil
}

// Create makes the object of an intent. Unlike Apply it never touches one that exists: then it returns
// false, whoever that object belongs to.
func (e *Engine) Create(ctx context.Context, configuration runtime.ApplyConfiguration) (bool, error) {
	intent, err := newIntent(configuration)
	if err != nil {
		return false, err
	}
	err = e.client.Create(ctx, intent.object)
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot create %s: %w", intent.key, err)
	}
	return true, nil
}

// Prune deletes those live objects for which no intent exists and that the caller says may go.
// An object that is replaced meanwhile is left alone.
func (e *Engine) Prune(ctx context.Context, live Live, mayGo func(Key) bool, intents ...runtime.ApplyConfiguration) error {
	wanted := make(map[Key]bool, len(intents))
	var errs []error
	for _, configuration := range intents {
		key, err := keyOf(configuration)
		if err != nil {
			return err
		}
		wanted[key] = true
	}
	for key, object := range live {
		if wanted[key] || !mayGo(key) || object.GetDeletionTimestamp() != nil {
			continue
		}
		uid := object.GetUID()
		err := e.client.Delete(ctx, object, client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("cannot delete %s: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

// compare returns why the intent must be applied to the object, or nothing when it was the last one applied and applying
// it again would change nothing. The comparison is the API server's own merge, so defaults and foreign fields do not look
// like drift.
func (e *Engine) compare(object client.Object, intent *intent) (Cause, error) {
	if cause, known := e.written.judge(object, intent); known {
		return cause, nil
	}
	if object.GetAnnotations()[AnnotationIntent] != intent.hash {
		return Outdated, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", intent.key, err)
	}
	current := &unstructured.Unstructured{Object: content}
	current.SetGroupVersionKind(intent.key.GroupVersionKind)
	converter := e.converter(intent.key.Group)
	have, err := converter.ObjectToTyped(current, allowDuplicates)
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", intent.key, err)
	}
	want, err := converter.ObjectToTyped(intent.object)
	if err != nil {
		return "", fmt.Errorf("cannot read the intent for %s: %w", intent.key, err)
	}
	merged, err := have.Merge(want)
	if err != nil {
		return "", fmt.Errorf("cannot compare %s with the intent: %w", intent.key, err)
	}
	difference, err := have.Compare(merged)
	if err != nil {
		return "", fmt.Errorf("cannot compare %s with the intent: %w", intent.key, err)
	}
	if difference.IsSame() {
		return "", nil
	}
	return Edited, nil
}
