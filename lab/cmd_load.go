package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/example-org/subrelay-operator/lab/internal/node/host"
)

func newLoadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "load ARCHIVE...",
		Short: "Load image archives (docker save, lab image) into the lab's node",
		Args:  cobra.MinimumNArgs(1),
	}
	open := labFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, archives []string) error {
		folder, err := open()
		if err != nil {
			return err
		}
		for _, archive := range archives {
			names, err := host.Load(cmd.Context(), folder, archive)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), "loaded", strings.Join(names, ", ")); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}
