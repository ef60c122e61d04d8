package image

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

const reference = "registry.example.invalid/test/hello:v1"

func writeFile(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), mode))
	return path
}

// roundTrip saves the image as an archive and reads it back.
func roundTrip(t *testing.T, spec Spec) v1.Image {
	t.Helper()
	built, err := Build(spec)
	require.NoError(t, err)
	archive := filepath.Join(t.TempDir(), "image.tar")
	require.NoError(t, Write(archive, reference, built))
	tag, err := name.NewTag(reference)
	require.NoError(t, err)
	read, err := tarball.ImageFromPath(archive, &tag)
	require.NoError(t, err)
	return read
}

func TestNames(t *testing.T) {
	built, err := Build(Spec{})
	require.NoError(t, err)
	archive := filepath.Join(t.TempDir(), "image.tar")
	const dashed = "registry.example.invalid/subrelay-standin/cpa-manager:dev"
	require.NoError(t, Write(archive, dashed, built))
	names, err := Names(archive)
	require.NoError(t, err)
	require.Equal(t, []string{dashed}, names)

	_, err = Names(writeFile(t, "text", "no archive", 0o644))
	require.ErrorContains(t, err, "is not an archive")

	// tarball.Write with a digest reference saves an image without a name.
	digest, err := built.Digest()
	require.NoError(t, err)
	unnamed, err := name.NewDigest("registry.example.invalid/x@" + digest.String())
	require.NoError(t, err)
	require.NoError(t, tarball.WriteToFile(archive, unnamed, built))
	_, err = Names(archive)
	require.ErrorContains(t, err, "names no image")
}

// member is what a test looks at in a layer's archive.
type member struct {
	Name     string
	Mode     int64
	Type     byte
	Linkname string
	Content  string
}

func members(t *testing.T, image v1.Image) []member {
	t.Helper()
	layers, err := image.Layers()
	require.NoError(t, err)
	require.Len(t, layers, 1)
	content, err := layers[0].Uncompressed()
	require.NoError(t, err)
	defer content.Close()
	var found []member
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		assert.Equal(t, created, header.ModTime.UTC())
		assert.Zero(t, header.Uid+header.Gid)
		text, err := io.ReadAll(reader)
		require.NoError(t, err)
		found = append(found, member{header.Name, header.Mode, header.Typeflag, header.Linkname, string(text)})
	}
}

func TestImageHoldsTheFiles(t *testing.T) {
	image := roundTrip(t, Spec{
		Files: []File{
			{Source: writeFile(t, "program", "run me", 0o700), Destination: "/usr/bin/hello"},
			{Source: writeFile(t, "settings", "read me", 0o600), Destination: "/etc/hello.conf"},
			{Source: writeFile(t, "key", "secret", 0o666), Destination: "/etc/hello.key", Mode: 0o400},
		},
		Links:      []Link{{Name: "/usr/bin/hi", Target: "hello"}},
		WorkingDir: "/srv/data",
	})
	assert.Equal(t, []member{
		{"etc/", 0o755, tar.TypeDir, "", ""},
		{"etc/hello.conf", 0o644, tar.TypeReg, "", "read me"},
		{"etc/hello.key", 0o400, tar.TypeReg, "", "secret"},
		{"srv/", 0o755, tar.TypeDir, "", ""},
		{"srv/data/", 0o755, tar.TypeDir, "", ""},
		{"usr/", 0o755, tar.TypeDir, "", ""},
		{"usr/bin/", 0o755, tar.TypeDir, "", ""},
		{"usr/bin/hello", 0o755, tar.TypeReg, "", "run me"},
		{"usr/bin/hi", 0o777, tar.TypeSymlink, "hello", ""},
	}, members(t, image))
}

func TestImageSaysHowToStart(t *testing.T) {
	image := roundTrip(t, Spec{
		User:        "65532:65532",
		WorkingDir:  "/srv",
		Entrypoint:  []string{"/hello", "--loud"},
		Command:     []string{"world"},
		Environment: []string{"B=2", "A=with=equals"},
		Labels:      map[string]string{"team": "relay"},
	})
	file, err := image.ConfigFile()
	require.NoError(t, err)
	assert.Equal(t, "linux", file.OS)
	assert.Equal(t, v1.Config{
		User:       "65532:65532",
		WorkingDir: "/srv",
		Entrypoint: []string{"/hello", "--loud"},
		Cmd:        []string{"world"},
		Env:        []string{"B=2", "A=with=equals"},
		Labels:     map[string]string{"team": "relay"},
	}, file.Config)
}

func TestTheSameContentMakesTheSameImage(t *testing.T) {
	digest := func(source string) string {
		built, err := Build(Spec{Files: []File{{Source: source, Destination: "/hello"}}, Labels: map[string]string{"a": "1", "b": "2"}})
		require.NoError(t, err)
		digest, err := built.Digest()
		require.NoError(t, err)
		return digest.String()
	}
	first := writeFile(t, "hello", "run me", 0o755)
	second := writeFile(t, "copy-of-hello", "run me", 0o711)
	long := time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)
	require.NoError(t, os.Chtimes(second, long, long))
	assert.Equal(t, digest(first), digest(second))
	assert.NotEqual(t, digest(first), digest(writeFile(t, "hello", "run me!", 0o755)))
}

func TestBuildRefuses(t *testing.T) {
	hello := writeFile(t, "hello", "run me", 0o755)
	cases := map[string]struct {
		spec Spec
		says string
	}{
		"a missing file":         {Spec{Files: []File{{Source: "/does/not/exist", Destination: "/hello"}}}, "/does/not/exist"},
		"a folder":               {Spec{Files: []File{{Source: t.TempDir(), Destination: "/hello"}}}, "no regular file"},
		"a relative path":        {Spec{Files: []File{{Source: hello, Destination: "hello"}}}, "absolute path"},
		"a path with ..":         {Spec{Files: []File{{Source: hello, Destination: "/a/../hello"}}}, "absolute path"},
		"the root as a file":     {Spec{Files: []File{{Source: hello, Destination: "/"}}}, "path / is taken"},
		"one path twice":         {Spec{Files: []File{{Source: hello, Destination: "/a"}, {Source: hello, Destination: "/a"}}}, "path /a is taken"},
		"a file as a folder":     {Spec{Files: []File{{Source: hello, Destination: "/a"}, {Source: hello, Destination: "/a/b"}}}, "path /a is a file"},
		"a file as workdir":      {Spec{Files: []File{{Source: hello, Destination: "/a"}}, WorkingDir: "/a"}, "path /a is a file"},
		"a relative workdir":     {Spec{WorkingDir: "srv"}, "working directory"},
		"a user name":            {Spec{User: "nobody"}, "in numbers"},
		"a group name":           {Spec{User: "1000:staff"}, "in numbers"},
		"a variable without =":   {Spec{Environment: []string{"HOME"}}, "NAME=VALUE"},
		"a variable set twice":   {Spec{Environment: []string{"A=1", "A=2"}}, "A is set twice"},
		"a variable with no key": {Spec{Environment: []string{"=1"}}, "NAME=VALUE"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Build(c.spec)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestWriteRefusesANameWithoutRegistryOrTag(t *testing.T) {
	built, err := Build(Spec{})
	require.NoError(t, err)
	for _, bad := range []string{"", "hello", "hello:v1", "registry.example.invalid/hello", "registry.example.invalid/Hello:v1"} {
		folder := t.TempDir()
		require.ErrorContains(t, Write(filepath.Join(folder, "image.tar"), bad, built), "REGISTRY/NAME:TAG", bad)
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		assert.Empty(t, entries)
	}
}

func TestWriteReplacesAnOlderArchive(t *testing.T) {
	archive := writeFile(t, "image.tar", "something else", 0o644)
	built, err := Build(Spec{})
	require.NoError(t, err)
	require.NoError(t, Write(archive, reference, built))
	_, err = tarball.ImageFromPath(archive, nil)
	require.NoError(t, err)
	entries, err := os.ReadDir(filepath.Dir(archive))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

func TestBusyboxBringsAShell(t *testing.T) {
	var spec Spec
	require.NoError(t, spec.AddBusybox(t.Context(), progress.Discard))
	image := roundTrip(t, spec)
	assert.Contains(t, members(t, image), member{"bin/sh", 0o777, tar.TypeSymlink, "busybox", ""})
	assert.Contains(t, members(t, image), member{Name: "bin/", Mode: 0o755, Type: tar.TypeDir})
	// A second shell at the same place is a mistake of the caller.
	spec.Files = append(spec.Files, File{Source: writeFile(t, "sh", "", 0o755), Destination: "/bin/sh"})
	_, err := Build(spec)
	require.ErrorContains(t, err, "path /bin/sh is taken")
}

func TestRequireStaticRefusesAProgramWithALoader(t *testing.T) {
	require.ErrorContains(t, requireStatic("/bin/dpkg-query"), "shared libraries")
	require.Error(t, requireStatic(writeFile(t, "script", "#!/bin/sh\n", 0o755)))
}

func TestLabImages(t *testing.T) {
	programs := map[string]string{
		"pause":   writeFile(t, "pause", "wait", 0o755),
		"coredns": writeFile(t, "coredns", "resolve", 0o755),
	}
	archives, err := WriteLabImages(t.Context(), t.TempDir(), programs, progress.Discard)
	require.NoError(t, err)
	require.Len(t, archives, 3)
	for i, reference := range []string{Pause, Busybox, CoreDNS} {
		tag, err := name.NewTag(reference)
		require.NoError(t, err)
		_, err = tarball.ImageFromPath(archives[i], &tag)
		require.NoError(t, err, reference)
	}
}
