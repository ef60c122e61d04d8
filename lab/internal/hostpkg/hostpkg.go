// Package hostpkg installs the Debian packages that the lab needs on its machine.
package hostpkg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

// Node returns the packages whose programs the node's components call.
func Node() []string {
	return []string{
		"ipset",    // kube-router: the address sets of a policy
		"iptables", // kube-router, and CNI's portmap
		"mount",    // kubelet: volumes
		"nftables", // kube-proxy
	}
}

// lockFile is held by the lab that installs packages. The kernel gives the lock back when the process dies.
var lockFile = "/run/subrelay-lab-packages.lock"

// Ensure installs those of packages that are missing. On a machine where it cannot, the error names the command to run.
func Ensure(ctx context.Context, packages []string, report progress.Reporter) error {
	wanted := slices.Clone(packages)
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		return fmt.Errorf("dpkg-query is not in PATH: the lab needs a Debian machine, or what these Debian packages hold: %s",
			strings.Join(wanted, " "))
	}
	missing, err := missingOf(ctx, wanted)
	if err != nil || len(missing) == 0 {
		return err
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("the lab needs Debian packages that are missing: run: sudo apt-get install %s", strings.Join(missing, " "))
	}
	done := report.Step("installing Debian packages " + strings.Join(missing, " "))
	err = installAlone(ctx, missing)
	done(err)
	return err
}

// installAlone installs what is still missing when no other lab installs anything. apt-get does not wait for the lock
// under which another one updates its lists.
func installAlone(ctx context.Context, packages []string) error {
	lock := flock.New(lockFile)
	if _, err := lock.TryLockContext(ctx, 200*time.Millisecond); err != nil {
		return fmt.Errorf("lock %s: %w", lockFile, err)
	}
	defer func() { _ = lock.Unlock() }()
	missing, err := missingOf(ctx, packages)
	if err != nil || len(missing) == 0 {
		return err
	}
	return install(ctx, missing)
}

func missingOf(ctx context.Context, wanted []string) ([]string, error) {
	arguments := append([]string{"--show", "--showformat", `${Package} ${db:Status-Status}\n`}, wanted...)
	output, err := exec.CommandContext(ctx, "dpkg-query", arguments...).Output()
	// dpkg-query exits with 1 when it knows nothing about one of the packages; its output is good all the same.
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return nil, fmt.Errorf("ask dpkg-query for installed packages: %w", err)
	}
	return notInstalled(wanted, string(output)), nil
}

// notInstalled returns the wanted packages of which statuses, lines of "PACKAGE STATUS", does not say "installed".
func notInstalled(wanted []string, statuses string) []string {
	installed := map[string]bool{}
	for line := range strings.Lines(statuses) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[1] == "installed" {
			installed[fields[0]] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return installed[name] })
}

func install(ctx context.Context, packages []string) error {
	if err := aptGet(ctx, "update"); err != nil {
		return err
	}
	// Nothing that is installed is given up for the lab: apt-get fails instead, and a person decides.
	// Something else on the machine may be installing: apt-get waits for it for these seconds.
	options := []string{"-o", "DPkg::Lock::Timeout=300", "--yes", "--no-install-recommends", "--no-remove"}
	return aptGet(ctx, slices.Concat([]string{"install"}, options, packages)...)
}

func aptGet(ctx context.Context, arguments ...string) error {
	command := exec.CommandContext(ctx, "apt-get", arguments...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	// Killed outright, apt-get would leave dpkg's database locked or half configured.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: run it by hand and see what it says; its output ended with:\n%s",
			strings.Join(command.Args, " "), err, lastLines(string(output), 10))
	}
	return nil
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}
