package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// File is a regular file of an image.
type File struct {
	// Source is the file on this machine.
	Source string
	// Destination is its absolute path in the image. Missing parent folders are made with mode 0755.
	Destination string
	// Mode holds permission bits and setuid, setgid and sticky as in chmod's octal numbers. 0 takes 0755 for a source
	// that its owner may execute and else 0644, so that the machine's umask does not matter.
	Mode int64
}

// Link is a symbolic link of an image.
type Link struct {
	// Name is the absolute path in the image.
	Name string
	// Target is what the link says.
	Target string
}

const (
	folderMode     = 0o755
	executableMode = 0o755
	plainMode      = 0o644
	linkMode       = 0o777
)

// entry is one member of the layer's archive.
type entry struct {
	header  tar.Header
	content []byte
}

// layerTar returns the layer as an uncompressed archive, sorted by name.
func layerTar(spec Spec) ([]byte, error) {
	entries, err := layerEntries(spec)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	// A folder's name is a prefix of what it holds, so it comes first.
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		e.header.Name = strings.TrimPrefix(name, "/")
		e.header.Size = int64(len(e.content))
		e.header.ModTime = created
		if e.header.Typeflag == tar.TypeDir {
			e.header.Name += "/"
		}
		if err := writer.WriteHeader(&e.header); err != nil {
			return nil, fmt.Errorf("archive %s: %w", name, err)
		}
		if _, err := writer.Write(e.content); err != nil {
			return nil, fmt.Errorf("archive %s: %w", name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("archive the layer: %w", err)
	}
	return archive.Bytes(), nil
}

// layerEntries collects the layer's members by absolute path.
func layerEntries(spec Spec) (map[string]entry, error) {
	entries := map[string]entry{}
	add := func(name string, e entry) error {
		if err := validPath(name); err != nil {
			return err
		}
		if _, taken := entries[name]; taken || name == "/" {
			return fmt.Errorf("path %s is taken: give each file a path of its own", name)
		}
		entries[name] = e
		return nil
	}
	for _, link := range spec.Links {
		e := entry{header: tar.Header{Typeflag: tar.TypeSymlink, Linkname: link.Target, Mode: linkMode}}
		if err := add(link.Name, e); err != nil {
			return nil, err
		}
	}
	for _, file := range spec.Files {
		e, err := file.read()
		if err != nil {
			return nil, err
		}
		if err := add(file.Destination, e); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Collect(maps.Keys(entries)) {
		if err := addFolders(entries, path.Dir(name)); err != nil {
			return nil, err
		}
	}
	if spec.WorkingDir != "" {
		return entries, addFolders(entries, spec.WorkingDir)
	}
	return entries, nil
}

// addFolders adds folder and those above it.
func addFolders(entries map[string]entry, folder string) error {
	for ; folder != "/"; folder = path.Dir(folder) {
		if e, taken := entries[folder]; taken && e.header.Typeflag != tar.TypeDir {
			return fmt.Errorf("path %s is a file and is needed as a folder", folder)
		}
		entries[folder] = entry{header: tar.Header{Typeflag: tar.TypeDir, Mode: folderMode}}
	}
	return nil
}

func (f File) read() (entry, error) {
	info, err := os.Stat(f.Source)
	if err != nil {
		return entry{}, fmt.Errorf("file for the image: %w", err)
	}
	if !info.Mode().IsRegular() {
		return entry{}, fmt.Errorf("file for the image: %s is no regular file: name its files one by one", f.Source)
	}
	content, err := os.ReadFile(f.Source)
	if err != nil {
		return entry{}, fmt.Errorf("file for the image: %w", err)
	}
	return entry{header: tar.Header{Typeflag: tar.TypeReg, Mode: f.mode(info.Mode())}, content: content}, nil
}

func (f File) mode(source fs.FileMode) int64 {
	const ownerMayExecute = 0o100
	switch {
	case f.Mode != 0:
		return f.Mode
	case source&ownerMayExecute != 0:
		return executableMode
	default:
		return plainMode
	}
}
