package main

import (
	"github.com/spf13/cobra"

	"github.com/example-org/subrelay-operator/lab/internal/node/host"
)

func newRestartCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restart COMPONENT",
		Short: "End one of the lab's components, which starts again at once",
		Args:  cobra.ExactArgs(1),
	}
	open := labFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		folder, err := open()
		if err != nil {
			return err
		}
		return host.Restart(cmd.Context(), folder, args[0])
	}
	return cmd
}
