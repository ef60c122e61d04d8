package main

import (
	"fmt"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/example-org/subrelay-operator/lab/internal/node/kubectl"
)

func newKubectlCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "kubectl -- ARGS...",
		Short:   "Run the lab's own kubectl against it",
		Example: "  lab kubectl -- get pods --all-namespaces",
	}
	open := labFlag(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		folder, err := open()
		if err != nil {
			return err
		}
		record, err := folder.ReadRecord()
		if err != nil {
			return fmt.Errorf("lab %s does not run: start it with `lab up --name %s`: %w", folder.Name(), folder.Name(), err)
		}
		client := kubectl.Client{Program: record.Binaries["kubectl"], Kubeconfig: folder.Kubeconfig(), Cache: folder.KubectlCache()}
		// Kubectl takes the place of this process, so signals, terminal and exit code are its own.
		arguments := append([]string{"kubectl"}, client.Arguments(args...)...)
		if err := syscall.Exec(client.Program, arguments, client.Environment()); err != nil {
			return fmt.Errorf("run %s: %w", client.Program, err)
		}
		return nil
	}
	return cmd
}
