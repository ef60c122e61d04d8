// Command crd compares two versions of a CustomResourceDefinition and fails if objects that the older one accepts, or
// clients that use it, may have trouble with the newer one.
package main

import (
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: crd PREVIOUS.yaml PRESENT.yaml")
		os.Exit(2)
	}
	problems, err := compareFiles(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, problem)
	}
	if len(problems) > 0 {
		fmt.Fprintf(os.Stderr, "%d changes break users of %s: undo them, or make them in a new version of the API\n",
			len(problems), os.Args[1])
		os.Exit(1)
	}
}

func compareFiles(previous, present string) ([]string, error) {
	before, err := read(previous)
	if err != nil {
		return nil, err
	}
	after, err := read(present)
	if err != nil {
		return nil, err
	}
	return compare(before, after), nil
}

func read(path string) (*apiextensionsv1.CustomResourceDefinition, error) {
	document, err := os.ReadFile(path) //nolint:gosec // the person who runs the command names the file
	if err != nil {
		return nil, err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(document, definition); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return definition, nil
}
