// Package state owns the folder in which one lab keeps everything it writes.
//
// The folder is the only trace of a lab in the file system. Commands on the host and the
// lab's supervisor find each other through it.
package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultName is the lab that commands mean when no name is given.
const DefaultName = "default"

// The name becomes part of a path and of a cgroup.
var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

// Mode says how much of a cluster a lab runs.
type Mode string

const (
	// FullNode is a cluster with one real node that runs Pods.
	FullNode Mode = "node"
	// ControlPlaneOnly is etcd, the API server and the controller manager without a node.
	ControlPlaneOnly Mode = "control-plane"
)

// Record is what `lab up` decided for a lab; the supervisor and later commands read it.
type Record struct {
	Mode Mode `json:"mode"`
	// Port of the API server on the host's loopback.
	Port int `json:"port"`
	// Binaries maps a program's name to its absolute path on the host.
	Binaries map[string]string `json:"binaries"`
	// Cache is the folder that holds the binaries of a full node.
	Cache   string    `json:"cache"`
	Created time.Time `json:"created"`
}

// Folder is the state folder of one lab. It may not exist yet.
type Folder struct {
	name string
	path string
}

// Open returns the folder of the lab called name, below $XDG_STATE_HOME or ~/.local/state.
func Open(name string) (Folder, error) {
	if !validName.MatchString(name) {
		return Folder{}, fmt.Errorf("lab name %q is not usable: use 1 to 40 lower-case letters, digits and dashes, "+
			"beginning and ending with a letter or digit", name)
	}
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return Folder{}, fmt.Errorf("no place for the lab's state: set XDG_STATE_HOME or HOME: %w", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	if !filepath.IsAbs(base) {
		return Folder{}, fmt.Errorf("XDG_STATE_HOME is %q: make it an absolute path", base)
	}
	return At(name, realPath(filepath.Join(base, "subrelay-lab", name))), nil
}

// realPath resolves symbolic links in as much of path as exists.
func realPath(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(realPath(parent), filepath.Base(path))
}

// At returns the folder at a known path; the supervisor sees the folder under another path than the host.
func At(name, path string) Folder { return Folder{name: name, path: path} }

// Name returns the lab's name.
func (f Folder) Name() string { return f.name }

// ID tells this lab from all others of the machine, also from those of the same name whose state
// lies in another place.
func (f Folder) ID() string {
	place := sha256.Sum256([]byte(f.path))
	return f.name + "-" + hex.EncodeToString(place[:4])
}

// Path returns a path below the folder.
func (f Folder) Path(elem ...string) string {
	return filepath.Join(append([]string{f.path}, elem...)...)
}

// Kubeconfig is the administrator's access for the host.
func (f Folder) Kubeconfig() string { return f.Path("kubeconfig") }

// AuditLog is where the API server writes one JSON line for each request.
func (f Folder) AuditLog() string { return f.Path("audit.log") }

// Logs is the folder of the components' logs.
func (f Folder) Logs() string { return f.Path("logs") }

// Log is the output of one component.
func (f Folder) Log(component string) string { return filepath.Join(f.Logs(), component+".log") }

// Images is the folder of the archives that a full node imports before its first Pod.
func (f Folder) Images() string { return f.Path("images") }

// Socket is where the supervisor answers.
func (f Folder) Socket() string { return f.Path("control.sock") }

// APISocket is where a lab without a node offers its API server to programs in networks of their own.
func (f Folder) APISocket() string { return f.Path("api.sock") }

// Gateway is the folder of the Envoy Gateway controller's files.
func (f Folder) Gateway() string { return f.Path("gateway") }

// KubectlCache is for what kubectl remembers of the cluster.
func (f Folder) KubectlCache() string { return f.Path("kubectl-cache") }

// Exists reports whether a lab of this name has left any state.
func (f Folder) Exists() bool {
	_, err := os.Lstat(f.path)
	return err == nil
}

// Create makes the folder, readable by its owner alone: it holds private keys.
func (f Folder) Create() error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return fmt.Errorf("create the lab's state folder: %w", err)
	}
	if err := os.Mkdir(f.path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create the lab's state folder: %w", err)
	}
	return nil
}

// Clear empties the folder but for the lock, so that one that is held stays valid.
func (f Folder) Clear() error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return fmt.Errorf("read the lab's state folder: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == lockName {
			continue
		}
		if err := os.RemoveAll(f.Path(entry.Name())); err != nil {
			return fmt.Errorf("clear the lab's state folder: %w", err)
		}
	}
	return nil
}

// Remove deletes the folder, and the folder of all labs when this was the last one.
func (f Folder) Remove() error {
	if err := os.RemoveAll(f.path); err != nil {
		return fmt.Errorf("remove the lab's state folder: %w", err)
	}
	err := os.Remove(filepath.Dir(f.path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("remove the folder of all labs: %w", err)
	}
	return nil
}

// WriteRecord stores what `lab up` decided.
func (f Folder) WriteRecord(record Record) error { return writeJSON(f.Path("lab.json"), record) }

// ReadRecord returns what `lab up` decided; the error wraps fs.ErrNotExist when no lab was started.
func (f Folder) ReadRecord() (Record, error) {
	var record Record
	err := readJSON(f.Path("lab.json"), &record)
	return record, err
}

// WriteProcess stores which process is the supervisor.
func (f Folder) WriteProcess(process Process) error {
	return writeJSON(f.Path("supervisor.json"), process)
}

// ReadProcess returns the supervisor's process; the error wraps fs.ErrNotExist when none was started.
func (f Folder) ReadProcess() (Process, error) {
	var process Process
	err := readJSON(f.Path("supervisor.json"), &process)
	return process, err
}

// writeJSON replaces a file in one step, so that no reader sees half of it.
func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the lab's state: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("write the lab's state: %w", err)
	}
	return nil
}

func readJSON(path string, value any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the lab's state: %w", err)
	}
	if err := json.Unmarshal(data, value); err != nil {
		return fmt.Errorf("%s is damaged: %w; run `lab down` to start over", path, err)
	}
	return nil
}
