package main

import (
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"
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
		// Nothing of the user's own ~/.kube is read or written.
		own := []string{"kubectl", "--kubeconfig=" + folder.Kubeconfig(), "--cache-dir=" + folder.Path("kubectl-cache")}
		environment := append(os.Environ(), "KUBERC=off")
		// Kubectl takes the place of this process, so signals, terminal and exit code are its own.
		if err := syscall.Exec(record.Binaries["kubectl"], append(own, args...), environment); err != nil {
			return fmt.Errorf("run %s: %w", record.Binaries["kubectl"], err)
		}
		return nil
	}
	return cmd
}
