// Package image makes container images from files, without a container engine.
package image

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Spec says what an image holds and how its container starts. Everything belongs to root.
type Spec struct {
	Files []File
	Links []Link
	// User is UID or UID:GID in numbers; empty means root.
	User string
	// WorkingDir is an absolute path; the image holds the folder.
	WorkingDir string
	Entrypoint []string
	Command    []string
	// Environment holds NAME=VALUE.
	Environment []string
	Labels      map[string]string
}

// created stands in for the time of the build: the same input has to make the same image.
var created = time.Unix(0, 0).UTC()

// Build makes an image of one layer. The same spec and file contents make the same image, whatever the names, times and
// owners of the source files are.
func Build(spec Spec) (v1.Image, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	content, err := layerTar(spec)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	// The archive never leaves the machine: compressing it and unpacking it again would only take time.
	layer, err := tarball.LayerFromOpener(open, tarball.WithCompressionLevel(gzip.NoCompression))
	if err != nil {
		return nil, fmt.Errorf("make the image's layer: %w", err)
	}
	image, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "lab image"},
	})
	if err != nil {
		return nil, fmt.Errorf("add the image's layer: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the image's configuration: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Created = v1.Time{Time: created}
	file.Config = v1.Config{
		User:       spec.User,
		WorkingDir: spec.WorkingDir,
		Entrypoint: spec.Entrypoint,
		Cmd:        spec.Command,
		Env:        spec.Environment,
		Labels:     spec.Labels,
	}
	return mutate.ConfigFile(image, file)
}

// Write saves the image as an archive in the layout of "docker save". The archive appears under path only when it is
// complete. Reference is the image's full name with registry and tag.
func Write(path, reference string, image v1.Image) error {
	tag, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("image name %q: %w: write it as REGISTRY/NAME:TAG", reference, err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	if err := tarball.Write(tag, image, temporary); err != nil {
		temporary.Close()
		return fmt.Errorf("write %s: %w", temporary.Name(), err)
	}
	if err := temporary.Close(); err != nil {
		return err
	}
	if err := os.Chmod(temporary.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
