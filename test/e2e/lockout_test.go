//go:build e2e

package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// CFG-10: who tries wrong management keys through port-forward is locked out of cpa's management, and with him, since both
// come from the same address, the manager. Clients and probes are not, so the pool stays ready, and a new Pod ends it.
func TestCFG10LockOut(t *testing.T) {
	t.Parallel()
	const management = "/v0/management/config.yaml"
	id := createReady(t, newPool("lockout"))
	cpa, manager := forward(t, "http", namespaceOf(id), cpaName, cpaPort), managerOf(t, id)
	rightKey, adminKey := key(t, id, "cpa_management_key"), key(t, id, "cpamp_admin_key")
	assert.Equal(t, http.StatusOK, cpa.get(t, management, rightKey).status, "control case")

	// The manager's own calls end a series of failures.
	eventually(t, truthBudget, func(c *assert.CollectT) {
		for range 5 {
			cpa.get(c, management, "wrong")
		}
		assert.Equal(c, http.StatusForbidden, cpa.get(c, management, rightKey).status, "the right key")
	})
	eventually(t, truthBudget, func(c *assert.CollectT) {
		assert.Contains(c, manager.get(c, "/status", adminKey).body, "banned")
	})
	for range 10 {
		assert.Equal(t, http.StatusUnauthorized, manager.get(t, "/status", "wrong").status)
	}
	assert.Equal(t, http.StatusOK, manager.get(t, "/status", adminKey).status, "the manager locks nobody out")
	assert.Equal(t, http.StatusOK, cpa.get(t, "/v1/models", key(t, id, "cpa_client_key")).status, "a client")
	ready := readyCondition(t, id)
	assert.Equal(t, v1alpha1.ReasonPoolReady, ready.Reason, ready.Message)

	restart(t, id)
	manager = managerOf(t, id)
	eventually(t, readyBudget, func(c *assert.CollectT) {
		assert.Contains(c, manager.get(c, "/status", adminKey).body, `"collector":"running"`)
	})
}
