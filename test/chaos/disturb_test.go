//go:build chaos

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/example-org/subrelay-operator/test/harness"
)

// wire passes connections of the operators on to the API server, until it is cut.
type wire struct {
	listener net.Listener
	server   string

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// layWire returns a wire that works until ctx ends.
func layWire(ctx context.Context, server string) (*wire, error) {
	target, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("read the API server's address: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the operators: %w", err)
	}
	w := &wire{listener: listener, server: target.Host, conns: map[net.Conn]bool{}}
	context.AfterFunc(ctx, func() {
		_ = listener.Close() // ends serve; there is nobody left to tell
		w.cut()
	})
	go w.serve()
	return w, nil
}

// address is where the API server is found behind the wire.
func (w *wire) address() string { return "https://" + w.listener.Addr().String() }

func (w *wire) serve() {
	for {
		operator, err := w.listener.Accept()
		if err != nil {
			return
		}
		go w.connect(operator)
	}
}

// connect ends with the connection. How that ends is up to both sides.
func (w *wire) connect(operator net.Conn) {
	server, err := net.Dial("tcp", w.server)
	if err != nil {
		_ = operator.Close()
		return
	}
	ends := []net.Conn{operator, server}
	w.mu.Lock()
	for _, end := range ends {
		w.conns[end] = true
	}
	w.mu.Unlock()
	var both sync.WaitGroup
	relay := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = errors.Join(to.Close(), from.Close())
	}
	both.Go(func() { relay(server, operator) })
	both.Go(func() { relay(operator, server) })
	both.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, end := range ends {
		delete(w.conns, end)
	}
}

// cut ends all connections. New ones are possible at once.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.conns {
		_ = conn.Close() // it may have ended by itself
	}
}

// server is the API server's process.
type server struct {
	pid int
	// pausing lets one pause follow another.
	pausing sync.Mutex
}

func findServer(ctx context.Context, lab *harness.Lab) (*server, error) {
	pid, err := lab.PID(ctx, "kube-apiserver")
	if err != nil {
		return nil, err
	}
	return &server{pid: pid}, nil
}

// pause holds the process for a while, or until ctx ends.
func (s *server) pause(ctx context.Context, duration time.Duration) error {
	s.pausing.Lock()
	defer s.pausing.Unlock()
	if err := syscall.Kill(s.pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("pause the API server: %w", err)
	}
	pass(ctx, duration)
	if err := syscall.Kill(s.pid, syscall.SIGCONT); err != nil {
		return fmt.Errorf("let the API server go on: %w", err)
	}
	return nil
}

// pass lets time pass.
func pass(ctx context.Context, duration time.Duration) {
	select {
	case <-time.After(duration):
	case <-ctx.Done():
	}
}

const (
	// operators is how many processes there are, as in the shipped Deployment.
	operators = 2

	// restartDelay is how long a process stays dead.
	restartDelay = time.Second
)

// crew are the operators. Each that ends is started again, as a Deployment does it.
type crew struct {
	running sync.WaitGroup

	mu      sync.Mutex
	members [operators]*harness.Operator
	// all are the processes that ran at any time.
	all []*harness.Operator
	// failed are starts that came to nothing.
	failed []error
}

// hire starts the operators. They reach the API server at the given address and end with ctx.
func hire(ctx context.Context, address string) *crew {
	behind := *cluster
	behind.Config = rest.CopyConfig(cluster.Config)
	behind.Config.Host = address
	c := &crew{}
	for i := range c.members {
		c.running.Go(func() {
			wait.UntilWithContext(ctx, func(ctx context.Context) { c.work(ctx, &behind, i) }, restartDelay)
		})
	}
	return c
}

// work is the life of one process.
func (c *crew) work(ctx context.Context, behind *harness.Cluster, i int) {
	operator, err := behind.StartOperator(ctx, "--zap-log-level=info")
	c.mu.Lock()
	c.members[i] = operator
	if err != nil {
		c.failed = append(c.failed, err)
		c.mu.Unlock()
		return
	}
	c.all = append(c.all, operator)
	c.mu.Unlock()
	select {
	case <-operator.Exited:
	case <-ctx.Done():
		_ = operator.Kill() // nothing depends on how it ends
	}
}

// kill ends a process without warning, unless it is dead already.
func (c *crew) kill(i int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members[i] == nil {
		return nil
	}
	return c.members[i].Kill()
}

// tokens are those of all processes that ran at any time.
func (c *crew) tokens() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	tokens := map[string]bool{}
	for _, operator := range c.all {
		tokens[operator.TokenID] = true
	}
	return tokens
}

// logs returns all that the operators have written.
func (c *crew) logs() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []byte
	var errs []error
	for _, operator := range c.all {
		log, err := operator.Log()
		all, errs = append(all, log...), append(errs, err)
	}
	return all, errors.Join(errs...)
}
