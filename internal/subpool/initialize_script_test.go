package subpool_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInitializeFirstRun(t *testing.T) {
	inShells(t, allShells, func(t *testing.T, sh shell) {
		p := newPod(t, sh)
		r := p.mustRun(t)
		assert.Contains(t, r.stdout, p.config())

		golden := read(t, "testdata/initialize/config.yaml")
		directory := "dgrwx------" // the volume hands its group down
		assert.Equal(t, []string{
			`. dgrwxrwxr-x ""`,
			`cpa ` + directory + ` ""`,
			fmt.Sprintf("cpa/.subrelay-inputs -rw------- %q", oldInputs.marker()),
			`cpa/auths ` + directory + ` ""`,
			fmt.Sprintf("cpa/config.yaml -rw------- %q", golden),
			`cpa/logs ` + directory + ` ""`,
			`cpa/plugins ` + directory + ` ""`,
			`cpa-manager ` + directory + ` ""`,
		}, p.tree(t))
		p.requireUsable(t)
		assert.Equal(t, proxyURL, parseConfig(t, golden).ProxyURL)
	})
}

func TestInitializeSecondRunChangesNothing(t *testing.T) {
	inShells(t, allShells, func(t *testing.T, sh shell) {
		p := newPod(t, sh)
		p.mustRun(t)
		p.write(t, filepath.Join(p.data, "cpa", "auths", "account.json"), "{}")
		tree, times := p.tree(t), p.times(t)

		r := p.mustRun(t)
		assert.Empty(t, r.stdout)
		assert.Equal(t, tree, p.tree(t))
		assert.Equal(t, times, p.times(t))
	})
}

// A usable configuration is not touched as long as the inputs stay the same, whatever else is in it and however it is written.
func TestInitializeKeepsUsableConfig(t *testing.T) {
	golden := read(t, "testdata/initialize/config.yaml")
	tests := map[string]string{
		"rewritten by cpa":      read(t, "testdata/initialize/rewritten-by-cpa.yaml"),
		"edited by a user":      read(t, "testdata/initialize/edited-by-user.yaml"),
		"no final newline":      strings.TrimSuffix(golden, "\n"),
		"ends with a comment":   golden + "# the end",
		"ends with a boolean":   golden + "force-model-prefix: false",
		"Windows line ends":     strings.ReplaceAll(golden, "\n", "\r\n"),
		"other keys":            strings.ReplaceAll(golden, clientKey, "somebody-elses-key"),
		"keys in one line":      strings.Replace(golden, "api-keys:\n  - '"+clientKey+"'", `api-keys: ["one", "two"]`, 1),
		"list without indent":   strings.Replace(golden, "  - '"+clientKey+"'", "- "+clientKey, 1),
		"example in a comment":  strings.Replace(golden, "api-keys:\n", "api-keys:\n  # - your-api-key-1\n", 1),
		"key of a single quote": strings.Replace(golden, clientKey, "''", 1),
		"key like a comment":    strings.Replace(golden, clientKey, "# key", 1),
		"another way to auths":  strings.Replace(golden, "/CLIProxyAPI/auths", "/cpa/auths", 1),
		"explicit address":      strings.Replace(golden, `host: ""`, `host: '0.0.0.0' # all`, 1),
		"no address":            strings.Replace(golden, "host: \"\"\n", "", 1),
		"TLS off":               golden + "tls:\n  enable: false\n  cert: \"\"\nother:\n  enable: true\n",
		"plain auth-dir":        strings.Replace(golden, `"/CLIProxyAPI/auths"`, "/CLIProxyAPI/auths # all accounts", 1),
	}
	inShells(t, allShells, func(t *testing.T, sh shell) {
		for name, config := range tests {
			t.Run(name, func(t *testing.T) {
				parseConfig(t, config)
				p := newPod(t, sh)
				p.mustRun(t)
				p.write(t, p.config(), config)
				tree, times := p.tree(t), p.times(t)

				p.mustRun(t)
				assert.Equal(t, tree, p.tree(t))
				assert.Equal(t, times, p.times(t))
			})
		}
	})
}

func TestInitializeReplacesUnusableConfig(t *testing.T) {
	golden := read(t, "testdata/initialize/config.yaml")
	without := func(line string) string {
		require.Contains(t, golden, line)
		return strings.Replace(golden, line, "", 1)
	}
	tests := map[string]struct{ config, problem string }{
		"empty":                 {"", "has no port"},
		"blank":                 {" \n\t\n\n", "has no port"},
		"a list":                {"- port\n- auth-dir\n", "has no port"},
		"a word":                {"config", "has no port"},
		"NUL bytes at the end":  {golden + "\x00\x00\x00", "has NUL bytes"},
		"nothing but NUL bytes": {strings.Repeat("\x00", len(golden)), "has NUL bytes"},
		"example of cpa":        {read(t, "testdata/initialize/example-of-cpa.yaml"), "has an example key in api-keys"},
		"example key in a line": {
			strings.Replace(golden, "\n  - '"+clientKey+"'", ` ["a","your-api-key-2"]`, 1), "has an example key in api-keys",
		},
		"TLS in one line": {
			golden + "tls: {cert: a, enable: true}\n", "has a setting that has to change but is not written on a line of its own",
		},
		"no port":          {without("port: 8317\n"), "has no port"},
		"no auth-dir":      {without("auth-dir: \"/CLIProxyAPI/auths\"\n"), "has no auth-dir"},
		"empty auth-dir":   {strings.Replace(golden, "/CLIProxyAPI/auths", "", 1), "has no auth-dir"},
		"no secret-key":    {without("  secret-key: '" + managementKey + "'\n"), "has no secret-key"},
		"empty secret-key": {strings.Replace(golden, managementKey, "", 1), "has no secret-key"},
		"secret-key elsewhere": {
			without("  secret-key: '"+managementKey+"'\n") + "other:\n  secret-key: a\n", "has no secret-key",
		},
		"no api-keys":         {without("api-keys:\n  - '" + clientKey + "'\n"), "has no api-keys"},
		"no key in api-keys":  {without("  - '" + clientKey + "'\n"), "has no api-keys"},
		"empty list of keys":  {strings.Replace(golden, "\n  - '"+clientKey+"'", " []", 1), "has no api-keys"},
		"empty key":           {strings.Replace(golden, clientKey, "", 1), "has no api-keys"},
		"blank key":           {strings.Replace(golden, clientKey, "  ", 1), "has no api-keys"},
		"key commented out":   {strings.Replace(golden, "  - ", "  # - ", 1), "has no api-keys"},
		"cut within a key":    {golden + "usage-stat", "ends within a line"},
		"cut within a string": {golden + "note: 'it''", "ends within a line"},
		"cut within a time":   {golden + "keep-alive: 3", "ends within a line"}, // 30s
		"cut within a path": {
			strings.Replace(golden, `"/CLIProxyAPI/auths"`+"\n", "/CLIProxyAPI/au", 1), "ends within a line",
		},
		"cut within a boolean": {golden + "force-model-prefix: fals", "ends within a line"},
	}
	inShells(t, allShells, func(t *testing.T, sh shell) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				p := newPod(t, sh)
				p.write(t, p.config(), test.config)

				r := p.mustRun(t)
				assert.Contains(t, r.stdout, test.problem)
				assert.Equal(t, golden, read(t, p.config()))
				assert.Equal(t, test.config, read(t, p.damaged(1)))

				tree := p.tree(t)
				p.mustRun(t)
				assert.Equal(t, tree, p.tree(t))
			})
		}
	})
}

// The kubelet makes a folder of a missing file that it is to mount.
func TestInitializeReplacesFolder(t *testing.T) {
	inShells(t, allShells, func(t *testing.T, sh shell) {
		p := newPod(t, sh)
		p.mkdir(t, p.config())
		p.write(t, filepath.Join(p.config(), "note"), "kept")

		p.mustRun(t)
		p.requireUsable(t)
		assert.Equal(t, "kept", read(t, filepath.Join(p.damaged(1), "note")))
	})
}

// Wherever a file is cut, what is there after the script lets cpa start. The shells share the cuts out between them,
// for the sake of time.
func TestInitializeRepairsEveryPrefix(t *testing.T) {
	golden := read(t, "testdata/initialize/config.yaml")
	rewritten := read(t, "testdata/initialize/rewritten-by-cpa.yaml")
	// cpa writes its own settings after what it found. The first of them have every kind of line.
	appended := len(golden) - len(managementKey) + len("$2a$10$") + 53
	require.Equal(t, "credential-concurrency:", rewritten[appended:appended+23])
	lastLine := strings.Index(golden, "auth-dir")
	inShells(t, imageShells, func(t *testing.T, sh shell) {
		p := newPod(t, sh)
		check := func(prefix string) (repaired bool) {
			p.write(t, p.config(), prefix)
			p.mustRun(t)
			p.requireUsable(t)
			return read(t, p.config()) != prefix
		}
		for length := share(sh); length < len(golden)-1; length += len(imageShells) {
			// Cut before its last line, a file lacks the auth-dir; a few of these will do.
			if length < lastLine {
				length += 30
			}
			assert.True(t, check(golden[:length]), "the written file, cut after %d bytes", length)
		}
		for length := share(sh); length < 100; length += len(imageShells) {
			check(rewritten[:appended+length])
		}
	})
}

func TestInitializeKeepsThreeDamagedConfigs(t *testing.T) {
	inShells(t, allShells, func(t *testing.T, sh shell) {
		p := newPod(t, sh)
		p.write(t, p.config()+".damaged-by-me", "a user's file")
		for number := 1; number <= 11; number++ {
			p.write(t, p.config(), fmt.Sprint("damaged ", number))
			p.mustRun(t)
			p.requireUsable(t)
		}
		kept, err := filepath.Glob(p.config() + ".*")
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{p.damaged(9), p.damaged(10), p.damaged(11), p.config() + ".damaged-by-me"}, kept)
		assert.Equal(t, "damaged 9", read(t, p.damaged(9)))
		assert.Equal(t, "damaged 11", read(t, p.damaged(11)))
	})
}

func TestInitializeRefusesKeys(t *testing.T) {
	anyKey := map[string]struct{ value, reason string }{
		"empty":              {"", "is empty"},
		"only a newline":     {"\n", "is empty"},
		"two final newlines": {"key-with-newlines\n\n", "has more than one line"},
		"two lines":          {"key-with\nnewlines\n", "has more than one line"},
		"leading newline":    {"\nkey-with-newline", "has more than one line"},
		"carriage return":    {"key-from-windows\r\n", "not printable ASCII"},
		"tab":                {"key\twith tab", "not printable ASCII"},
		"NUL":                {"key\x00with NUL", "not printable ASCII"},
		"final NUL":          {"key-with-NUL\x00", "not printable ASCII"},
		"escape":             {"key\x1bwith escape", "not printable ASCII"},
		"delete":             {"key\x7fwith delete", "not printable ASCII"},
		"beyond ASCII":       {"clé-größe-鍵", "not printable ASCII"},
		"line separator":     {"key\u2028with separator", "not printable ASCII"},
		"no-break space":     {"\u00a0", "not printable ASCII"},
		"not UTF-8":          {"key\xff\xfewith bytes", "not printable ASCII"},
		"a space":            {" ", "begins or ends with a space"},
		"leading space":      {" key-with-space", "begins or ends with a space"},
		"trailing space":     {"key-with-space \n", "begins or ends with a space"},
	}
	inShells(t, allShells, func(t *testing.T, sh shell) {
		for _, name := range []string{"cpa_client_key", "cpa_management_key", "cpamp_admin_key"} {
			for kind, test := range anyKey {
				t.Run(name+" "+kind, func(t *testing.T) { requireKeyRefused(t, sh, name, test.value, test.reason) })
			}
		}
		for number := 1; number <= 3; number++ {
			t.Run(fmt.Sprint("example ", number), func(t *testing.T) {
				requireKeyRefused(t, sh, "cpa_client_key", fmt.Sprint("your-api-key-", number), "example key")
			})
		}
		t.Run("73 bytes", func(t *testing.T) {
			requireKeyRefused(t, sh, "cpa_management_key", strings.Repeat("m", 73), "72 bytes")
		})
		for _, prefix := range []string{"$2a$", "$2b$", "$2y$"} {
			value := prefix + "10$abcdefghijklmnopqrstuv"
			t.Run(prefix, func(t *testing.T) { requireKeyRefused(t, sh, "cpa_management_key", value, "bcrypt") })
		}
	})
}

// requireKeyRefused checks that the message has the entry and the reason but not the value, and the volume nothing.
func requireKeyRefused(t *testing.T, sh shell, name, value, reason string) {
	t.Helper()
	p := newPod(t, sh)
	p.setKey(t, name, value)
	r := p.run(t)
	requireRefused(t, r, filepath.Join(p.secrets, name), reason, "subpool-credentials")
	if secret := strings.TrimSpace(value); secret != "" {
		assert.NotContains(t, r.stdout+r.stderr, secret)
	}
	assert.Len(t, p.tree(t), 1, "only the volume itself")
}

func TestInitializeRefusesUnreadableKeys(t *testing.T) {
	inShells(t, allShells, func(t *testing.T, sh shell) {
		for name, spoil := range map[string]func(t *testing.T, path string){
			"missing": func(*testing.T, string) {},
			"folder":  func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o755)) },
			"another user's": func(t *testing.T, path string) {
				require.NoError(t, os.WriteFile(path, []byte(adminKey), 0o000))
			},
		} {
			t.Run(name, func(t *testing.T) {
				p := newPod(t, sh)
				path := filepath.Join(p.secrets, "cpamp_admin_key")
				require.NoError(t, os.Remove(path))
				spoil(t, path)
				requireRefused(t, p.run(t), path, "is missing or not readable")
			})
		}
	})
}

func TestInitializeProxyURL(t *testing.T) {
	accepted := []string{
		proxyURL, proxyURL + "/", "https://proxy", "socks5://10.0.0.1:1080", "socks5h://proxy.example.",
		"http://[fd00::1]:7890", "http://proxy:65535", "http://proxy:1",
	}
	refused := []string{
		"", " ", "proxy", "127.0.0.1:7890", "//proxy:7890", "http://", "http://:7890", "http:///", "http:proxy:7890",
		"ftp://proxy", "HTTP://proxy", "direct", "none", "socks4://proxy", "xhttp://proxy",
		"http://user:password@proxy:7890", "http://user@proxy", "http://proxy:", "http://proxy:0", "http://proxy:65536",
		"http://proxy:123456", "http://proxy:port", "http://proxy/path", "http://proxy?query", "http://proxy#part",
		" http://proxy", "http://proxy ", "http://proxy\n", "http://proxy\nhttp://other", "x\nhttp://proxy", "http://pro\txy",
		"http://pro xy", "http://'proxy", `http://"proxy`, "http://proxy\\", "http://-proxy", "http://proxy-", "http://a..b",
		"http://[fd00::1", "http://prö.example", "http://proxy%00", "http://$proxy", "http://proxy\x7f",
	}
	inShells(t, imageShells, func(t *testing.T, sh shell) {
		for _, url := range accepted {
			t.Run(fmt.Sprintf("accepted %q", url), func(t *testing.T) {
				p := newPod(t, sh)
				p.proxyURL = url
				p.mustRun(t)
				assert.Equal(t, url, parseConfig(t, read(t, p.config())).ProxyURL)
			})
		}
		for _, url := range refused {
			t.Run(fmt.Sprintf("refused %q", url), func(t *testing.T) {
				p := newPod(t, sh)
				p.proxyURL = url
				r := p.run(t)
				requireRefused(t, r, "MIHOMO_URL", "operator configuration")
				assert.NotContains(t, r.stderr, "password")
				assert.Len(t, p.tree(t), 1, "only the volume itself")
			})
		}
	})
}

// awkwardKeys are acceptable ones that quoting may get wrong.
func awkwardKeys() []string {
	keys := []string{
		"'", "''", "'''''", `"`, `""`, `\`, `\\n\t\x00`, "$HOME", "$(id)", "`id`", "${x}", "#", "# key", "key # comment",
		"key: value", "- item", "{a: b}", "[a]", "&a", "*a", "!tag", "|", ">", "%d%s%%", "@", "~", "null", "true", "0123",
		"1e3", "it's", "a  b", "a'b\"c\\d$e#f", "--", "-n", "-e", "END", "your-api-key", "$2", "$2x$", "=",
		strings.Repeat("'", 72), strings.Repeat("k", 72),
	}
	random := rand.New(rand.NewPCG(3, 65532))
	for range 20 {
		key := make([]byte, 1+random.IntN(72))
		for i := range key {
			key[i] = byte('!' + random.IntN('~'-'!'+1))
		}
		keys = append(keys, string(key))
	}
	return keys
}

// The values in config.yaml are the bytes of the keys, without the newline that editors add, whether the script writes
// the file or changes it, and the script finds them again.
func TestInitializeQuotesKeys(t *testing.T) {
	keys := awkwardKeys()
	inShells(t, imageShells, func(t *testing.T, sh shell) {
		p := newPod(t, sh)
		for i, key := range keys {
			in := inputs{key, keys[len(keys)-1-i], proxyURL}
			p.setInputs(t, in)
			p.setKey(t, "cpa_client_key", key+"\n")
			if i%2 == share(sh) {
				require.NoError(t, os.RemoveAll(p.config()))
			}
			p.mustRun(t)
			p.requireInputs(t, in)
		}
		p.mustRun(t)
		damaged, err := filepath.Glob(p.config() + ".damaged-*")
		require.NoError(t, err)
		require.Empty(t, damaged, "the script takes its own file for usable")
	})
}

func TestInitializeLongClientKey(t *testing.T) {
	inShells(t, allShells, func(t *testing.T, sh shell) {
		p := newPod(t, sh)
		key := strings.Repeat("long' ", 20_000) + "end"
		p.setKey(t, "cpa_client_key", key)
		p.mustRun(t)
		assert.Equal(t, []string{key}, parseConfig(t, read(t, p.config())).APIKeys)
	})
}

// acceptable is the rule for keys, said once more.
func acceptable(key string) bool {
	for _, char := range []byte(key) {
		if char < ' ' || char > '~' {
			return false
		}
	}
	return key != "" && strings.Trim(key, " ") == key
}

func FuzzInitializeKeys(f *testing.F) {
	f.Add("client", "management")
	f.Add("it's", `$x "y" \ #`)
	f.Add("client\n", "management\n\n")
	f.Add("your-api-key-1", "$2a$")
	f.Add("clé", strings.Repeat("m", 73))
	f.Fuzz(func(t *testing.T, client, management string) {
		p := newPod(t, dash)
		p.setKey(t, "cpa_client_key", client)
		p.setKey(t, "cpa_management_key", management)
		client, management = strings.TrimSuffix(client, "\n"), strings.TrimSuffix(management, "\n")
		example := len(client) > 13 && strings.HasPrefix(client, "your-api-key-") && client[13] >= '0' && client[13] <= '9'
		hashed := len(management) > 3 && strings.HasPrefix(management, "$2") &&
			strings.ContainsRune("aby", rune(management[2])) && management[3] == '$'
		if !acceptable(client) || !acceptable(management) || example || hashed || len(management) > 72 {
			requireRefused(t, p.run(t), "subpool-credentials")
			return
		}
		p.mustRun(t)
		config := parseConfig(t, read(t, p.config()))
		assert.Equal(t, []string{client}, config.APIKeys)
		assert.Equal(t, management, config.RemoteManagement.SecretKey)
	})
}
