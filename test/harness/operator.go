package harness

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// operatorTick is how often a process is asked whether it works.
	operatorTick = 50 * time.Millisecond

	// startBudget and stopBudget bound how long the operator's process takes to answer, and to end.
	startBudget = 30 * time.Second
	stopBudget  = 15 * time.Second

	// logTailLength is how much of the operator's log is shown after a failure, in lines.
	logTailLength = 50
)

// Operator is one process of the operator, under the shipped ServiceAccount.
type Operator struct {
	// TokenID identifies the token of this process, and with it the process, in the audit log.
	TokenID string
	// Metrics is the address of the metrics endpoint.
	Metrics string
	// Exited is closed when the process has ended.
	Exited chan struct{}

	cmd    *exec.Cmd
	folder string
	health string
	// exit is the result of a process that has ended.
	exit error
}

// StartOperator returns when the process answers on /readyz. It logs all it can, unless the flags say otherwise.
func (c *Cluster) StartOperator(ctx context.Context, flags ...string) (*Operator, error) {
	program, err := Program("MANAGER", "manager")
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "operator-")
	if err != nil {
		return nil, fmt.Errorf("make the operator's folder: %w", err)
	}
	o := &Operator{folder: folder, Exited: make(chan struct{})}
	token, err := c.RequestToken(ctx, SystemNamespace, OperatorAccount)
	if err != nil {
		return nil, err
	}
	if o.TokenID, err = tokenID(token); err != nil {
		return nil, err
	}
	if err := c.writeKubeconfig(o.file("kubeconfig"), token); err != nil {
		return nil, err
	}
	if o.Metrics, err = freeAddress(ctx); err != nil {
		return nil, err
	}
	if o.health, err = freeAddress(ctx); err != nil {
		return nil, err
	}
	o.cmd = exec.Command(program, append([]string{
		"--kubeconfig=" + o.file("kubeconfig"),
		"--operator-config=" + OperatorConfig,
		"--namespace=" + SystemNamespace,
		"--service-account=" + OperatorAccount,
		"--metrics-bind-address=" + o.Metrics,
		"--health-probe-bind-address=" + o.health,
		"--zap-log-level=7",
	}, flags...)...)
	if err := o.start(); err != nil {
		return nil, err
	}
	if err := o.awaitReadyz(ctx); err != nil {
		return nil, errors.Join(err, o.Kill())
	}
	return o, nil
}

func (o *Operator) file(name string) string { return filepath.Join(o.folder, name) }

func (o *Operator) start() error {
	log, err := os.Create(o.file("log"))
	if err != nil {
		return fmt.Errorf("open the operator's log: %w", err)
	}
	o.cmd.Stdout, o.cmd.Stderr = log, log
	if err := o.cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("start the operator: %w", err), log.Close())
	}
	go func() {
		o.exit = errors.Join(o.cmd.Wait(), log.Close())
		close(o.Exited)
	}()
	return nil
}

func (o *Operator) awaitReadyz(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, operatorTick, startBudget, true, func(ctx context.Context) (bool, error) {
		select {
		case <-o.Exited:
			return false, fmt.Errorf("the process ended: %w", o.exit)
		default:
			return o.Readyz(ctx) == nil, nil
		}
	})
	if err != nil {
		return fmt.Errorf("the operator is not ready: %w\n%s", err, o.LogTail())
	}
	return nil
}

// Readyz asks the process whether it works.
func (o *Operator) Readyz(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.health+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("readyz answers %s", response.Status)
	}
	return nil
}

// PID returns the id of the process, under which the kernel tells what it uses.
func (o *Operator) PID() int { return o.cmd.Process.Pid }

// signal may also come to a process that has ended.
func (o *Operator) signal(signal syscall.Signal) error {
	if err := o.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal the operator: %w", err)
	}
	return nil
}

// Stop ends the process in good order and waits for its end.
func (o *Operator) Stop() error {
	if err := o.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-o.Exited:
		return o.exit
	case <-time.After(stopBudget):
		return errors.Join(fmt.Errorf("the operator did not end within %s of SIGTERM", stopBudget), o.Kill())
	}
}

// Kill ends the process at once, if it still runs.
func (o *Operator) Kill() error {
	if err := o.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-o.Exited
	return nil
}

// Log returns all that the process has written so far.
func (o *Operator) Log() ([]byte, error) { return os.ReadFile(o.file("log")) }

// LogTail is the end of the log for a person: without the bodies of requests, which are only logged to be searched
// for secrets.
func (o *Operator) LogTail() string {
	content, err := o.Log()
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(string(content)) {
		if !strings.Contains(line, `"level":"Level(-`) {
			lines = append(lines, line)
		}
	}
	return "end of the operator's log:\n" + strings.Join(lines[max(0, len(lines)-logTailLength):], "")
}

// RequestToken returns a token of a ServiceAccount that outlives the tests.
func (c *Cluster) RequestToken(ctx context.Context, namespace, name string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{}
	if err := c.Admin.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("request a token for ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return request.Status.Token, nil
}

// tokenID returns what the audit log says of requests with the token.
func tokenID(token string) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", errors.New("a ServiceAccount's token is not a JWT")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", fmt.Errorf("decode a ServiceAccount's token: %w", err)
	}
	var claims struct {
		ID string `json:"jti"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return "", fmt.Errorf("decode a ServiceAccount's token: %w", err)
	}
	return claims.ID, nil
}

// writeKubeconfig writes a file that only its owner can read.
func (c *Cluster) writeKubeconfig(path, token string) error {
	const name = "operator"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   c.Config.Host,
		CertificateAuthority:     c.Config.CAFile,
		CertificateAuthorityData: c.Config.CAData,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write the operator's kubeconfig: %w", err)
	}
	return nil
}

// freeAddress returns an address of this machine's loopback on which nobody listens.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("look for a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
