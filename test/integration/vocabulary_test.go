//go:build integration

package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/hack/docs"
	"github.com/example-org/subrelay-operator/test/harness"
)

const vocabularyFile = "../../api/v1alpha1/conditions.go"

// shownElsewhere are constants of the API that no status or Event of these tests has, with the test that waits for each in
// another suite and why it is there.
var shownElsewhere = map[string]string{
	"ReasonInvalidPoolResources": "TestPoolStoredBeforeTheRules", // changes the definition of SubPools
}

// checkVocabulary returns an error about every condition, reason and Event of the API that was never seen while all tests
// ran, and about every reason that was seen and is not in the API. A constant that no test brings about may be one that
// cannot come about.
func checkVocabulary(ctx context.Context, record *harness.Record) error {
	groups, err := docs.ReadVocabulary(vocabularyFile)
	if err != nil {
		return err
	}
	conditions, reasons, events, err := record.Said(ctx)
	errs := []error{err}
	var known []string
	for _, group := range groups {
		for _, term := range group.Terms {
			said := reasons
			switch {
			case strings.HasPrefix(term.Name, "Condition"):
				said = conditions
			case strings.HasPrefix(term.Name, "Event"):
				said = events
			default:
				known = append(known, term.Value)
			}
			if _, elsewhere := shownElsewhere[term.Name]; !said[term.Value] && !elsewhere {
				errs = append(errs, fmt.Errorf("%s was never seen in a SubPool's status or Events: "+
					"write a test that brings it about, or name one of another suite in shownElsewhere", term.Name))
			}
		}
	}
	for reason := range reasons {
		if !slices.Contains(known, reason) {
			errs = append(errs, fmt.Errorf("reason %q was seen in a status and is not in %s", reason, vocabularyFile))
		}
	}
	return errors.Join(errs...)
}

// allTestsRun tells whether no flag leaves tests out.
func allTestsRun() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return true
}

func TestShownElsewhere(t *testing.T) {
	t.Parallel()
	files, err := docs.GoFiles(docs.IsTest, "../clusterwide", "../e2e")
	require.NoError(t, err)
	for constant, test := range shownElsewhere {
		assert.True(t, docs.Names(files)[constant], "no test of another suite names %s", constant)
		assert.True(t, docs.Tests(files)[test], "there is no %s", test)
	}
}
