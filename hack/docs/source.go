// Package docs makes the page about conditions from the API's constants, and finds in the source what the pages
// speak of.
package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
)

// GoFiles parses the Go files below the folders for which keep, given the path, is true. Build tags do not matter.
func GoFiles(keep func(path string) bool, folders ...string) ([]*ast.File, error) {
	var files []*ast.File
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || !keep(path) {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return fmt.Errorf("parse the source: %w", err)
			}
			files = append(files, file)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// IsTest tells whether the file belongs to a package's tests.
func IsTest(path string) bool { return strings.HasSuffix(path, "_test.go") }

// Names returns every identifier in the files.
func Names(files []*ast.File) map[string]bool {
	names := map[string]bool{}
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			if identifier, ok := node.(*ast.Ident); ok {
				names[identifier.Name] = true
			}
			return true
		})
	}
	return names
}

// Tests returns the names of the functions in the files that `go test` runs, fuzz targets among them.
func Tests(files []*ast.File) map[string]bool {
	tests := map[string]bool{}
	for _, file := range files {
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Recv != nil || function.Name.Name == "TestMain" {
				continue
			}
			if name := function.Name.Name; strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") {
				tests[name] = true
			}
		}
	}
	return tests
}
