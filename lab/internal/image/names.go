package image

import (
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Names returns the full names of the images in an archive as "docker save" and "lab image" write it. An archive of
// images without names is an error: nothing could start from them.
func Names(path string) ([]string, error) {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) })
	if err != nil {
		return nil, fmt.Errorf("%s is not an archive as docker save or lab image write it: %w", path, err)
	}
	var names []string
	for _, image := range manifest {
		names = append(names, image.RepoTags...)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s names no image: save it with a name and tag", path)
	}
	return names, nil
}
