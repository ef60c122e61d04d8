package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func newKubeconfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the lab's kubeconfig",
		Args:  cobra.NoArgs,
	}
	open := labFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		folder, err := open()
		if err != nil {
			return err
		}
		if _, err := os.Stat(folder.Kubeconfig()); err != nil {
			return fmt.Errorf("lab %s has no kubeconfig: start it with `lab up --name %s`: %w", folder.Name(), folder.Name(), err)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), folder.Kubeconfig())
		return err
	}
	return cmd
}
