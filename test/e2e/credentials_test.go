//go:build e2e

package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// CFG-01: when the Secret is lost, the pool gets new keys and one new Pod, in which both applications work with them:
// nobody is locked out, and what users have set stays.
func TestCFG01LostSecret(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("lost-keys"))
	const setting = "request-retry: 7"
	inContainer(t, id, cpaName, "echo '"+setting+"' >>/cpa/config.yaml")
	before, secret, oldKey := readPod(t, id), readCredentials(t, id), key(t, id, "cpa_client_key")

	require.NoError(t, admin.Delete(t.Context(), secret))
	awaitOtherPod(t, id, before.UID)
	awaitReady(t, id)
	after := readPod(t, id)
	assert.NotEqual(t, secret.UID, readCredentials(t, id).UID)

	cpa := forward(t, "http", namespaceOf(id), cpaName, cpaPort)
	assert.Equal(t, http.StatusOK, cpa.get(t, "/v1/models", key(t, id, "cpa_client_key")).status, "with the new key")
	assert.Equal(t, http.StatusUnauthorized, cpa.get(t, "/v1/models", oldKey).status, "with the old key")
	manager := forward(t, "http", namespaceOf(id), managerName, managerPort)
	eventually(t, readyBudget, func(c *assert.CollectT) {
		status := manager.get(c, "/status", key(t, id, "cpamp_admin_key"))
		assert.Equal(c, http.StatusOK, status.status, "the manager has the new admin key")
		assert.Contains(c, status.body, `"collector":"running"`, "and cpa the new management key")
	})
	assert.Contains(t, inContainer(t, id, cpaName, "cat /cpa/config.yaml"), setting)
	assert.Equal(t, after.UID, readPod(t, id).UID, "one restart, not more")
}
