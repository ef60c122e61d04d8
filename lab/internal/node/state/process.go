package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Process names a process so that a later one with the same number is not taken for it.
type Process struct {
	PID int `json:"pid"`
	// StartTicks is the time the process started, in clock ticks since boot (proc(5), stat field 22).
	StartTicks uint64 `json:"startTicks"`
}

// Self returns the calling process under the number that the mounted /proc knows it by. In a new
// PID namespace with the old /proc that is the number on the host.
func Self() (Process, error) {
	link, err := os.Readlink("/proc/self")
	if err != nil {
		return Process{}, fmt.Errorf("find out the own process: %w", err)
	}
	pid, err := strconv.Atoi(link)
	if err != nil {
		return Process{}, fmt.Errorf("find out the own process: %w", err)
	}
	stat, err := readStat(pid)
	if err != nil {
		return Process{}, fmt.Errorf("find out the own process: %w", err)
	}
	return Process{PID: pid, StartTicks: stat.startTicks}, nil
}

// Alive reports whether the process still runs. A zombie does not.
func (p Process) Alive() bool {
	stat, err := readStat(p.PID)
	return err == nil && stat.startTicks == p.StartTicks && stat.state != "Z" && stat.state != "X"
}

// Signal sends a signal; a process that has ended is no error.
func (p Process) Signal(signal unix.Signal) error {
	// The descriptor pins the process, so that the number cannot pass to another one in between.
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", p.PID, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if !p.Alive() {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	return nil
}

type processStat struct {
	state      string
	startTicks uint64
}

func readStat(pid int) (processStat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processStat{}, err
	}
	return parseStat(string(data))
}

// parseStat reads proc(5) stat. The command name comes second, in parentheses, and may itself hold
// spaces and parentheses, so counting begins behind the last one.
func parseStat(line string) (processStat, error) {
	const stateField, startField = 0, 19
	end := strings.LastIndexByte(line, ')')
	if end < 0 {
		return processStat{}, fs.ErrInvalid
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) <= startField {
		return processStat{}, fs.ErrInvalid
	}
	ticks, err := strconv.ParseUint(fields[startField], 10, 64)
	if err != nil {
		return processStat{}, err
	}
	return processStat{state: fields[stateField], startTicks: ticks}, nil
}
