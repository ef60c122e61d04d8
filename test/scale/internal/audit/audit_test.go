package audit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	getSecret    = `{"verb":"get","userAgent":"manager/v1","objectRef":{"resource":"secrets","namespace":"subpool-one"}}`
	createSecret = `{"verb":"create","userAgent":"manager/v1","objectRef":{"resource":"secrets","namespace":"subpool-one"}}`
	patchStatus  = `{"verb":"patch","userAgent":"manager/v1","objectRef":{"resource":"subpools","subresource":"status","name":"one"}}`
	readConfig   = `{"verb":"list","userAgent":"manager/v1","objectRef":{"resource":"configmaps","namespace":"subpool-system"}}`
	discovery    = `{"verb":"get","userAgent":"manager/v1","requestURI":"/apis?timeout=5s"}`
	renewLease   = `{"verb":"update","userAgent":"manager/v1","objectRef":{"resource":"leases","namespace":"subpool-system"}}`
	watchBegins  = `{"stage":"ResponseStarted","verb":"watch","userAgent":"manager/v1","objectRef":{"resource":"secrets"}}`
	watchEnds    = `{"stage":"ResponseComplete","verb":"watch","userAgent":"manager/v1","objectRef":{"resource":"secrets"}}`
	someoneElse  = `{"verb":"create","userAgent":"kubectl/v1","objectRef":{"resource":"secrets","namespace":"subpool-one"}}`
)

func parsed(t *testing.T, lines ...string) Calls {
	calls, err := parse([]byte(strings.Join(lines, "\n")), []string{"manager/"})
	require.NoError(t, err)
	return calls
}

func TestParse(t *testing.T) {
	calls := parsed(t, someoneElse, getSecret, renewLease, createSecret, patchStatus, discovery, watchBegins, watchEnds)
	assert.Len(t, calls, 5)
	assert.Equal(t, 2, calls.Writes())
	assert.Equal(t, 2, calls.Reads())
	assert.Equal(t, map[string]int{
		"get secrets": 1, "create secrets": 1, "patch subpools/status": 1, "get /apis": 1, "watch secrets": 1,
	}, calls.ByKind())

	_, err := parse([]byte(`{"userAgent":"manager/v1"`), []string{"manager/"})
	require.Error(t, err, "half a line")
}

func TestReadsBeforeWrites(t *testing.T) {
	assert.Equal(t, 1, parsed(t, getSecret, createSecret).ReadsBeforeWrites())
	assert.Zero(t, parsed(t, createSecret, getSecret).ReadsBeforeWrites(), "a read after the last write")
	assert.Zero(t, parsed(t, readConfig, createSecret).ReadsBeforeWrites(), "a read outside of pools")
}
