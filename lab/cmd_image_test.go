package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/example-org/subrelay-operator/lab/internal/image"
)

func runImage(arguments ...string) (string, error) {
	cmd := newImageCommand()
	var output bytes.Buffer
	cmd.SetOut(&output)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(arguments)
	err := cmd.Execute()
	return output.String(), err
}

func TestImageCommandWritesAnArchive(t *testing.T) {
	folder := t.TempDir()
	program, archive := filepath.Join(folder, "hello"), filepath.Join(folder, "hello.tar")
	require.NoError(t, os.WriteFile(program, []byte("run me"), 0o755))

	output, err := runImage("--tag", "registry.example.invalid/hello:v1", "--output", archive,
		"--file", program+":/hello", "--file", program+":/etc/hello:0640", "--user", "65532",
		"--entrypoint", "/hello", "--entrypoint", "a,b", "--cmd", "--loud", "--env", "A=1,2", "--label", "k=v=w")
	require.NoError(t, err)

	built, err := tarball.ImageFromPath(archive, nil)
	require.NoError(t, err)
	assert.Contains(t, output, archive+": registry.example.invalid/hello:v1 sha256:")
	file, err := built.ConfigFile()
	require.NoError(t, err)
	assert.Equal(t, []string{"/hello", "a,b"}, file.Config.Entrypoint)
	assert.Equal(t, []string{"--loud"}, file.Config.Cmd)
	assert.Equal(t, []string{"A=1,2"}, file.Config.Env)
	assert.Equal(t, map[string]string{"k": "v=w"}, file.Config.Labels)
}

func TestImageCommandRefuses(t *testing.T) {
	cases := map[string]struct {
		arguments []string
		says      string
	}{
		"no tag":        {[]string{"--output", "x.tar"}, `"tag" not set`},
		"no output":     {[]string{"--tag", "registry.example.invalid/x:v1"}, `"output" not set`},
		"a lone file":   {[]string{"--tag", "r.invalid/x:v1", "--output", "x.tar", "--file", "hello"}, "SRC:DST"},
		"a bad label":   {[]string{"--tag", "r.invalid/x:v1", "--output", "x.tar", "--label", "k"}, "NAME=VALUE"},
		"a label twice": {[]string{"--tag", "r.invalid/x:v1", "--output", "x.tar", "--label", "k=1", "--label", "k=2"}, "given twice"},
		"an argument":   {[]string{"--tag", "r.invalid/x:v1", "--output", "x.tar", "hello"}, "unknown command"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			_, err := runImage(c.arguments...)
			require.ErrorContains(t, err, c.says)
			assert.NoFileExists(t, "x.tar")
		})
	}
}

func TestParseFile(t *testing.T) {
	file, err := parseFile("a:/b:4755")
	require.NoError(t, err)
	assert.Equal(t, image.File{Source: "a", Destination: "/b", Mode: 0o4755}, file)
	for _, bad := range []string{"", ":", "a:", ":/b", "a:/b:", "a:/b:rwx", "a:/b:0", "a:/b:0999", "a:/b:17777", "a:/b:-1", "a:/b:644:x"} {
		_, err := parseFile(bad)
		assert.Error(t, err, bad)
	}
}
