package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/fsnotify/fsnotify"
)

// liveConfig is the configuration in force. A changed file replaces it while
// the process runs; host and port take effect at the next start only.
type liveConfig struct {
	path    string
	current atomic.Pointer[config]

	mu       sync.Mutex // held while the file is read or written
	lastRead []byte     // content of the file that current stands for
}

func newLiveConfig(path string) (*liveConfig, error) {
	live := &liveConfig{path: path}
	if err := live.reload(); err != nil {
		return nil, err
	}
	return live, nil
}

func (l *liveConfig) get() *config { return l.current.Load() }

// reload reads the file again unless it is what was read last.
func (l *liveConfig) reload() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reloadLocked()
}

func (l *liveConfig) reloadLocked() error {
	content, err := os.ReadFile(l.path)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	if l.current.Load() != nil && bytes.Equal(content, l.lastRead) {
		return nil
	}
	cfg, content, err := loadConfig(l.path, content)
	if err != nil {
		return err
	}
	l.current.Store(cfg)
	l.lastRead = content
	return nil
}

// replace writes the file in place and puts the new content in force. Of an
// empty file, which the watcher of the real program ignores, only its
// management takes notice: there is no key any more.
func (l *liveConfig) replace(content []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := os.WriteFile(l.path, content, 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	if len(content) == 0 {
		closed := *l.current.Load()
		closed.RemoteManagement.SecretKey = ""
		l.current.Store(&closed)
		l.lastRead = content
		return nil
	}
	return l.reloadLocked()
}

// watch follows the inode of the file, as the real program does: a write is
// noticed, a file renamed over it is not. The returned function ends it.
func (l *liveConfig) watch() (func(), error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch the configuration: %w", err)
	}
	if err := watcher.Add(l.path); err != nil {
		_ = watcher.Close()
		return nil, fmt.Errorf("watch the configuration: %w", err)
	}
	go l.follow(watcher)
	return func() { _ = watcher.Close() }, nil
}

func (l *liveConfig) follow(watcher *fsnotify.Watcher) {
	for {
		select {
		case event, open := <-watcher.Events:
			if !open {
				return
			}
			if event.Has(fsnotify.Write) {
				l.fileWritten()
			}
		case err := <-watcher.Errors:
			if err != nil { // nil: the watcher was closed
				slog.Error("watching the configuration", "error", err)
			}
		}
	}
}

// fileWritten keeps the old configuration when the new content is unusable.
// Empty content is the middle of somebody's truncate and write.
func (l *liveConfig) fileWritten() {
	if info, err := os.Stat(l.path); err != nil || info.Size() == 0 {
		return
	}
	if err := l.reload(); err != nil {
		slog.Error("the changed configuration is not used", "error", err)
		return
	}
	slog.Info("configuration read", "path", l.path)
}
