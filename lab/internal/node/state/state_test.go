package state

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func open(t *testing.T) Folder {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	folder, err := Open("one")
	require.NoError(t, err)
	return folder
}

func TestOpenJudgesNames(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/state")
	for _, name := range []string{"default", "a", "1", "a-b", strings.Repeat("x", 40)} {
		folder, err := Open(name)
		require.NoError(t, err, name)
		require.Equal(t, "/state/subrelay-lab/"+name+"/kubeconfig", folder.Kubeconfig())
	}
	for _, name := range []string{"", "-a", "a-", "A", "a/b", "..", "a.b", "a b", strings.Repeat("x", 41)} {
		_, err := Open(name)
		require.ErrorContains(t, err, "not usable", name)
	}
}

func TestOpenNeedsAnAbsoluteBase(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "relative")
	_, err := Open("one")
	require.ErrorContains(t, err, "XDG_STATE_HOME")

	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "/home/somebody")
	folder, err := Open("one")
	require.NoError(t, err)
	require.Equal(t, "/home/somebody/.local/state/subrelay-lab/one/audit.log", folder.AuditLog())
}

func TestLabsOfOneNameInTwoPlacesAreTwoLabs(t *testing.T) {
	base := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(base, "real"), 0o755))
	require.NoError(t, os.Symlink("real", filepath.Join(base, "link")))
	id := func(place string) string {
		t.Setenv("XDG_STATE_HOME", filepath.Join(base, place))
		folder, err := Open("one")
		require.NoError(t, err)
		return folder.ID()
	}
	require.Regexp(t, "^one-[0-9a-f]{8}$", id("real"))
	require.NotEqual(t, id("real"), id("other"))
	require.Equal(t, id("real"), id("link"), "one place with two names")
	require.Equal(t, id("real/not/yet/there"), id("link/not/yet/there"))
}

func TestRecordsComeBack(t *testing.T) {
	folder := open(t)
	_, err := folder.ReadRecord()
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, folder.Create())
	record := Record{Mode: FullNode, Port: 12345, Binaries: map[string]string{"etcd": "/cache/etcd"}, Cache: "/cache"}
	require.NoError(t, folder.WriteRecord(record))
	read, err := folder.ReadRecord()
	require.NoError(t, err)
	require.Equal(t, record, read)

	require.NoError(t, os.WriteFile(folder.Path("lab.json"), []byte("{"), 0o600))
	_, err = folder.ReadRecord()
	require.ErrorContains(t, err, "lab down")
}

func TestLockIsHeldByWhoeverInheritsIt(t *testing.T) {
	folder := open(t)
	requireRunning(t, folder, false)
	lock, err := folder.Lock()
	require.NoError(t, err)
	_, err = folder.Lock()
	require.ErrorIs(t, err, ErrLocked)
	requireRunning(t, folder, true)

	// The heir ends when its input does.
	heir := exec.Command("cat")
	input, err := heir.StdinPipe()
	require.NoError(t, err)
	heir.ExtraFiles = []*os.File{lock}
	require.NoError(t, heir.Start())
	require.NoError(t, lock.Close())
	requireRunning(t, folder, true)
	require.NoError(t, input.Close())
	require.NoError(t, heir.Wait())
	requireRunning(t, folder, false)
}

func requireRunning(t *testing.T, folder Folder, want bool) {
	t.Helper()
	running, err := folder.Running()
	require.NoError(t, err)
	require.Equal(t, want, running)
}

func TestClearKeepsTheLock(t *testing.T) {
	folder := open(t)
	lock, err := folder.Lock()
	require.NoError(t, err)
	defer func() { _ = lock.Close() }()
	require.NoError(t, os.MkdirAll(folder.Path("var", "lib"), 0o755))
	require.NoError(t, folder.Clear())
	require.NoDirExists(t, folder.Path("var"))
	requireRunning(t, folder, true)
}

func TestRemoveLeavesOtherLabs(t *testing.T) {
	one := open(t)
	two, err := Open("two")
	require.NoError(t, err)
	require.NoError(t, one.Create())
	require.NoError(t, two.Create())
	require.NoError(t, one.Remove())
	require.False(t, one.Exists())
	require.True(t, two.Exists())
	require.NoError(t, two.Remove())
	require.NoDirExists(t, filepath.Dir(two.Path()))
	require.NoError(t, two.Remove(), "what is not there needs no removing")
}

func TestLockOfARemovedFolderIsNotTaken(t *testing.T) {
	folder := open(t)
	old, err := folder.Lock()
	require.NoError(t, err)
	require.NoError(t, folder.Remove())
	lock, err := folder.Lock()
	require.NoError(t, err, "the lock of a folder that is gone holds nothing")
	requireRunning(t, folder, true)
	require.NoError(t, old.Close())
	requireRunning(t, folder, true)
	require.NoError(t, lock.Close())
}

func TestProcessesAreToldApart(t *testing.T) {
	self, err := Self()
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), self.PID)
	require.True(t, self.Alive())

	other := Process{PID: self.PID, StartTicks: self.StartTicks + 1}
	require.False(t, other.Alive(), "the same number at another time is another process")
	require.NoError(t, other.Signal(unix.SIGKILL), "so it is not hit")
	require.False(t, Process{PID: 1 << 30}.Alive())
	require.NoError(t, Process{PID: 1 << 30}.Signal(unix.SIGKILL))
}

func TestParseStat(t *testing.T) {
	const rest = " 1 10 10 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1000 10"
	for line, want := range map[string]processStat{
		"10 (cat) S" + rest:            {state: "S", startTicks: 4711},
		"10 (a) Z (b) c) R" + rest:     {state: "R", startTicks: 4711},
		"10 (with space) Z" + rest:     {state: "Z", startTicks: 4711},
		"10 (one\nmore line) D" + rest: {state: "D", startTicks: 4711},
	} {
		stat, err := parseStat(line)
		require.NoError(t, err, line)
		require.Equal(t, want, stat, line)
	}
	for _, line := range []string{"", "10 cat S", "10 (cat) S 1 2"} {
		_, err := parseStat(line)
		require.Error(t, err, line)
	}
}
