package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/example-org/subrelay-operator/lab/internal/build"
	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

func newBuildCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "build [COMPONENT...]",
		Short: "Build what the cache does not hold (up does it by itself)",
		Long: "Build the named components, or all of them, into the cache, and print the path of each program.\n" +
			"What the cache holds already is not built again.",
		RunE: func(cmd *cobra.Command, names []string) error {
			dirs, err := build.FindDirs()
			if err != nil {
				return err
			}
			programs, err := build.Ensure(cmd.Context(), dirs, names, progress.New(os.Stderr))
			if err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(programs)) {
				fmt.Fprintf(cmd.OutOrStdout(), "%s\t%s\n", name, programs[name])
			}
			return nil
		},
	}
}
