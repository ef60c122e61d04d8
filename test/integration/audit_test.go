//go:build integration

package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// auditLog is the API server's record of who asked for what.
type auditLog struct{ path string }

// call is one request and how it was answered.
type call struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string              `json:"username"`
		Extra    map[string][]string `json:"extra"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received metav1.MicroTime `json:"requestReceivedTimestamp"`
}

func (c call) String() string {
	return fmt.Sprintf("%s %s %s %d", c.Received.UTC().Format(time.StampMicro), c.Verb, c.RequestURI, c.ResponseStatus.Code)
}

// ok: the API server did what it was asked for.
func (c call) ok() bool { return c.ResponseStatus.Code < http.StatusBadRequest }

// write: the call may change something. Leases, Events and reviews of others' rights are left out: they come by
// themselves and change no pool.
func (c call) write() bool {
	changing := []string{"create", "update", "patch", "delete", "deletecollection"}
	aside := []string{"leases", "events", "tokenreviews", "subjectaccessreviews"}
	return slices.Contains(changing, c.Verb) && !slices.Contains(aside, c.ObjectRef.Resource)
}

// by tells whether the call came from the process.
func (c call) by(o *operator) bool {
	return slices.Contains(c.User.Extra["authentication.kubernetes.io/credential-id"], o.credential)
}

// about tells whether the call is about the pool: its SubPool, its namespace or something in there.
func (c call) about(poolID string) bool {
	switch c.ObjectRef.Resource {
	case "subpools":
		return c.ObjectRef.Name == poolID
	case "namespaces":
		return c.ObjectRef.Name == namespaceOf(poolID)
	default:
		return c.ObjectRef.Namespace == namespaceOf(poolID)
	}
}

// mark returns a place in the log: every call that was answered before is above it, every later one below.
func (a auditLog) mark(ctx context.Context) (int64, error) {
	before, err := os.Stat(a.path)
	if err != nil {
		return 0, fmt.Errorf("the API server's audit log: %w", err)
	}
	name := "mark-" + rand.String(10)
	key := client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: name}
	if err := cluster.admin.Get(ctx, key, &corev1.ConfigMap{}); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("mark the audit log: %w", err)
	}
	var place int64
	err = wait.PollUntilContextTimeout(ctx, tick, 10*time.Second, true, func(context.Context) (bool, error) {
		length, err := a.lineEnd(before.Size(), name)
		place = before.Size() + length
		return length > 0, err
	})
	if err != nil {
		return 0, fmt.Errorf("find a mark in the audit log %s: %w", a.path, err)
	}
	return place, nil
}

// lineEnd returns the distance from a place to the end of the first line with the word, 0 if there is none yet.
func (a auditLog) lineEnd(from int64, word string) (int64, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // it was only read
	content, err := io.ReadAll(io.NewSectionReader(file, from, math.MaxInt64-from))
	if err != nil {
		return 0, err
	}
	found := bytes.Index(content, []byte(word))
	if found < 0 {
		return 0, nil
	}
	end := bytes.IndexByte(content[found:], '\n')
	if end < 0 {
		return 0, nil
	}
	return int64(found + end + 1), nil
}

// calls returns the operator's calls after the place that satisfy keep, in the order of their answers.
func (a auditLog) calls(ctx context.Context, from int64, keep func(call) bool) ([]call, error) {
	to, err := a.mark(ctx)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(a.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	var calls []call
	lines := bufio.NewScanner(io.NewSectionReader(file, from, to-from))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(operatorUser)) {
			continue
		}
		var c call
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("read the audit log %s: %w", a.path, err)
		}
		if c.User.Username == operatorUser && keep(c) {
			calls = append(calls, c)
		}
	}
	return calls, lines.Err()
}

// markAudit and operatorCalls are mark and calls for tests.
func markAudit(t *testing.T) int64 {
	t.Helper()
	place, err := cluster.audit.mark(t.Context())
	require.NoError(t, err)
	return place
}

func operatorCalls(t *testing.T, from int64, keep func(call) bool) []call {
	t.Helper()
	calls, err := cluster.audit.calls(t.Context(), from, keep)
	require.NoError(t, err)
	return calls
}

// operatorWrites returns what the operator wrote, or tried to, of one pool.
func operatorWrites(t *testing.T, from int64, poolID string) []call {
	t.Helper()
	return operatorCalls(t, from, func(c call) bool { return c.write() && c.about(poolID) })
}

// accessPatience is how long the API server may take to honour a new RoleBinding.
const accessPatience = 2 * time.Second

// checkRights returns an error about calls, in the whole log, that the operator's rights did not cover. Calls about
// Secrets around the moment in which the operator gives itself access to them are expected.
func (a auditLog) checkRights(ctx context.Context) error {
	granted := map[string][]time.Time{}
	refused, err := a.calls(ctx, 0, func(c call) bool {
		if c.ObjectRef.Resource == "rolebindings" && c.write() && c.ok() {
			granted[c.ObjectRef.Namespace] = append(granted[c.ObjectRef.Namespace], c.Received.Time)
		}
		return c.ResponseStatus.Code == http.StatusForbidden
	})
	errs := []error{err}
	for _, c := range refused {
		expected := slices.ContainsFunc(granted[c.ObjectRef.Namespace], func(at time.Time) bool {
			return c.Received.Sub(at).Abs() < accessPatience
		})
		if c.ObjectRef.Resource != "secrets" || !expected {
			errs = append(errs, fmt.Errorf("the operator has no right to what it tried: %s", c))
		}
	}
	return errors.Join(errs...)
}
