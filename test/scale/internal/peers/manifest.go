package peers

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// mark stands for the pool's id in the objects that templates are made from. Nothing else in them contains it.
const mark = "id-of-this-pool"

// manifest returns the objects as a user would write them down: one YAML document each.
func manifest(objects []*unstructured.Unstructured) ([]byte, error) {
	documents := make([][]byte, 0, len(objects))
	for _, object := range objects {
		document, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("encode %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		documents = append(documents, document)
	}
	return bytes.Join(documents, []byte("---\n")), nil
}
