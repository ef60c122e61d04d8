package docs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/hack/docs"
)

const issuePage = root + "/docs/field-issues.md"

// required are the ids on which the page has to say something. Others may follow as their tests do.
var required = strings.Fields(`
	DEL-01 DEL-02 DEL-03 DEL-05 DEL-06 DEL-07 DEL-09
	ROL-01 ROL-02 ROL-03 ROL-05 ROL-06 ROL-07
	CFG-01 CFG-02 CFG-03 CFG-04 CFG-05 CFG-06 CFG-08 CFG-09 CFG-10 CFG-11 CFG-12
	STO-02 STO-03 STO-04 STO-05 STO-06
	RES-01 RES-02 RES-03 RES-04 RES-06
	NET-01 NET-02 NET-03 NET-04 NET-05 NET-06 NET-07 NET-09
	GW-01 GW-02 GW-03 GW-04 GW-05 GW-06 GW-07 GW-09
	STA-01 STA-03 STA-04
	API-02`)

// issue is one row of the page.
type issue struct{ promise, shownBy string }

var (
	issueRow  = regexp.MustCompile(`(?m)^\| ([A-Z]+-[0-9]+) \| (.*) \| (.*) \|$`)
	testName  = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`")
	remark    = regexp.MustCompile(`\b(Open|Decision)\b`)
	idInAName = regexp.MustCompile(`^(?:Test|Fuzz)([A-Z]{2,4})([0-9]{2})`)
)

// readIssues returns the rows of the page by id.
func readIssues(t *testing.T) map[string]issue {
	t.Helper()
	page, err := os.ReadFile(issuePage)
	require.NoError(t, err)
	issues := map[string]issue{}
	for _, row := range issueRow.FindAllStringSubmatch(string(page), -1) {
		require.NotContains(t, issues, row[1], "%s has two rows", row[1])
		issues[row[1]] = issue{promise: row[2], shownBy: row[3]}
	}
	return issues
}

// readTests returns the names of all tests of the repository.
func readTests(t *testing.T) []string {
	t.Helper()
	var folders []string
	for _, folder := range []string{"api", "cmd", "controllers", "hack", "internal", "lab", "test"} {
		folders = append(folders, filepath.Join(root, folder))
	}
	files, err := docs.GoFiles(docs.IsTest, folders...)
	require.NoError(t, err)
	return slices.Sorted(maps.Keys(docs.Tests(files)))
}

func TestEveryFieldIssueIsAnswered(t *testing.T) {
	issues := readIssues(t)
	for _, id := range required {
		assert.Contains(t, issues, id, "%s has no row", id)
	}
	for id, issue := range issues {
		assert.NotEmpty(t, strings.TrimSpace(issue.promise), "%s: say what is promised", id)
		assert.True(t, testName.MatchString(issue.shownBy) || remark.MatchString(issue.shownBy),
			"%s: name a test, or say that it is open or decided", id)
	}
}

func TestFieldIssuesNameTestsThatExist(t *testing.T) {
	tests := readTests(t)
	for id, issue := range readIssues(t) {
		for _, name := range testName.FindAllStringSubmatch(issue.shownBy, -1) {
			assert.True(t, slices.Contains(tests, name[1]), "%s: there is no %s", id, name[1])
		}
	}
}

func TestTestsWithAnIDAreInTheirIssue(t *testing.T) {
	issues, named := readIssues(t), 0
	for _, name := range readTests(t) {
		parts := idInAName.FindStringSubmatch(name)
		if parts == nil {
			continue
		}
		named++
		id := parts[1] + "-" + parts[2]
		assert.Contains(t, issues[id].shownBy, "`"+name+"`", "%s belongs into the row %s of docs/field-issues.md", name, id)
	}
	require.Positive(t, named)
}
