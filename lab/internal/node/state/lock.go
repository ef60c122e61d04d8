package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

const lockName = "lock"

// ErrLocked says that a supervisor, or a command that is about to start or remove one, holds the folder.
var ErrLocked = errors.New("the lab is running")

// Lock takes the folder for one running lab and creates it when missing. Whoever inherits the
// returned file holds the lock too, so it stays taken until the last of them has ended, however
// it ended.
func (f Folder) Lock() (*os.File, error) {
	for {
		if err := f.Create(); err != nil {
			return nil, err
		}
		file, err := os.OpenFile(f.Path(lockName), os.O_CREATE|os.O_RDWR, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another command removed the folder just now
		}
		if err != nil {
			return nil, fmt.Errorf("open the lab's lock: %w", err)
		}
		whole := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
		if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &whole); err != nil {
			_ = file.Close()
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
				return nil, ErrLocked
			}
			return nil, fmt.Errorf("lock the lab's state folder: %w", err)
		}
		if f.isLock(file) {
			return file, nil
		}
		_ = file.Close() // another command removed the folder between opening and locking
	}
}

func (f Folder) isLock(file *os.File) bool {
	held, err := file.Stat()
	if err != nil {
		return false
	}
	current, err := os.Stat(f.Path(lockName))
	return err == nil && os.SameFile(held, current)
}

// Running reports whether a process holds the lock. It only looks, so it disturbs nobody who wants the lock.
func (f Folder) Running() (bool, error) {
	file, err := os.Open(f.Path(lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open the lab's lock: %w", err)
	}
	defer func() { _ = file.Close() }()
	whole := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, &whole); err != nil {
		return false, fmt.Errorf("look at the lab's lock: %w", err)
	}
	return whole.Type != unix.F_UNLCK, nil
}
