package image

import (
	"context"
	"debug/elf"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/example-org/subrelay-operator/lab/internal/hostpkg"
	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

// AddBusybox adds Debian's static busybox as /bin/busybox and a link in /bin for each of its applets.
func (s *Spec) AddBusybox(ctx context.Context, report progress.Reporter) error {
	if err := hostpkg.Ensure(ctx, []string{"busybox-static"}, report); err != nil {
		return err
	}
	program, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("find busybox: %w: is the package busybox-static complete?", err)
	}
	if err := requireStatic(program); err != nil {
		return err
	}
	applets, err := exec.CommandContext(ctx, program, "--list").Output()
	if err != nil {
		return fmt.Errorf("ask %s for its applets: %w", program, err)
	}
	s.Files = append(s.Files, File{Source: program, Destination: "/bin/busybox"})
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet != "busybox" {
			s.Links = append(s.Links, Link{Name: "/bin/" + applet, Target: "busybox"})
		}
	}
	return nil
}

// requireStatic refuses a program that would need a loader and libraries, which an image of ours does not have.
func requireStatic(program string) error {
	file, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("read %s: %w", program, err)
	}
	defer file.Close()
	dynamic := slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	if dynamic {
		return fmt.Errorf("%s needs shared libraries: put the one of the Debian package busybox-static first in PATH", program)
	}
	return nil
}
