package docs

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// Group is a block of constants that belong together.
type Group struct {
	// About is the block's comment, empty if it has none.
	About string
	Terms []Term
}

// Term is a constant of the API that users see in status and Events.
type Term struct {
	// Name is the constant's, Value what users see.
	Name, Value string
	// Meaning is the constant's comment in one line.
	Meaning string
}

// ReadVocabulary returns the constants of a Go file, in its order.
func ReadVocabulary(path string) ([]Group, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("read the constants: %w", err)
	}
	var groups []Group
	for _, declaration := range file.Decls {
		block, ok := declaration.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		group := Group{About: oneLine(block.Doc)}
		for _, spec := range block.Specs {
			term, err := readTerm(spec.(*ast.ValueSpec))
			if err != nil {
				return nil, fmt.Errorf("read the constants of %s: %w", path, err)
			}
			if !block.Lparen.IsValid() { // then the comment is the only constant's
				term.Meaning, group.About = group.About, ""
			}
			group.Terms = append(group.Terms, term)
		}
		groups = append(groups, group)
	}
	return groups, nil
}

func readTerm(spec *ast.ValueSpec) (Term, error) {
	name := spec.Names[0].Name
	if len(spec.Names) != 1 || len(spec.Values) != 1 {
		return Term{}, fmt.Errorf("%s: write one constant and its value to a line", name)
	}
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok {
		return Term{}, fmt.Errorf("%s: write its value as a string", name)
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return Term{}, errors.Join(fmt.Errorf("%s: write its value as a string", name), err)
	}
	return Term{Name: name, Value: value, Meaning: oneLine(spec.Doc)}, nil
}

func oneLine(comment *ast.CommentGroup) string {
	return strings.Join(strings.Fields(comment.Text()), " ")
}
