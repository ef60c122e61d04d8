// Package audit counts the requests of one client in the API server's audit log.
package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/example-org/subrelay-operator/test/harness"
)

// Calls are requests of one client in the order of their answers. Those for Leases are left out: they come by the clock.
type Calls []harness.Call

// Since returns the calls since the mark whose user agent begins with one of the prefixes.
func Since(ctx context.Context, cluster *harness.Cluster, mark harness.Mark, userAgents []string) (Calls, error) {
	content, err := cluster.Audit.Since(ctx, mark)
	if err != nil {
		return nil, err
	}
	return parse(content, userAgents)
}

func parse(content []byte, userAgents []string) (Calls, error) {
	var calls Calls
	for line := range bytes.Lines(content) {
		// Most of the log is others': it is not decoded.
		if !slices.ContainsFunc(userAgents, func(agent string) bool { return bytes.Contains(line, []byte(`"userAgent":"`+agent)) }) {
			continue
		}
		var call struct {
			harness.Call
			Stage string `json:"stage"`
		}
		if err := json.Unmarshal(line, &call); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		// A watch is in the log when it begins and again when it ends.
		ended := call.Verb == "watch" && call.Stage == "ResponseComplete" && call.OK()
		if call.ObjectRef.Resource != "leases" && !ended {
			calls = append(calls, call.Call)
		}
	}
	return calls, nil
}

// Select returns the calls that satisfy keep.
func (c Calls) Select(keep func(harness.Call) bool) Calls {
	var kept Calls
	for _, call := range c {
		if keep(call) {
			kept = append(kept, call)
		}
	}
	return kept
}

// Writes counts the calls that change something; Events are left out.
func (c Calls) Writes() int { return len(c.Select(harness.Call.Write)) }

// Reads counts single reads and lists, but no watches.
func (c Calls) Reads() int { return len(c.Select(isRead)) }

func isRead(call harness.Call) bool { return call.Verb == "get" || call.Verb == "list" }

// ReadsBeforeWrites counts those reads in a pool's namespace that came before its last write there: what was looked at in order
// to make something.
func (c Calls) ReadsBeforeWrites() int {
	reads := 0
	writing := map[string]bool{}
	for _, call := range slices.Backward(c) {
		namespace := call.ObjectRef.Namespace
		if call.ObjectRef.Resource == "namespaces" {
			namespace = call.ObjectRef.Name
		}
		if !strings.HasPrefix(namespace, harness.NamespaceOf("")) {
			continue
		}
		if call.Write() {
			writing[namespace] = true
		}
		if isRead(call) && writing[namespace] {
			reads++
		}
	}
	return reads
}

// ByKind counts the calls by verb and resource, such as "create secrets" or "patch subpools/status".
func (c Calls) ByKind() map[string]int {
	counts := map[string]int{}
	for _, call := range c {
		kind := call.ObjectRef.Resource
		if kind == "" {
			kind, _, _ = strings.Cut(call.RequestURI, "?")
		}
		if call.ObjectRef.Subresource != "" {
			kind += "/" + call.ObjectRef.Subresource
		}
		counts[call.Verb+" "+kind]++
	}
	return counts
}
