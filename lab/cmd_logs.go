package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/example-org/subrelay-operator/lab/internal/node/state"
)

func newLogsCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs COMPONENT",
		Short: "Print the log of one of the lab's components",
		Args:  cobra.ExactArgs(1),
	}
	open := labFlag(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing what is added, until interrupted")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		folder, err := open()
		if err != nil {
			return err
		}
		path, err := findLog(folder, args[0])
		if err != nil {
			return err
		}
		arguments := []string{"--lines=+1", path}
		if follow {
			arguments = append([]string{"--follow=name"}, arguments...)
		}
		tail := exec.CommandContext(cmd.Context(), "tail", arguments...)
		tail.Stdout, tail.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
		if err := tail.Run(); err != nil && cmd.Context().Err() == nil {
			return err
		}
		return nil
	}
	return cmd
}

// findLog returns the path of a component's log; the error names the components that have one.
func findLog(folder state.Folder, component string) (string, error) {
	logs, err := os.ReadDir(folder.Logs())
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("lab %s has no logs: start it with `lab up --name %s`", folder.Name(), folder.Name())
	}
	if err != nil {
		return "", fmt.Errorf("look for logs: %w", err)
	}
	var components []string
	for _, log := range logs {
		name := strings.TrimSuffix(log.Name(), filepath.Ext(log.Name()))
		if name == component {
			return folder.Log(component), nil
		}
		components = append(components, name)
	}
	return "", fmt.Errorf("component %q has no log; these have: %s", component, strings.Join(components, ", "))
}
