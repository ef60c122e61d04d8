package main

import (
	"github.com/spf13/cobra"

	"github.com/example-org/subrelay-operator/lab/internal/node/host"
	"github.com/example-org/subrelay-operator/lab/internal/node/preflight"
	"github.com/example-org/subrelay-operator/lab/internal/node/supervise"
)

// newSuperviseCommand is the lab's inside; `lab up` starts it.
func newSuperviseCommand() *cobra.Command {
	return &cobra.Command{
		Use:    host.SuperviseVerb + " NAME FOLDER",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return supervise.Run(cmd.Context(), args[0], args[1])
		},
	}
}

// newProbeKernelCommand tries kernel features in namespaces of its own; `lab up` starts it.
func newProbeKernelCommand() *cobra.Command {
	return &cobra.Command{
		Use:    preflight.ProbeVerb,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return preflight.ProbeKernel() },
	}
}

// newCellCommand runs a program in a cell; a lab's supervisor starts it.
func newCellCommand() *cobra.Command {
	return &cobra.Command{
		Use:    supervise.CellVerb + " CELL",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(cmd *cobra.Command, args []string) error { return supervise.RunCell(cmd.Context(), args[0]) },
	}
}
