// Command licences lists the licences of everything that is linked into programs. Run it from the folder of the programs'
// module:
//
//	licences PACKAGE...          a Markdown table: module, version, licences
//	licences --texts PACKAGE...  their texts and notices, as they have to go with the programs
//
// It fails when a module has no licence that it knows, or one that was not decided on.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// accepted are the licences, by their SPDX identifiers, under which others' code may be part of the programs: they ask for
// their own text to be passed on, and for nothing from the project's own code.
var accepted = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// enough is which part of a licence file has to be known text, in percent. Names of copyright holders are not.
const enough = 75

func main() {
	texts := flag.Bool("texts", false, "Print the texts themselves instead of a table.")
	flag.Parse()
	if err := run(*texts, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(texts bool, packages []string) error {
	if len(packages) == 0 {
		return errors.New("name the packages of the programs, such as ./cmd/manager")
	}
	modules, err := linkedModules(packages)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(modules))
	var problems []error
	for _, name := range names {
		problems = append(problems, modules[name].judge())
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if texts {
		for _, name := range names {
			fmt.Print(modules[name].texts())
		}
		return nil
	}
	fmt.Print("| module | version | licences |\n|---|---|---|\n")
	for _, name := range names {
		m := modules[name]
		fmt.Printf("| %s | %s | %s |\n", m.name, m.version, strings.Join(m.licences, ", "))
	}
	return nil
}

// judge finds out which licences the module has, and whether all are accepted.
func (m *module) judge() error {
	found := map[string]bool{}
	for _, path := range m.files() {
		if isNotice(path) {
			continue
		}
		cover := licensecheck.Scan([]byte(m.documents[path]))
		if cover.Percent < enough {
			return fmt.Errorf("%s of module %s: only %.0f %% of it is the text of a known licence: read it and decide what to do",
				path, m.name, cover.Percent)
		}
		for _, match := range cover.Match {
			if !match.IsURL {
				found[match.ID] = true
			}
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("module %s has no licence file: it must not be linked", m.name)
	}
	m.licences = slices.Sorted(maps.Keys(found))
	for _, licence := range m.licences {
		if !slices.Contains(accepted, licence) {
			return fmt.Errorf("module %s has licence %s: decide whether the program may contain it, and add it to what is accepted, "+
				"or do without the module", m.name, licence)
		}
	}
	return nil
}
