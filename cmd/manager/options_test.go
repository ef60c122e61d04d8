package main

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlags(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "subpool-system")
	t.Setenv("POD_SERVICE_ACCOUNT", "")
	complete := []string{"--operator-config=c", "--service-account=a"}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"complete":                  {complete, ""},
		"verbose":                   {append(complete, "--zap-log-level=7"), ""},
		"no configuration":          {[]string{"--service-account=a"}, "--operator-config must be given"},
		"no account":                {[]string{"--operator-config=c"}, "--service-account (or $POD_SERVICE_ACCOUNT) must be given"},
		"CFG-04 bodies in the logs": {append(complete, "--zap-log-level=8"), "--zap-log-level must be below 8"},

		"profiling":                    {append(complete, "--pprof-bind-address=127.0.0.1:6060"), ""},
		"profiling on IPv6":            {append(complete, "--pprof-bind-address=[::1]:6060"), ""},
		"profiling for everybody":      {append(complete, "--pprof-bind-address=:6060"), "--pprof-bind-address is \":6060\": it must be"},
		"profiling on another address": {append(complete, "--pprof-bind-address=10.0.0.1:6060"), "must be an IP address of the loopback"},

		"patient election": {append(complete, "--leader-elect-lease-duration=1m", "--leader-elect-renew-deadline=40s",
			"--leader-elect-retry-period=2s"), ""},
		"retry too often": {append(complete, "--leader-elect-retry-period=10ms"),
			"--leader-elect-retry-period is 10ms: it must be at least 100ms"},
		"one attempt": {append(complete, "--leader-elect-retry-period=6s"),
			"--leader-elect-renew-deadline is 10s: it must be at least twice --leader-elect-retry-period (6s)"},
		"two leaders": {append(complete, "--leader-elect-renew-deadline=15s"),
			"--leader-elect-lease-duration is 15s: it must be longer than --leader-elect-renew-deadline (15s)"},
		"part of a second": {append(complete, "--leader-elect-lease-duration=15500ms"),
			"--leader-elect-lease-duration is 15.5s: a Lease counts whole seconds"},
		"backwards": {append(complete, "--leader-elect-lease-duration=-5s"),
			"--leader-elect-lease-duration is -5s: it must be longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			err := parseFlags(flag.NewFlagSet("manager", flag.ContinueOnError), c.args).validate()
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}
