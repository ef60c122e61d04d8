package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/example-org/subrelay-operator/lab/internal/node/control"
	"github.com/example-org/subrelay-operator/lab/internal/node/host"
	"github.com/example-org/subrelay-operator/lab/internal/node/process"
	"github.com/example-org/subrelay-operator/lab/internal/node/state"
)

var errUnwell = errors.New("not everything works")

func newStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the lab's components and node; exit code 1 when something is wrong",
		Args:  cobra.NoArgs,
	}
	open := labFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		folder, err := open()
		if err != nil {
			return err
		}
		record, status, err := host.Status(cmd.Context(), folder)
		if err != nil {
			return err
		}
		well, err := printStatus(cmd.OutOrStdout(), folder, record, status)
		if err != nil {
			return err
		}
		if !well {
			return errUnwell
		}
		return nil
	}
	return cmd
}

// printStatus shows a lab's status and reports whether everything in it works.
func printStatus(out io.Writer, folder state.Folder, record state.Record, status control.Status) (well bool, err error) {
	well = status.Ready
	summary := "ready"
	switch {
	case status.Failure != "":
		summary = "did not become ready: " + status.Failure
	case !status.Ready:
		summary = "starting"
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(table, "lab\t%s (%s): %s\n", folder.Name(), record.Mode, summary)
	_, _ = fmt.Fprintf(table, "API server\thttps://127.0.0.1:%d, kubeconfig %s\n", record.Port, folder.Kubeconfig())
	if node := status.Node; node != nil {
		well = well && node.Ready
		_, _ = fmt.Fprintf(table, "node\t%s: %s\n", node.Name, describeNode(*node))
	}
	_, _ = fmt.Fprint(table, "\nCOMPONENT\tSTATE\tFOR\tPID\tRESTARTS\tLAST EXIT\n")
	for _, component := range status.Components {
		well = well && component.State == process.Running
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%s\n", component.Name, component.State,
			time.Since(component.Since).Round(time.Second), component.PID, component.Restarts, component.LastExit)
	}
	return well, table.Flush()
}

func describeNode(node control.Node) string {
	if node.Ready {
		return "Ready"
	}
	return "not Ready: " + node.Message
}
