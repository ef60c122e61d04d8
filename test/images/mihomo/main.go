// Command mihomo stands in for Mihomo in tests of the operator: a real HTTP
// forward proxy that reads the configuration shipped with the operator and
// honours its rules. ../README.md lists what it keeps and what it leaves out.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

const version = "standin"

func main() {
	home := flag.String("d", os.Getenv("CLASH_HOME_DIR"), "home folder (default: $HOME/.config/mihomo)")
	file := flag.String("f", os.Getenv("CLASH_CONFIG_FILE"), "configuration file (default: config.yaml in the home folder)")
	test := flag.Bool("t", false, "test the configuration and exit")
	showVersion := flag.Bool("v", false, "show the version")
	flag.Parse()

	if *showVersion {
		fmt.Printf("Mihomo Meta %s %s %s with %s\n", version, runtime.GOOS, runtime.GOARCH, runtime.Version())
		return
	}
	if err := start(*home, *file, *test); err != nil {
		fmt.Fprintln(os.Stderr, "mihomo:", err)
		os.Exit(1)
	}
}

func start(homeFlag, fileFlag string, test bool) error {
	paths, err := findPaths(homeFlag, fileFlag)
	if err != nil {
		return err
	}
	if test {
		if _, err := loadConfig(paths); err != nil {
			return err
		}
		fmt.Printf("configuration %s is valid\n", paths.file)
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	return run(ctx, paths, reload, os.Stdout)
}
