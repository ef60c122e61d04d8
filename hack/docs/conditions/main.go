// Command conditions prints the page about conditions, reasons and Events. It is run in the repository's root.
package main

import (
	"fmt"
	"os"

	"github.com/example-org/subrelay-operator/hack/docs"
)

func main() {
	groups, err := docs.ReadVocabulary("api/v1alpha1/conditions.go")
	if err != nil {
		fmt.Fprintln(os.Stderr, "conditions:", err)
		os.Exit(1)
	}
	fmt.Print(docs.Page(groups))
}
