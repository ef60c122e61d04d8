package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/example-org/subrelay-operator/lab/internal/image"
	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

// imageOptions are the flags of "lab image".
type imageOptions struct {
	tag, output string
	files       []string
	labels      []string
	busybox     bool
	spec        image.Spec
}

func newImageCommand() *cobra.Command {
	var options imageOptions
	cmd := &cobra.Command{
		Use:   "image --tag REF --output FILE.tar",
		Short: "Make an image archive from files, without a container engine",
		Long: "Make an image of one layer from files of this machine and save it as an archive that \"lab load\" takes.\n" +
			"The same input makes the same image. Everything in it belongs to root.",
		Example: "  lab image --tag registry.example.invalid/hello:v1 --output hello.tar \\\n" +
			"    --file ./hello:/hello --user 65532:65532 --entrypoint /hello",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			digest, err := options.write(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s %s\n", options.output, options.tag, digest)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.tag, "tag", "", "the image's full name: REGISTRY/NAME:TAG")
	flags.StringVar(&options.output, "output", "", "the archive to write")
	flags.StringArrayVar(&options.files, "file", nil, "a file as SRC:DST or SRC:DST:MODE with MODE in octal; repeatable")
	flags.BoolVar(&options.busybox, "busybox", false, "add Debian's static busybox and a link in /bin for each applet")
	flags.StringVar(&options.spec.User, "user", "", "who runs the container, in numbers: UID or UID:GID")
	flags.StringVar(&options.spec.WorkingDir, "workdir", "", "where the container starts")
	flags.StringArrayVar(&options.spec.Entrypoint, "entrypoint", nil, "one word of the entrypoint; repeatable")
	flags.StringArrayVar(&options.spec.Command, "cmd", nil, "one word of the default arguments; repeatable")
	flags.StringArrayVar(&options.spec.Environment, "env", nil, "an environment variable as NAME=VALUE; repeatable")
	flags.StringArrayVar(&options.labels, "label", nil, "a label as NAME=VALUE; repeatable")
	for _, required := range []string{"tag", "output"} {
		cobra.CheckErr(cmd.MarkFlagRequired(required))
	}
	return cmd
}

// write makes the archive and returns the image's digest.
func (o imageOptions) write(ctx context.Context) (string, error) {
	spec := o.spec
	for _, text := range o.files {
		file, err := parseFile(text)
		if err != nil {
			return "", err
		}
		spec.Files = append(spec.Files, file)
	}
	labels, err := parseLabels(o.labels)
	if err != nil {
		return "", err
	}
	spec.Labels = labels
	if o.busybox {
		if err := spec.AddBusybox(ctx, progress.New(os.Stderr)); err != nil {
			return "", err
		}
	}
	built, err := image.Build(spec)
	if err != nil {
		return "", err
	}
	if err := image.Write(o.output, o.tag, built); err != nil {
		return "", err
	}
	digest, err := built.Digest()
	return digest.String(), err
}

// parseFile reads SRC:DST[:MODE].
func parseFile(text string) (image.File, error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" {
		return image.File{}, fmt.Errorf("--file %q: write SRC:DST or SRC:DST:MODE; paths cannot hold a colon", text)
	}
	file := image.File{Source: parts[0], Destination: parts[1]}
	if len(parts) == 3 {
		mode, err := strconv.ParseInt(parts[2], 8, 64)
		if err != nil || mode < 1 || mode > 0o7777 {
			return image.File{}, fmt.Errorf("--file %q: mode %q: write an octal number from 1 to 7777, like 0644", text, parts[2])
		}
		file.Mode = mode
	}
	return file, nil
}

func parseLabels(texts []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, text := range texts {
		key, value, found := strings.Cut(text, "=")
		if !found || key == "" {
			return nil, fmt.Errorf("--label %q: write NAME=VALUE", text)
		}
		if _, taken := labels[key]; taken {
			return nil, fmt.Errorf("--label %s is given twice", key)
		}
		labels[key] = value
	}
	return labels, nil
}
