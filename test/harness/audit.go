package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// markTick is how often the log is looked at for a mark, markPatience how long the API server may take to write it.
	markTick     = 50 * time.Millisecond
	markPatience = 10 * time.Second

	// longestCall bounds a line of the log, in bytes.
	longestCall = 1 << 20
)

// AuditLog is the API server's record of who asked for what.
type AuditLog struct {
	path string
	// admin leaves marks in the log.
	admin client.Client
}

// Call is one request and how it was answered.
type Call struct {
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
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	Received metav1.MicroTime `json:"requestReceivedTimestamp"`
}

func (c Call) String() string {
	return fmt.Sprintf("%s %s %s %s %d %s",
		c.Received.UTC().Format(time.StampMicro), c.User.Username, c.Verb, c.RequestURI, c.ResponseStatus.Code, c.ResponseStatus.Message)
}

// OK tells whether the API server did what it was asked for.
func (c Call) OK() bool { return c.ResponseStatus.Code < http.StatusBadRequest }

// Write tells whether the call asked for a change. Leases, Events and reviews of others' rights are left out: they come
// by themselves and change no pool.
func (c Call) Write() bool {
	changing := []string{"create", "update", "patch", "delete", "deletecollection"}
	aside := []string{"leases", "events", "tokenreviews", "subjectaccessreviews"}
	return slices.Contains(changing, c.Verb) && !slices.Contains(aside, c.ObjectRef.Resource)
}

// About tells whether the call is about the pool: its SubPool, its namespace or something in there.
func (c Call) About(poolID string) bool {
	switch c.ObjectRef.Resource {
	case "subpools":
		return c.ObjectRef.Name == poolID
	case "namespaces":
		return c.ObjectRef.Name == NamespaceOf(poolID)
	default:
		return c.ObjectRef.Namespace == NamespaceOf(poolID)
	}
}

// TokenID returns the ID (claim "jti") of the ServiceAccount token that the call was made with. It tells apart processes
// that share an account; it is empty for other users.
func (c Call) TokenID() string {
	for _, credential := range c.User.Extra["authentication.kubernetes.io/credential-id"] {
		if id, ok := strings.CutPrefix(credential, "JTI="); ok {
			return id
		}
	}
	return ""
}

// Mark is a place in the log.
type Mark int64

// Mark returns a place in the log: every call that was answered before is above it, every later one below.
func (a *AuditLog) Mark(ctx context.Context) (Mark, error) {
	before, err := os.Stat(a.path)
	if err != nil {
		return 0, fmt.Errorf("the API server's audit log: %w", err)
	}
	word := "mark-" + rand.String(10)
	key := client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: word}
	if err := a.admin.Get(ctx, key, &corev1.ConfigMap{}); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("mark the audit log: %w", err)
	}
	var place int64
	err = wait.PollUntilContextTimeout(ctx, markTick, markPatience, true, func(context.Context) (bool, error) {
		content, err := a.read(before.Size(), math.MaxInt64)
		if err != nil {
			return false, err
		}
		length := endOfLine(content, word)
		place = before.Size() + length
		return length > 0, nil
	})
	if err != nil {
		return 0, fmt.Errorf("find a mark in the audit log %s: %w", a.path, err)
	}
	return Mark(place), nil
}

// Calls returns the calls since the mark that satisfy keep, in the order of their answers.
func (a *AuditLog) Calls(ctx context.Context, since Mark, keep func(Call) bool) ([]Call, error) {
	return a.calls(ctx, since, "", keep)
}

// OperatorCalls is Calls for those of the operator.
func (a *AuditLog) OperatorCalls(ctx context.Context, since Mark, keep func(Call) bool) ([]Call, error) {
	return a.calls(ctx, since, OperatorUser, func(c Call) bool { return c.User.Username == OperatorUser && keep(c) })
}

// calls decodes only lines with the word, since most of the log is the tests' own polling.
func (a *AuditLog) calls(ctx context.Context, since Mark, word string, keep func(Call) bool) ([]Call, error) {
	content, err := a.Since(ctx, since)
	if err != nil {
		return nil, err
	}
	var calls []Call
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, longestCall)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(word)) {
			continue
		}
		var call Call
		if err := json.Unmarshal(lines.Bytes(), &call); err != nil {
			return nil, fmt.Errorf("read the audit log %s: %w", a.path, err)
		}
		if keep(call) {
			calls = append(calls, call)
		}
	}
	return calls, lines.Err()
}

// Since returns the log's own text from the mark to a call that is made now.
func (a *AuditLog) Since(ctx context.Context, mark Mark) ([]byte, error) {
	now, err := a.Mark(ctx)
	if err != nil {
		return nil, err
	}
	return a.read(int64(mark), int64(now))
}

func (a *AuditLog) read(from, to int64) ([]byte, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return nil, fmt.Errorf("the API server's audit log: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	return io.ReadAll(io.NewSectionReader(file, from, to-from))
}

// endOfLine returns where the first line with the word ends, 0 if there is none yet.
func endOfLine(content []byte, word string) int64 {
	found := bytes.Index(content, []byte(word))
	if found < 0 {
		return 0
	}
	end := bytes.IndexByte(content[found:], '\n')
	if end < 0 {
		return 0
	}
	return int64(found + end + 1)
}
