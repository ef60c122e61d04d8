// Package process runs a lab's components and restarts those that end by themselves.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// SystemPath is where the host's programs are.
const SystemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

const (
	// A component that ends is started again after firstDelay, then after twice as long each
	// time up to maxDelay; one that ran for steadyAfter begins anew.
	firstDelay  = 250 * time.Millisecond
	maxDelay    = 10 * time.Second
	steadyAfter = 30 * time.Second
)

// Spec says how to run one component.
type Spec struct {
	Name string
	Path string
	Args []string
	// Env is added to the group's environment and overrides it.
	Env []string
	// Namespaces are the clone flags of the namespaces that the process gets of its own.
	Namespaces uintptr
}

// State says what a component is doing.
type State string

const (
	// Running means that the component's process exists.
	Running State = "running"
	// Waiting means that its process ended and is about to be started again.
	Waiting State = "waiting to restart"
	// Stopped means that the group ended it.
	Stopped State = "stopped"
)

// Status describes one component.
type Status struct {
	Name     string    `json:"name"`
	State    State     `json:"state"`
	PID      int       `json:"pid,omitempty"`
	Restarts int       `json:"restarts"`
	LastExit string    `json:"lastExit,omitempty"`
	Since    time.Time `json:"since"`
}

// Group runs components. Their output goes to one file each.
type Group struct {
	logs    string
	env     []string
	inherit []*os.File
	spawn   chan func()

	mu         sync.Mutex
	components []*component
}

type component struct {
	spec    Spec
	stop    context.CancelFunc
	stopped chan struct{}
	restart chan struct{}

	mu     sync.Mutex
	status Status
	cmd    *exec.Cmd
}

// NewGroup returns a group whose components log into the folder logs, see env and inherit the
// files. When the calling process dies, however it dies, the kernel kills its components.
func NewGroup(logs string, env []string, inherit ...*os.File) *Group {
	g := &Group{logs: logs, env: env, inherit: inherit, spawn: make(chan func())}
	go g.spawnForever()
	return g
}

// spawnForever starts all processes on one thread that never ends: the kernel sends the death
// signal when the parent thread goes, and Go may end other threads at any time.
func (g *Group) spawnForever() {
	runtime.LockOSThread()
	for start := range g.spawn {
		start()
	}
}

// Start runs a component until the group stops it.
func (g *Group) Start(spec Spec) {
	ctx, stop := context.WithCancel(context.Background())
	c := &component{
		spec:    spec,
		stop:    stop,
		stopped: make(chan struct{}),
		restart: make(chan struct{}, 1),
		status:  Status{Name: spec.Name, State: Waiting, Since: time.Now()},
	}
	g.mu.Lock()
	g.components = append(g.components, c)
	g.mu.Unlock()
	go func() {
		defer close(c.stopped)
		g.keepRunning(ctx, c)
	}()
}

// Restart ends a component with SIGTERM; it is started again at once.
func (g *Group) Restart(name string) error {
	c, err := g.find(name)
	if err != nil {
		return err
	}
	select {
	case c.restart <- struct{}{}:
	default: // a restart is already asked for
	}
	return nil
}

// Remove stops a component for good and forgets it; one that the group does not have is no error. It ends with SIGTERM,
// and with SIGKILL when it is still there when ctx ends.
func (g *Group) Remove(ctx context.Context, name string) {
	g.mu.Lock()
	index := slices.IndexFunc(g.components, func(c *component) bool { return c.spec.Name == name })
	if index < 0 {
		g.mu.Unlock()
		return
	}
	c := g.components[index]
	g.components = slices.Delete(g.components, index, index+1)
	g.mu.Unlock()
	c.terminate()
	c.awaitStopped(ctx)
}

// Status describes the components in the order of their start.
func (g *Group) Status() []Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]Status, 0, len(g.components))
	for _, c := range g.components {
		all = append(all, c.snapshot())
	}
	return all
}

// Stop ends all components at once: with SIGTERM, and with SIGKILL those still there when ctx ends.
func (g *Group) Stop(ctx context.Context) {
	g.mu.Lock()
	components := slices.Clone(g.components)
	g.mu.Unlock()
	for _, c := range components {
		c.terminate()
	}
	for _, c := range components {
		c.awaitStopped(ctx)
	}
}

func (g *Group) find(name string) (*component, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := make([]string, 0, len(g.components))
	for _, c := range g.components {
		if c.spec.Name == name {
			return c, nil
		}
		names = append(names, c.spec.Name)
	}
	return nil, fmt.Errorf("the lab runs no component %q; it runs %v", name, names)
}

func (g *Group) keepRunning(ctx context.Context, c *component) {
	delay := firstDelay
	for ctx.Err() == nil {
		started := time.Now()
		wanted, err := g.runOnce(ctx, c)
		if ctx.Err() != nil {
			break
		}
		c.ended(err)
		if wanted || time.Since(started) >= steadyAfter {
			delay = firstDelay
		}
		if wanted {
			continue
		}
		select {
		case <-ctx.Done():
		case <-c.restart:
		case <-time.After(delay):
		}
		delay = min(2*delay, maxDelay)
	}
	c.set(func(s *Status) { s.State, s.PID, s.Since = Stopped, 0, time.Now() })
}

// runOnce runs the component once. It reports whether the end was asked for, and how it ended.
func (g *Group) runOnce(ctx context.Context, c *component) (wanted bool, err error) {
	log, err := os.OpenFile(filepath.Join(g.logs, c.spec.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return false, fmt.Errorf("open the log: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(c.spec.Path, c.spec.Args...)
	cmd.Args[0] = c.spec.Name
	cmd.Env = append(slices.Clone(g.env), c.spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = g.inherit
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: c.spec.Namespaces}
	if os.Geteuid() != 0 && c.spec.Namespaces != 0 {
		becomeRootInside(cmd.SysProcAttr)
	}
	if err := g.start(ctx, c, cmd); err != nil {
		_, _ = fmt.Fprintf(log, "lab: %v\n", err)
		return false, err
	}

	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	select {
	case err = <-exited:
		_, _ = fmt.Fprintf(log, "lab: %s ended: %s\n", c.spec.Name, describeExit(err))
		return false, err
	case <-c.restart:
		c.signal(syscall.SIGTERM)
		return true, <-exited
	case <-ctx.Done():
		return true, <-exited
	}
}

// becomeRootInside adds a user namespace: in one of their own, ordinary users may make namespaces of the other kinds.
func becomeRootInside(attributes *syscall.SysProcAttr) {
	attributes.Cloneflags |= syscall.CLONE_NEWUSER
	attributes.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
	attributes.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
}

func (g *Group) start(ctx context.Context, c *component, cmd *exec.Cmd) error {
	done := make(chan error)
	g.spawn <- func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		// Stop signals under the same lock, so it either sees the process or prevents it.
		if err := ctx.Err(); err != nil {
			done <- err
			return
		}
		err := cmd.Start()
		if err == nil {
			c.cmd = cmd
			c.status.State, c.status.PID, c.status.Since = Running, cmd.Process.Pid, time.Now()
		}
		done <- err
	}
	return <-done
}

// terminate asks the component to end and lets nobody start it again.
func (c *component) terminate() {
	c.stop()
	c.signal(syscall.SIGTERM)
}

// awaitStopped returns when the component has ended, which it must when ctx ends.
func (c *component) awaitStopped(ctx context.Context) {
	select {
	case <-c.stopped:
	case <-ctx.Done():
		c.signal(syscall.SIGKILL)
		<-c.stopped
	}
}

func (c *component) signal(signal os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd != nil {
		// The process may have ended by itself, which is just as well.
		_ = c.cmd.Process.Signal(signal)
	}
}

func (c *component) ended(err error) {
	c.set(func(s *Status) {
		s.State, s.PID, s.Since = Waiting, 0, time.Now()
		s.Restarts++
		s.LastExit = describeExit(err)
	})
}

func (c *component) set(change func(*Status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.status)
}

func (c *component) snapshot() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

func describeExit(err error) string {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "exit status 0"
	case errors.As(err, &exit):
		return exit.ProcessState.String()
	default:
		return err.Error()
	}
}
