package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/example-org/subrelay-operator/lab/internal/node/host"
	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

func newDownCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the lab and remove everything of it but the cache of programs",
		Args:  cobra.NoArgs,
	}
	open := labFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		folder, err := open()
		if err != nil {
			return err
		}
		return host.Down(cmd.Context(), folder, progress.New(os.Stderr))
	}
	return cmd
}
