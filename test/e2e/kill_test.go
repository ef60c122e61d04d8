//go:build e2e

package e2e

import (
	"encoding/json"
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/test/harness"
)

// CFG-03: both applications are killed just when the manager has stored what cpa told it, again and again. They start with
// everything that was stored.
func TestCFG03KilledWhileWriting(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("killed"))
	useProvider(t, id)
	before := possessionsOf(t, id)
	for range 2 {
		stored := callUntilStored(t, id)
		pod := readPod(t, id)
		processes, err := harness.Processes(pod.UID)
		require.NoError(t, err)
		require.NoError(t, harness.Signal(processes, syscall.SIGKILL))

		awaitStartedAgain(t, id, pod, cpaName)
		awaitStartedAgain(t, id, pod, managerName)
		awaitReady(t, id)
		assert.Equal(t, before, possessionsOf(t, id))
		assert.GreaterOrEqual(t, eventsOf(t, managerOf(t, id), id), stored, "usage events")
	}
}

// callUntilStored calls cpa until the manager has more usage events than before, and returns how many.
func callUntilStored(t *testing.T, id string) int {
	t.Helper()
	cpa, manager := forward(t, "http", namespaceOf(id), cpaName, cpaPort), managerOf(t, id)
	before, stored := eventsOf(t, manager, id), 0
	eventually(t, readyBudget, func(c *assert.CollectT) {
		called := cpa.ask(c, http.MethodPost, "/v1/chat/completions", key(c, id, "cpa_client_key"), `{"model":"small-model"}`)
		assert.Equal(c, http.StatusOK, called.status)
		stored = eventsOf(c, manager, id)
		assert.Greater(c, stored, before)
	})
	return stored
}

func managerOf(t *testing.T, id string) *server {
	t.Helper()
	return forward(t, "http", namespaceOf(id), managerName, managerPort)
}

// eventsOf is how many usage events the manager has stored.
func eventsOf(t require.TestingT, manager *server, id string) int {
	answer := manager.get(t, "/status", key(t, id, "cpamp_admin_key"))
	require.Equal(t, http.StatusOK, answer.status, answer.body)
	var status struct{ Events int }
	require.NoError(t, json.Unmarshal([]byte(answer.body), &status))
	return status.Events
}
