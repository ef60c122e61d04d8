//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// What the init script and the applications leave on the volume belongs to the Pod's user alone.
func TestVolumeContent(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("volume"))
	const stat = "stat -c '%n %F %a %u:%g' "

	// The group bit comes from the volume (fsGroup).
	assert.Equal(t, strings.Join([]string{
		"/cpa/auths directory 2700 65532:65532",
		"/cpa/config.yaml regular file 600 65532:65532",
		"/cpa/logs directory 2700 65532:65532",
		"/cpa/plugins directory 2700 65532:65532",
	}, "\n"), inContainer(t, id, cpaName, stat+"/cpa/*"))
	assert.Equal(t, "yes", inContainer(t, id, cpaName, "[ /cpa/config.yaml -ef /CLIProxyAPI/config.yaml ] && echo yes"),
		"both mounts show one file")
	assert.Contains(t, inContainer(t, id, cpaName, "ls /CLIProxyAPI/logs"), "main.log", "cpa logs to the volume")

	assert.Equal(t, "/data directory 2700 65532:65532\n/data/data.key regular file 600 65532:65532",
		inContainer(t, id, managerName, stat+"/data /data/data.key"))
	assert.Contains(t, inContainer(t, id, managerName, stat+"/data/usage.sqlite"), "regular file")
	assert.Contains(t, inContainer(t, id, managerName, stat+"-L /run/secrets/cpamp_admin_key"), "regular file 440 0:65532")

	config := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(inContainer(t, id, cpaName, "cat /cpa/config.yaml")), &config))
	assert.Equal(t, "/CLIProxyAPI/auths", config["auth-dir"])
	assert.Equal(t, "http://mihomo-gateway.subpool-gateway.svc:7890", config["proxy-url"])
	assert.Equal(t, []any{key(t, id, "cpa_client_key")}, config["api-keys"])
}

// Keys are in the Secret and on the volume, and nowhere else.
func TestKeysStaySecret(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("keys"))
	namespace := namespaceOf(id)
	events := &eventsv1.EventList{}
	require.NoError(t, admin.List(t.Context(), events))
	operatorLog, err := lab.Kubectl(t.Context(), "logs", "--namespace="+systemNamespace,
		"--selector=app.kubernetes.io/name=subpool-operator", "--prefix", "--tail=-1")
	require.NoError(t, err)
	require.Contains(t, operatorLog, "starting the SubRelay operator", "control case: this is the operator's log")
	podLog, err := lab.Kubectl(t.Context(), "logs", podName, "--namespace="+namespace, "--all-containers")
	require.NoError(t, err)
	require.Contains(t, podLog, "initialize: wrote", "control case: this is the init script's log")

	places := map[string]string{
		"SubPool":            toJSON(t, readPool(t, id)),
		"Pod":                toJSON(t, readPod(t, id)),
		"StatefulSet":        toJSON(t, readWorkload(t, id)),
		"Events":             toJSON(t, events),
		"the operator's log": operatorLog,
		"the Pod's log":      podLog,
	}
	for _, container := range []string{cpaName, managerName} {
		places["environment of "+container] = inContainer(t, id, container, "cat /proc/1/environ")
		places["command line of "+container] = inContainer(t, id, container, "cat /proc/1/cmdline")
	}
	for name, value := range readCredentials(t, id).Data {
		require.NotEmpty(t, value, name)
		for place, content := range places {
			assert.NotContains(t, content, string(value), "%s has the key %s", place, name)
		}
	}
}

// userSettings is what a user adds to cpa's configuration: a setting that the operator knows nothing of, and a provider.
const userSettings = `
request-retry: 7
openai-compatibility:
  - name: outside
    base-url: http://` + providerAddress + `/cgi-bin
    api-key-entries:
      - api-key: the-key-of-the-user
    models:
      - name: small-model
`

// A Pod that is replaced finds everything as it was: what the init script, cpa, the manager and the user have written.
func TestRestartKeepsData(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("restart"))
	before := dataOf(t, id)

	restart(t, id)
	assert.Equal(t, before, dataOf(t, id), "after the first restart")

	useProvider(t, id)
	before = dataOf(t, id)
	assert.Contains(t, before.config, "request-retry: 7")

	restart(t, id)
	assert.Equal(t, before, dataOf(t, id), "with a user's settings")
	manager := forward(t, "http", namespaceOf(id), managerName, managerPort)
	status := manager.get(t, "/status", key(t, id, "cpamp_admin_key"))
	assert.Equal(t, http.StatusOK, status.status, "the first admin key is still the right one")
	assert.Contains(t, status.body, `"events":1`, "the usage event is still there")
}

// useProvider adds a provider to cpa's configuration in the manager's editor and makes one call, whose usage event the
// manager then has. The call goes through the shared Mihomo, whose name the Pod has to look up.
func useProvider(t *testing.T, id string) {
	t.Helper()
	cpa := forward(t, "http", namespaceOf(id), cpaName, cpaPort)
	manager := forward(t, "http", namespaceOf(id), managerName, managerPort)
	clientKey, adminKey := key(t, id, "cpa_client_key"), key(t, id, "cpamp_admin_key")

	const settings = "/v0/management/config.yaml"
	config := manager.get(t, settings, adminKey)
	require.Equal(t, http.StatusOK, config.status)
	saved := manager.ask(t, http.MethodPut, settings, adminKey, config.body+userSettings)
	require.Equal(t, http.StatusOK, saved.status, saved.body)

	eventually(t, readyBudget, func(c *assert.CollectT) {
		assert.Contains(c, cpa.get(c, "/v1/models", clientKey).body, "small-model", "cpa uses the new settings")
	})
	called := cpa.ask(t, http.MethodPost, "/v1/chat/completions", clientKey, `{"model":"small-model"}`)
	require.Equal(t, http.StatusOK, called.status, called.body)
	assert.Contains(t, called.body, `"total_tokens":7`)
	eventually(t, readyBudget, func(c *assert.CollectT) {
		assert.Contains(c, manager.get(c, "/status", adminKey).body, `"events":1`, "the manager has fetched the usage event")
	})
}

// poolData is what must not change when a Pod is replaced.
type poolData struct {
	config, dataKey string
}

func dataOf(t *testing.T, id string) poolData {
	t.Helper()
	return poolData{
		config:  inContainer(t, id, cpaName, "cat /cpa/config.yaml"),
		dataKey: inContainer(t, id, managerName, "cat /data/data.key"),
	}
}

// A suspended pool keeps everything but its Pod, whoever tries to start one, and resumes on the same volume.
func TestSuspend(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("suspend"))
	kept := func() map[string]string {
		uids := map[string]string{}
		for kind, object := range map[string]client.Object{
			"Namespace": read[corev1.Namespace](t, "", namespaceOf(id)),
			"Secret":    readCredentials(t, id),
			"claim":     read[corev1.PersistentVolumeClaim](t, namespaceOf(id), claimName),
		} {
			uids[kind] = string(object.GetUID())
		}
		return uids
	}
	before := kept()
	inContainer(t, id, cpaName, "echo kept >/cpa/marker")

	suspend(t, id, true)
	awaitNoPod(t, id)
	awaitCondition(t, id, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	assert.Equal(t, before, kept())

	_, err := lab.Kubectl(t.Context(), "scale", "statefulset/runtime", "--replicas=1", "--namespace="+namespaceOf(id))
	require.NoError(t, err)
	eventually(t, healBudget, func(c *assert.CollectT) {
		assert.Zero(c, *readWorkload(c, id).Spec.Replicas, "a suspended pool that somebody has scaled up")
	})
	awaitNoPod(t, id)

	suspend(t, id, false)
	awaitReady(t, id)
	assert.Equal(t, "kept", inContainer(t, id, cpaName, "cat /cpa/marker"))
	assert.Equal(t, before, kept())
}
