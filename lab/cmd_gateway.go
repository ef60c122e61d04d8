package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/example-org/subrelay-operator/lab/internal/node/gateway"
	"github.com/example-org/subrelay-operator/lab/internal/node/host"
	"github.com/example-org/subrelay-operator/lab/internal/node/state"
	"github.com/example-org/subrelay-operator/lab/internal/progress"
)

func newGatewayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Run Envoy Gateway's controller beside the cluster",
	}
	crds := &cobra.Command{
		Use:   "crds",
		Short: "Handle the definitions of the Gateway API and of Envoy Gateway's own kinds alone",
	}
	crds.AddCommand(
		gatewayVerb("install", "Bring the definitions to the cluster", func(cmd *cobra.Command, g *host.Gateway) error {
			return g.InstallDefinitions(cmd.Context())
		}),
		gatewayVerb("remove", "Remove the definitions, and every object of their kinds", func(cmd *cobra.Command, g *host.Gateway) error {
			return g.RemoveDefinitions(cmd.Context())
		}),
		newPrintDefinitionsCommand(),
	)
	cmd.AddCommand(
		newGatewayUpCommand(),
		gatewayVerb("down", "End the controller and remove its namespace; definitions and Gateways stay",
			func(cmd *cobra.Command, g *host.Gateway) error { return g.Down(cmd.Context()) }),
		crds,
	)
	return cmd
}

func newGatewayUpCommand() *cobra.Command {
	var text string
	var layout gateway.Layout
	cmd := gatewayVerb("up", "Install the definitions, start the controller and wait until it judges objects",
		func(cmd *cobra.Command, g *host.Gateway) error { return g.Up(cmd.Context(), layout) })
	cmd.Flags().StringVar(&text, "layout", string(gateway.ControllerNamespace),
		fmt.Sprintf("where data planes go, one of %v; another one than the present restarts the controller", gateway.Layouts()))
	cmd.PreRunE = func(*cobra.Command, []string) (err error) {
		layout, err = gateway.ParseLayout(text)
		return err
	}
	return cmd
}

func newPrintDefinitionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "print",
		Short: "Print the definitions as YAML",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			definitions, err := host.GatewayDefinitions(cmd.Context(), progress.New(os.Stderr))
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(definitions)
			return err
		},
	}
}

// gatewayVerb is a command that works with Envoy Gateway in one lab.
func gatewayVerb(use, short string, work func(*cobra.Command, *host.Gateway) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
	open := labFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		folder, err := open()
		if err != nil {
			return err
		}
		return withGateway(cmd, folder, work)
	}
	return cmd
}

func withGateway(cmd *cobra.Command, folder state.Folder, work func(*cobra.Command, *host.Gateway) error) error {
	opened, err := host.OpenGateway(cmd.Context(), folder, progress.New(os.Stderr))
	if err != nil {
		return err
	}
	return work(cmd, opened)
}
