//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example-org/subrelay-operator/api/v1alpha1"
)

// STO-05: when cpa fills the pool's volume nothing on it is lost, whatever is started then. The status says what does not
// work, and freeing space is all that it takes to mend it.
func TestSTO05FullVolume(t *testing.T) {
	t.Parallel()
	pool := newPool("full")
	volume := smallVolume(t, pool.Name)
	id := createReady(t, pool)
	useProvider(t, id)
	before := possessionsOf(t, id)

	inContainer(t, id, cpaName, "cat /dev/zero >/cpa/logs/filling 2>/dev/null || true")
	assert.Equal(t, before, possessionsOf(t, id), "with a full volume")
	cpa := forward(t, "http", namespaceOf(id), cpaName, cpaPort)
	assert.Equal(t, http.StatusOK, cpa.get(t, "/v1/models", key(t, id, "cpa_client_key")).status, "cpa runs on")
	awaitReady(t, id)

	require.NoError(t, admin.Delete(t.Context(), readPod(t, id)))
	awaitTrouble(t, id, v1alpha1.ReasonInitializationFailed, "initialize-manager", "exit code 1", "kubectl .*logs")

	// New keys have to be written to the volume before anything may start.
	require.NoError(t, admin.Delete(t.Context(), readCredentials(t, id)))
	awaitTrouble(t, id, v1alpha1.ReasonInitializationFailed, "initialize-config", "exit code 1", "kubectl .*logs")
	eventually(t, truthBudget, func(c *assert.CollectT) {
		said, err := lab.Kubectl(t.Context(), "logs", podName, "--namespace="+namespaceOf(id), "--container=initialize-config")
		require.NoError(c, err)
		assert.Contains(c, said, "free space on the pool's volume", "an attempt that has just begun has not said anything yet")
	})
	assert.Equal(t, before.config, volume.run(t, "cat cpa/config.yaml"), "with a full volume and new keys")

	volume.run(t, "rm cpa/logs/filling")
	awaitReady(t, id)
	after := possessionsOf(t, id)
	assert.Equal(t, before.dataKey, after.dataKey)
	assert.Equal(t, before.claim, after.claim)
	assert.Contains(t, after.config, "request-retry: 7", "a user's setting")
	manager := forward(t, "http", namespaceOf(id), managerName, managerPort)
	eventually(t, readyBudget, func(c *assert.CollectT) {
		status := manager.get(c, "/status", key(t, id, "cpamp_admin_key"))
		assert.Contains(c, status.body, `"events":1`, "the usage event is still there")
		assert.Contains(c, status.body, `"collector":"running"`)
	})
}

// STO-03: a Pod starts as fast on a volume with very many files, since nobody walks over them.
func TestSTO03ManyFiles(t *testing.T) {
	t.Parallel()
	id := createReady(t, newPool("many-files"))
	inContainer(t, id, cpaName, `mkdir /cpa/many; umask 077; i=0; while [ $i -lt 50000 ]; do : >/cpa/many/$i; i=$((i+1)); done`)
	restart(t, id)

	pod := readPod(t, id)
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			took := condition.LastTransitionTime.Sub(pod.CreationTimestamp.Time)
			assert.Less(t, took, truthBudget)
			progress("a Pod on a volume with 50,000 files is ready after %.0f s", took.Seconds())
		}
	}
	// A walk would have let the volume's group write to every file.
	assert.Equal(t, "50000", inContainer(t, id, cpaName, "find /cpa/many -type f -perm 600 | wc -l"))
}

// volume is a place on the node that is small enough to be filled, and can be reached without the pool's Pod.
type volume struct{ keeper, folder string }

// smallVolume makes a volume of the node's memory for a pool that does not exist yet. The lab's own provisioner does
// not enforce sizes.
func smallVolume(t *testing.T, poolID string) volume {
	t.Helper()
	const root, image = "/var/lib/small-volumes", cpaImage
	folder := root + "/" + poolID
	keeper := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "keeper-of-" + poolID},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{
				Name: "keeper", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
				Command: []string{"sh", "-c", strings.Join([]string{
					"mkdir -p " + folder, "mount -t tmpfs -o size=16m small " + folder, "exec sleep infinity",
				}, " && ")},
				ReadinessProbe: &corev1.Probe{
					ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"grep", "-q", " " + folder + " tmpfs ", "/proc/mounts"}}},
					PeriodSeconds: 1,
				},
				SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
				VolumeMounts: []corev1.VolumeMount{{
					Name: "root", MountPath: root, MountPropagation: ptr.To(corev1.MountPropagationBidirectional),
				}},
			}},
			Volumes: []corev1.Volume{{Name: "root", VolumeSource: corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: root, Type: ptr.To(corev1.HostPathDirectoryOrCreate)},
			}}},
		},
	}
	create(t, keeper)
	eventually(t, readyBudget, func(c *assert.CollectT) {
		assert.True(c, podReady(read[corev1.Pod](c, keeper.Namespace, keeper.Name)))
	})
	create(t, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "small-" + poolID},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              "lab-local",
			ClaimRef:                      &corev1.ObjectReference{Namespace: namespaceOf(poolID), Name: claimName},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: folder}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpExists,
				}},
			}}}},
		},
	})
	return volume{keeper.Name, folder}
}

// run runs a shell script in the root folder of the volume.
func (v volume) run(t *testing.T, script string) string {
	t.Helper()
	out, err := lab.Kubectl(t.Context(), "exec", v.keeper, "--namespace="+metav1.NamespaceDefault, "--",
		"sh", "-c", "cd "+v.folder+" && "+script)
	require.NoError(t, err)
	return out
}
