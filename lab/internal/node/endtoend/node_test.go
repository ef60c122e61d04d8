//go:build lab

package endtoend

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNodeRunsPodsAndLeavesNothing(t *testing.T) {
	l := newLab(t)
	l.must("up") // the first time this installs packages, among them some that hostState calls
	l.must("down")
	l.requireGone()

	before := hostState(t)
	began := time.Now()
	require.Contains(t, l.must("up"), "is ready")
	t.Logf("from nothing to a ready node: %s", time.Since(began).Round(100*time.Millisecond))
	require.Equal(t, before, hostState(t), "the host is as it was")

	began = time.Now()
	require.Contains(t, l.must("up"), "was ready already")
	require.Less(t, time.Since(began), 2*time.Second, "a second `lab up`")
	require.Contains(t, l.must("status"), "lab-node: Ready")

	began = time.Now()
	l.kubectl("apply", "--filename", "testdata/web.yaml")
	l.kubectl("wait", "--namespace=web", "--for=condition=Ready", "pods", "--all", "--timeout="+patience.String())
	t.Logf("from apply to ready Pods with a volume: %s", time.Since(began).Round(100*time.Millisecond))

	for _, part := range []struct {
		name string
		test func(*lab)
	}{
		{"volume belongs to the Pod's group", (*lab).testVolume},
		{"logs and exec", (*lab).testLogsAndExec},
		{"DNS and Service", (*lab).testService},
		{"network policy", (*lab).testNetworkPolicy},
		{"port-forward", (*lab).testPortForward},
		{"load", (*lab).testLoad},
		{"audit log", (*lab).testAuditLog},
		{"components that die come back", (*lab).testCrashes},
		{"deleted claims leave no volume", (*lab).testVolumeDeletion},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(l.in(t)) })
	}
	require.Equal(t, before, hostState(t), "the host is as it was")

	l.must("down")
	l.requireGone()
	require.Equal(t, before, hostState(t), "the host is as it was")
	require.NoError(t, l.command("down").Run(), "a second `lab down`")
	_, err := l.try("status")
	require.ErrorContains(t, err, "lab up --name "+l.name)
}

// exec runs a command in one of the test's Pods.
func (l *lab) exec(pod string, command ...string) (string, error) {
	return l.try("kubectl", append([]string{"--", "exec", "--namespace=web", pod, "--"}, command...)...)
}

func (l *lab) testVolume() {
	t := l.t
	owner, err := l.exec("server", "stat", "-c", "%u:%g", "/data", "/data/index.html")
	require.NoError(t, err)
	require.Equal(t, "0:65532\n65532:65532\n", owner)
	claim := l.kubectl("get", "persistentvolumeclaim", "--namespace=web", "data",
		"--output=jsonpath={.spec.storageClassName} {.status.phase} {.status.capacity.storage}")
	require.Equal(t, "lab-local Bound 20Gi", claim)
}

func (l *lab) testLogsAndExec() {
	t := l.t
	require.Equal(t, "serving\n", l.kubectl("logs", "--namespace=web", "server"))
	user, err := l.exec("server", "id", "-u")
	require.NoError(t, err)
	require.Equal(t, "65532\n", user)
	// 3200m of the limit, whatever number of processors the machine has.
	quota, err := l.exec("server", "sh", "-c", "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu.max 2>/dev/null; true")
	require.NoError(t, err)
	require.Regexp(t, `^320000\b`, quota)
}

func (l *lab) testService() {
	t := l.t
	answer, err := l.exec("client", "nslookup", "server.web.svc.cluster.local")
	require.NoError(t, err)
	address := l.kubectl("get", "service", "--namespace=web", "server", "--output=jsonpath={.spec.clusterIP}")
	require.Contains(t, answer, "Address: "+address)
	page, err := l.fetch(address)
	require.NoError(t, err)
	require.Equal(t, "from the volume\n", page)
}

// fetch gets a page from inside the client Pod. The address has to be in numbers, and the time limit
// a program of its own: Debian's static wget crashes on names and when it has a limit itself.
func (l *lab) fetch(address string) (string, error) {
	return l.exec("client", "timeout", "2", "wget", "-q", "-O", "-", "http://"+address+"/")
}

// The control cases, before and after, show that it is the policy that cuts the connection.
func (l *lab) testNetworkPolicy() {
	t := l.t
	pod := l.kubectl("get", "pod", "--namespace=web", "server", "--output=jsonpath={.status.podIP}") + ":8080"
	service := l.kubectl("get", "service", "--namespace=web", "server", "--output=jsonpath={.spec.clusterIP}")
	for _, target := range []string{pod, service} {
		_, err := l.fetch(target)
		require.NoError(t, err)
	}
	l.kubectl("apply", "--filename", "testdata/deny.yaml")
	for _, target := range []string{pod, service} {
		l.eventually(func() error {
			if _, err := l.fetch(target); err == nil {
				return fmt.Errorf("%s can still be reached", target)
			}
			return nil
		})
	}
	l.kubectl("delete", "--filename", "testdata/deny.yaml")
	for _, target := range []string{pod, service} {
		l.eventually(func() error {
			_, err := l.fetch(target)
			return err
		})
	}
}

func (l *lab) testPortForward() {
	t := l.t
	forward := l.command("kubectl", "--", "port-forward", "--namespace=web", "pod/server", ":8080")
	stdout, err := forward.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, forward.Start())
	defer func() {
		_ = forward.Process.Kill()
		_ = forward.Wait()
	}()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	port := regexp.MustCompile(`127\.0\.0\.1:(\d+)`).FindStringSubmatch(line)
	require.NotNil(t, port, line)
	response, err := http.Get("http://127.0.0.1:" + port[1])
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, "from the volume\n", string(page))
}

func (l *lab) testLoad() {
	t := l.t
	const name = "registry.example.invalid/test/loaded:v1"
	archive := filepath.Join(t.TempDir(), "image.tar")
	output, err := exec.Command(binary, "image", "--tag", name, "--output", archive, "--busybox", "--cmd", "/bin/true").CombinedOutput()
	require.NoError(t, err, string(output))
	require.Contains(t, l.must("load", archive), name)
	l.kubectl("run", "loaded", "--image="+name, "--image-pull-policy=Never", "--restart=Never")
	l.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/loaded", "--timeout="+patience.String())

	_, err = l.try("load", "testdata/web.yaml")
	require.ErrorContains(t, err, "load testdata/web.yaml")
}

func (l *lab) testAuditLog() {
	t := l.t
	log, err := os.ReadFile(l.path("audit.log"))
	require.NoError(t, err)
	for line := range strings.Lines(string(log)) {
		var event struct {
			Verb, Stage   string
			User          struct{ Username string }
			ObjectRef     struct{ Namespace, Resource, Name string }
			RequestObject json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(line), &event), line)
		require.NotEqual(t, "RequestReceived", event.Stage)
		require.Empty(t, event.RequestObject)
		if event.Verb == "create" && event.ObjectRef.Namespace == "web" && event.ObjectRef.Resource == "services" {
			require.Equal(t, "lab-admin", event.User.Username)
			return
		}
	}
	require.Fail(t, "the creation of a Service is not in the audit log")
}

func (l *lab) testCrashes() {
	t := l.t
	killed := map[string]int{}
	for _, program := range []string{"kube-scheduler", "containerd", "kubelet", "kube-apiserver", "etcd"} {
		killed[program] = l.process(program)
		require.NotZero(t, killed[program], program)
		kill(t, killed[program], syscall.SIGKILL)
	}
	l.eventually(func() error {
		for program, old := range killed {
			if now := l.process(program); now == 0 || now == old {
				return fmt.Errorf("%s has not come back", program)
			}
		}
		_, err := l.try("status")
		return err
	})
	// The Pods have survived, and the node can still start one.
	l.eventually(func() error {
		_, err := l.exec("server", "cat", "/data/index.html")
		return err
	})
	restarts := l.kubectl("get", "pod", "--namespace=web", "server", "--output=jsonpath={.status.containerStatuses[0].restartCount}")
	require.Equal(t, "0", restarts)
	l.eventually(func() error {
		return l.tryKubectl("run", "late", "--image=registry.example.invalid/lab/busybox:lab", "--image-pull-policy=Never",
			"--restart=Never", "--command", "--", "/bin/true")
	})
	l.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/late", "--timeout="+patience.String())
}

func (l *lab) testVolumeDeletion() {
	t := l.t
	volumes := l.path("var", "lib", "lab-volumes")
	entries, err := os.ReadDir(volumes)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	l.kubectl("delete", "namespace", "web", "--timeout="+patience.String())
	l.eventually(func() error {
		entries, err := os.ReadDir(volumes)
		if err == nil && len(entries) > 0 {
			return fmt.Errorf("%s is left", entries[0].Name())
		}
		return err
	})
}
