// Command lab runs a real single-node Kubernetes cluster on one machine, without Docker.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/example-org/subrelay-operator/lab/internal/node/state"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "lab",
		Short:         "A real single-node Kubernetes cluster on one machine, without Docker",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(
		newUpCommand(), newDownCommand(), newStatusCommand(), newLogsCommand(), newRestartCommand(),
		newKubeconfigCommand(), newKubectlCommand(), newLoadCommand(), newImageCommand(), newBuildCommand(),
		newGatewayCommand(),
		newSuperviseCommand(), newCellCommand(), newProbeKernelCommand(),
	)
	return root
}

// labFlag adds --name and returns a function that opens the folder of the lab it names.
func labFlag(cmd *cobra.Command) func() (state.Folder, error) {
	name := cmd.Flags().String("name", state.DefaultName, "name of the lab; labs of different names run side by side")
	return func() (state.Folder, error) { return state.Open(*name) }
}
