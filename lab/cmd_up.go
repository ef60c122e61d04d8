package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/example-org/subrelay-operator/lab/internal/node/host"
	"github.com/example-org/subrelay-operator/lab/internal/node/state"
	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

func newUpCommand() *cobra.Command {
	var controlPlaneOnly bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the lab and wait until it is ready",
		Long: "Start the lab and wait until it is ready. What is missing is built first, which takes minutes once.\n" +
			"A lab that runs already is left as it is. Interrupted, the command takes the lab down again.",
		Args: cobra.NoArgs,
	}
	open := labFlag(cmd)
	cmd.Flags().BoolVar(&controlPlaneOnly, "control-plane-only", false,
		"only etcd, the API server and the controller manager; needs no root and takes ready-made programs from KUBEBUILDER_ASSETS")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		folder, err := open()
		if err != nil {
			return err
		}
		mode := state.FullNode
		if controlPlaneOnly {
			mode = state.ControlPlaneOnly
		}
		already, err := host.Up(cmd.Context(), folder, mode, progress.New(os.Stderr))
		if err != nil {
			return err
		}
		record, err := folder.ReadRecord()
		if err != nil {
			return err
		}
		verb := "is ready"
		if already {
			verb = "was ready already"
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "Lab %s %s: https://127.0.0.1:%d\nexport KUBECONFIG=%s\n",
			folder.Name(), verb, record.Port, folder.Kubeconfig())
		return err
	}
	return cmd
}
