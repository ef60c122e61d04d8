package subpool

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// Both scripts run before every start of the runtime, each in the image of the application that it prepares for.
var (
	// initializeScript prepares the pool's volume and brings CPA's configuration in line with Secret and proxy.
	//
	//go:embed initialize.sh
	initializeScript string

	// initializeManagerScript brings the manager's database in line with the Secret.
	//
	//go:embed initialize-manager.sh
	initializeManagerScript string
)

const (
	initializeKey        = "initialize.sh"
	initializeManagerKey = "initialize-manager.sh"
	initializeNamePrefix = "initialize-"
	initializeHashLength = 10
)

// initializeName carries the hash of the scripts, so that other scripts are another ConfigMap and a visible change of the
// Pod template; a node never serves an old script from its cache under the name of the new one.
func initializeName() string {
	sum := sha256.Sum256([]byte(initializeScript + initializeManagerScript))
	return initializeNamePrefix + hex.EncodeToString(sum[:])[:initializeHashLength]
}

func initializeConfigMap(in Input) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(initializeName(), NamespaceName(in.Pool.Name)).
		WithLabels(Labels(in.Pool)).
		WithOwnerReferences(owner(in.Pool)).
		WithImmutable(true).
		WithData(map[string]string{initializeKey: initializeScript, initializeManagerKey: initializeManagerScript})
}
