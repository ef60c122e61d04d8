package subpool_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const (
	podUser  = 65532 // the uid and gid of the runtime Pod
	proxyURL = "http://mihomo-gateway.subpool-gateway.svc:7890"

	clientKey     = "client-key-0123456789"
	managementKey = "management-key-0123456789"
	adminKey      = "admin-key-0123456789"

	// runTimeout bounds one run of the script, which takes a fraction of a second on an idle machine.
	runTimeout = time.Minute
)

// A shell is one that the script must run in.
type shell struct {
	name    string
	debian  string // the package that has it
	command []string
	path    string // PATH; busybox has every command built in, as in an Alpine image
}

var (
	dash    = shell{name: "dash", debian: "dash", command: []string{"dash"}, path: "/usr/bin:/bin"}
	busybox = shell{name: "busybox", debian: "busybox-static", command: []string{"busybox", "sh"}, path: "/nonexistent"}
	bash    = shell{name: "bash", debian: "bash", command: []string{"bash", "--posix"}, path: "/usr/bin:/bin"}

	// imageShells are /bin/sh in Debian and Alpine, which the applications' images are made from.
	imageShells = []shell{dash, busybox}
	allShells   = []shell{dash, busybox, bash}
)

// share is the part of a long test that falls to one of the imageShells, for the sake of time.
func share(sh shell) int {
	return slices.IndexFunc(imageShells, func(other shell) bool { return other.name == sh.name })
}

// inShells runs a test in every one of the shells, in parallel.
func inShells(t *testing.T, shells []shell, test func(t *testing.T, sh shell)) {
	t.Helper()
	t.Parallel()
	for _, sh := range shells {
		t.Run(sh.name, func(t *testing.T) {
			t.Parallel()
			test(t, sh)
		})
	}
}

// A pod is what a script sees in its container: a volume, a mounted Secret and the environment.
type pod struct {
	shell    shell
	name     string   // of the script
	programs []string // of the image, which the script calls beside the commands of a shell
	root     string
	data     string
	secrets  string
	proxyURL string
}

// newPod prepares an empty volume with the owner and mode that fsGroup gives it, and a Secret with good keys.
func newPod(t *testing.T, sh shell) *pod {
	t.Helper()
	_, err := exec.LookPath(sh.command[0])
	require.NoErrorf(t, err, "install the Debian package %s", sh.debian)
	root := t.TempDir()
	// The testing package keeps the folder above to the user of the test; the script runs as another one.
	require.NoError(t, os.Chmod(filepath.Dir(root), 0o755))
	p := &pod{
		shell:    sh,
		name:     "initialize.sh",
		root:     root,
		data:     filepath.Join(root, "data"),
		secrets:  filepath.Join(root, "secrets"),
		proxyURL: proxyURL,
	}
	p.copyScript(t)
	require.NoError(t, os.Mkdir(p.data, 0o755))
	require.NoError(t, os.Mkdir(p.secrets, 0o755))
	chown(t, p.data, 0, podUser)
	require.NoError(t, os.Chmod(p.data, fs.ModeSetgid|0o775))
	p.setKey(t, "cpa_client_key", clientKey)
	p.setKey(t, "cpa_management_key", managementKey)
	p.setKey(t, "cpamp_admin_key", adminKey)
	return p
}

// chown gives a file away if the test may; otherwise the script runs as the user of the test, whose file it is.
func chown(t *testing.T, path string, uid, gid int) {
	t.Helper()
	if os.Geteuid() == 0 {
		require.NoError(t, os.Lchown(path, uid, gid))
	}
}

func (p *pod) script() string { return filepath.Join(p.root, p.name) }

func (p *pod) copyScript(t *testing.T) {
	t.Helper()
	require.NoError(t, os.WriteFile(p.script(), []byte(read(t, p.name)), 0o644))
}

func (p *pod) config() string { return filepath.Join(p.data, "cpa", "config.yaml") }

func (p *pod) marker() string { return filepath.Join(p.data, "cpa", ".subrelay-inputs") }

func (p *pod) damaged(number int) string { return fmt.Sprintf("%s.damaged-%d", p.config(), number) }

func (p *pod) setKey(t *testing.T, name, value string) {
	t.Helper()
	path := filepath.Join(p.secrets, name)
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.WriteFile(path, []byte(value), 0o440))
	chown(t, path, 0, podUser)
}

// inputs are what the script puts into config.yaml.
type inputs struct{ client, management, proxy string }

var (
	oldInputs = inputs{clientKey, managementKey, proxyURL}
	newInputs = inputs{"next-client-key's", `next "management" key's`, "http://other-gateway.subpool-gateway.svc:7891"}
)

func (p *pod) setInputs(t *testing.T, in inputs) {
	t.Helper()
	p.setKey(t, "cpa_client_key", in.client)
	p.setKey(t, "cpa_management_key", in.management)
	p.proxyURL = in.proxy
}

// quoted is a value as the script writes it.
func quoted(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

// marker is what the script notes down about the inputs that are in config.yaml.
func (in inputs) marker() string {
	return fmt.Sprintf("client-key %s\nmanagement-key-sha256 %x\nproxy-url %s\n",
		quoted(in.client), sha256.Sum256([]byte(in.management)), quoted(in.proxy))
}

// write leaves a file on the volume, with the folders above it, as an application in the Pod would.
func (p *pod) write(t *testing.T, path, content string) {
	t.Helper()
	p.mkdir(t, filepath.Dir(path))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	chown(t, path, podUser, podUser)
}

func (p *pod) mkdir(t *testing.T, path string) {
	t.Helper()
	if path == p.data {
		return
	}
	p.mkdir(t, filepath.Dir(path))
	err := os.Mkdir(path, 0o700)
	if !errors.Is(err, fs.ErrExist) {
		require.NoError(t, err)
		chown(t, path, podUser, podUser)
	}
}

// A result is how a run of the script ended.
type result struct {
	code   int // -1: by a signal
	stdout string
	stderr string
}

// command is the shell with the given arguments in the Pod's environment.
func (p *pod) command(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runTimeout)
	t.Cleanup(cancel)
	arguments = append(p.shell.command[1:len(p.shell.command):len(p.shell.command)], arguments...)
	cmd := exec.CommandContext(ctx, p.shell.command[0], arguments...)
	cmd.Env = []string{
		"PATH=" + p.shell.path,
		"MIHOMO_URL=" + p.proxyURL,
		"DATA_DIR=" + p.data,
		"SECRETS_DIR=" + p.secrets,
	}
	cmd.Dir = "/"
	// A group of its own can be killed as a whole, like a container.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: podUser, Gid: podUser}
	}
	return cmd
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); !exited {
		require.NoError(t, err)
	}
	return result{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

func (p *pod) run(t *testing.T) result {
	t.Helper()
	return finish(t, p.command(t, p.script()))
}

// mustRun runs the script to a success without complaints.
func (p *pod) mustRun(t *testing.T) result {
	t.Helper()
	r := p.run(t)
	require.Zero(t, r.code, r.stderr)
	require.Empty(t, r.stderr)
	return r
}

// requireRefused checks a failure: exit code 1, one line that holds every one of the words, and no key.
func requireRefused(t *testing.T, r result, words ...string) {
	t.Helper()
	require.Equal(t, 1, r.code, r.stderr)
	require.Regexp(t, `\Ainitialize(-manager)?: [^\n]+\n\z`, r.stderr)
	for _, word := range words {
		require.Contains(t, r.stderr, word)
	}
	for _, key := range []string{clientKey, managementKey, adminKey} {
		require.NotContains(t, r.stdout+r.stderr, key)
	}
}

// tree describes everything on the volume: path, mode, and the content of files.
func (p *pod) tree(t *testing.T) []string {
	t.Helper()
	var entries []string
	require.NoError(t, filepath.WalkDir(p.data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			content = read(t, path)
		}
		name, err := filepath.Rel(p.data, path)
		entries = append(entries, fmt.Sprintf("%s %s %q", name, info.Mode(), content))
		return err
	}))
	return entries
}

// times are the modification times of everything on the volume, by path.
func (p *pod) times(t *testing.T) map[string]time.Time {
	t.Helper()
	times := map[string]time.Time{}
	require.NoError(t, filepath.WalkDir(p.data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			times[path] = info.ModTime()
		}
		return err
	}))
	return times
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

// cpaConfig are the settings without which cpa does not start, is open to everybody or locks the manager out.
type cpaConfig struct {
	Port             int      `json:"port"`
	AuthDir          string   `json:"auth-dir"`
	APIKeys          []string `json:"api-keys"`
	ProxyURL         string   `json:"proxy-url"`
	RemoteManagement struct {
		SecretKey string `json:"secret-key"`
	} `json:"remote-management"`
}

// parseConfig reads config.yaml as cpa does.
func parseConfig(t *testing.T, content string) cpaConfig {
	t.Helper()
	var config cpaConfig
	require.NoError(t, yaml.Unmarshal([]byte(content), &config), content)
	return config
}

// requireInputs checks what cpa finds in config.yaml. A client key must be the only one.
func (p *pod) requireInputs(t *testing.T, in inputs) {
	t.Helper()
	config := parseConfig(t, read(t, p.config()))
	require.Equal(t, []string{in.client}, config.APIKeys)
	require.Equal(t, in.management, config.RemoteManagement.SecretKey)
	require.Equal(t, in.proxy, config.ProxyURL)
}

// requireUsable checks that cpa starts with config.yaml and is closed to strangers.
func (p *pod) requireUsable(t *testing.T) {
	t.Helper()
	config := parseConfig(t, read(t, p.config()))
	assert.Equal(t, 8317, config.Port)
	assert.Equal(t, "/CLIProxyAPI/auths", config.AuthDir)
	assert.Equal(t, []string{clientKey}, config.APIKeys)
	require.NotEmpty(t, config.RemoteManagement.SecretKey)
}
