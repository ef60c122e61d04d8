package main

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlags(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "subpool-system")
	t.Setenv("POD_SERVICE_ACCOUNT", "")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"complete":                  {[]string{"--operator-config=c", "--service-account=a"}, ""},
		"verbose":                   {[]string{"--operator-config=c", "--service-account=a", "--zap-log-level=7"}, ""},
		"no configuration":          {[]string{"--service-account=a"}, "--operator-config must be given"},
		"no account":                {[]string{"--operator-config=c"}, "--service-account (or $POD_SERVICE_ACCOUNT) must be given"},
		"CFG-04 bodies in the logs": {[]string{"--operator-config=c", "--service-account=a", "--zap-log-level=8"}, "--zap-log-level must be below 8"},
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
