package subpool_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The panel accepts settings with which cpa does not start, or not where anybody finds it to correct them. Of these the
// line changes at the next start of the Pod and nothing else, whether keys have changed as well or not.
func TestInitializeMakesCPAReachable(t *testing.T) {
	tests := map[string]struct{ good, bad, mended string }{
		"another port":        {"port: 8317\n", "port: 9000 # mine\n", "port: 8317 # mine\n"},
		"port out of range":   {"port: 8317\n", "port: 99999\n", "port: 8317\n"},
		"port begins right":   {"port: 8317\n", "port: 83170\n", "port: 8317\n"},
		"port as text":        {"port: 8317\n", "port: \"8317\"\n", "port: 8317\n"},
		"no number":           {"port: 8317\n", "port:\n", "port: 8317\n"},
		"loopback only":       {"host: \"\"\n", "host: 127.0.0.1\n", "host: \"\"\n"},
		"unknown host":        {"host: \"\"\n", "host: 'nowhere.example.invalid'\n", "host: \"\"\n"},
		"folder of the image": {"auth-dir: \"/CLIProxyAPI/auths\"\n", "auth-dir: auths\n", "auth-dir: \"/CLIProxyAPI/auths\"\n"},
		"home folder": {
			"auth-dir: \"/CLIProxyAPI/auths\"\n", "auth-dir: '~/.cli-proxy-api'\n", "auth-dir: \"/CLIProxyAPI/auths\"\n",
		},
		"folder of like name": {
			"auth-dir: \"/CLIProxyAPI/auths\"\n", "auth-dir: /CLIProxyAPI/auths-2\n", "auth-dir: \"/CLIProxyAPI/auths\"\n",
		},
		"TLS": {
			"debug: false\n",
			"tls:\n  cert: a\n  enable: true # now\n  nested:\n    enable: true\n",
			"tls:\n  cert: a\n  enable: false # now\n  nested:\n    enable: true\n",
		},
	}
	rewritten := read(t, "testdata/initialize/rewritten-by-cpa.yaml")
	inShells(t, imageShells, func(t *testing.T, sh shell) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				with := func(line string) string {
					require.Contains(t, rewritten, test.good)
					return strings.Replace(rewritten, test.good, line, 1)
				}
				p := newPod(t, sh)
				p.mustRun(t)
				p.write(t, p.config(), with(test.bad))
				p.mustRun(t)
				assert.Equal(t, with(test.mended), read(t, p.config()))
				assert.Equal(t, oldInputs.marker(), read(t, p.marker()))

				p.write(t, p.config(), with(test.bad))
				p.setKey(t, "cpa_client_key", "another-client-key")
				p.mustRun(t)
				assert.Equal(t, strings.Replace(with(test.mended), clientKey, "another-client-key", 1), read(t, p.config()))

				tree := p.tree(t)
				p.mustRun(t)
				assert.Equal(t, tree, p.tree(t), "a second run changes nothing, and no copy was set aside")
			})
		}
	})
}
