// Command gateway-crds prints the definitions of all kinds that Envoy Gateway works with: those of the Gateway API and
// its own, as its Helm chart installs them.
package main

import (
	"fmt"
	"os"

	envoygateway "github.com/envoyproxy/gateway"
)

func main() {
	if _, err := os.Stdout.Write(envoygateway.GatewayCRDs); err != nil {
		fmt.Fprintln(os.Stderr, "gateway-crds:", err)
		os.Exit(1)
	}
}
