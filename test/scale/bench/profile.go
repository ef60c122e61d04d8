package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

const (
	// profileLeast is the shortest profile of CPU time. A longer one is made of a wave of more than profileRate pools per second
	// of it: it ends before a slow wave does, and is not much longer than a fast one.
	profileLeast = 5 * time.Second
	profileRate  = 20
)

// profiler saves profiles of the operator.
type profiler struct {
	address string
	folder  string
	pools   int
}

func newProfiler(folder string, pools int) (*profiler, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of --profile: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("look for a free port: %w", err)
	}
	return &profiler{address: listener.Addr().String(), folder: folder, pools: pools}, listener.Close()
}

// begin starts the profile of CPU time. The function that it returns ends the profiles.
func (p *profiler) begin(ctx context.Context) func() error {
	seconds := max(profileLeast, time.Duration(p.pools)*time.Second/profileRate).Seconds()
	ended := make(chan error, 1)
	go func() { ended <- p.save(ctx, fmt.Sprintf("profile?seconds=%.0f", seconds), "cpu") }()
	return func() error {
		if err := <-ended; err != nil {
			return err
		}
		// With gc=1 it is what is in use after a collection of garbage.
		return p.save(ctx, "heap?gc=1", "heap")
	}
}

func (p *profiler) save(ctx context.Context, endpoint, name string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/debug/pprof/"+endpoint, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask the operator for a profile: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask the operator for a profile: it answers %s", response.Status)
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read a profile: %w", err)
	}
	path := filepath.Join(p.folder, fmt.Sprintf("%s-%d.pprof", name, p.pools))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("save a profile: %w", err)
	}
	return nil
}
