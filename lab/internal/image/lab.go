package image

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

// References of the images that the lab's own Pods use. They are imported, never pulled.
const (
	Pause   = "registry.example.invalid/lab/pause:lab"
	Busybox = "registry.example.invalid/lab/busybox:lab"
	CoreDNS = "registry.example.invalid/lab/coredns:lab"
)

// nobody is an unprivileged user without a name on any machine.
const nobody = "65532:65532"

// WriteLabImages makes the lab's images and returns the paths of their archives in folder. Programs holds the paths of
// the programs "pause" and "coredns".
func WriteLabImages(
	ctx context.Context, folder string, programs map[string]string, report progress.Reporter,
) (archives []string, err error) {
	busybox := Spec{Command: []string{"/bin/sh"}}
	if err := busybox.AddBusybox(ctx, report); err != nil {
		return nil, err
	}
	done := report.Step("making the lab's images")
	defer func() { done(err) }()
	images := []struct {
		reference, file string
		spec            Spec
	}{
		{Pause, "pause.tar", singleProgram("pause", programs)},
		{Busybox, "busybox.tar", busybox},
		{CoreDNS, "coredns.tar", singleProgram("coredns", programs)},
	}
	for _, i := range images {
		built, err := Build(i.spec)
		if err != nil {
			return nil, fmt.Errorf("make image %s: %w", i.reference, err)
		}
		archive := filepath.Join(folder, i.file)
		if err := Write(archive, i.reference, built); err != nil {
			return nil, fmt.Errorf("make image %s: %w", i.reference, err)
		}
		archives = append(archives, archive)
	}
	return archives, nil
}

func singleProgram(name string, programs map[string]string) Spec {
	return Spec{
		Files:      []File{{Source: programs[name], Destination: "/" + name}},
		User:       nobody,
		Entrypoint: []string{"/" + name},
	}
}
