package subpool

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// initializeScript prepares the pool's volume; it runs before every start of the runtime.
//
//go:embed initialize.sh
var initializeScript string

const (
	initializeKey        = "initialize.sh"
	initializeNamePrefix = "initialize-"
	initializeHashLength = 10
)

// initializeConfigMap holds the script. Its name carries the content's hash, so that another script is
// another ConfigMap and a visible change of the Pod template; a node never serves an old script from its
// cache under the name of the new one.
func initializeConfigMap(in Input) *corev1ac.ConfigMapApplyConfiguration {
	sum := sha256.Sum256([]byte(initializeScript))
	name := initializeNamePrefix + hex.EncodeToString(sum[:])[:initializeHashLength]
	return corev1ac.ConfigMap(name, NamespaceName(in.Pool.Name)).
		WithLabels(Labels(in.Pool)).
		WithOwnerReferences(owner(in.Pool)).
		WithImmutable(true).
		WithData(map[string]string{initializeKey: initializeScript})
}
