package apply

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// hashLength is how much of the intent's SHA-256, in hex, goes into the annotation.
const hashLength = 16

// allowDuplicates accepts what the API server has accepted before us.
const allowDuplicates = typed.AllowDuplicates

// intent is an apply configuration on its way to the server.
type intent struct {
	key    Key
	object *unstructured.Unstructured
	hash   string
}

// keyOf reads whose intent it is without encoding it. Every generated apply configuration tells.
func keyOf(configuration runtime.ApplyConfiguration) (Key, error) {
	identified, ok := configuration.(interface {
		GetAPIVersion() *string
		GetKind() *string
		GetNamespace() *string
		GetName() *string
	})
	if !ok {
		return Key{}, fmt.Errorf("%T does not say which object it is for", configuration)
	}
	kind := schema.FromAPIVersionAndKind(ptr.Deref(identified.GetAPIVersion(), ""), ptr.Deref(identified.GetKind(), ""))
	name := client.ObjectKey{Namespace: ptr.Deref(identified.GetNamespace(), ""), Name: ptr.Deref(identified.GetName(), "")}
	return Key{kind, name}, nil
}

// newIntent turns a typed apply configuration into what is sent, with the hash of its content.
func newIntent(configuration runtime.ApplyConfiguration) (*intent, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %T: %w", configuration, err)
	}
	key, err := keyOf(configuration)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: content}
	// A map is encoded with sorted keys, so the hash does not depend on the order of fields in a Go type.
	canonical, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %T: %w", configuration, err)
	}
	hash := hashOf(canonical, key.Namespace, object.GetOwnerReferences())
	if err := unstructured.SetNestedField(content, hash, "metadata", "annotations", AnnotationIntent); err != nil {
		return nil, fmt.Errorf("cannot mark %T: %w", configuration, err)
	}
	return &intent{
		key:    key,
		object: object,
		hash:   hash,
	}, nil
}

// hashOf returns the same for the intents of all that are alike, so that equal sets of annotations need be kept once only. It
// leaves out what cannot change without the object being another one, or changing hands: its namespace and its owners.
func hashOf(canonical []byte, namespace string, owners []metav1.OwnerReference) string {
	own := []string{namespace}
	for _, owner := range owners {
		own = append(own, owner.Name, string(owner.UID))
	}
	for place, text := range own {
		if text != "" {
			// A byte below the space is in no JSON: what stands for a text is told from every other.
			canonical = bytes.ReplaceAll(canonical, []byte(strconv.Quote(text)), []byte{byte(place)})
		}
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])[:hashLength]
}
