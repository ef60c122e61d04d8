package subpool_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An editable is a config.yaml with a way to say what it must be once one of its settings has changed.
type editable struct {
	config                    string
	client, management, proxy func(config, quotedValue string) string
}

// instead puts the value in the place of a text.
func instead(text string) func(config, value string) string {
	return func(config, value string) string { return strings.Replace(config, text, value, 1) }
}

// after puts a line with the value after a text.
func after(text, line string) func(config, value string) string {
	return func(config, value string) string {
		return strings.Replace(config, text, text+fmt.Sprintf(line, value), 1)
	}
}

func editables(t *testing.T) map[string]editable {
	golden := read(t, "testdata/initialize/config.yaml")
	hash := "'$2a$10$BjPS68lH7B8ytEvSg3xX4eFORYTE4sEQD5YrWjjxj1ioeX389iyoC'"
	written := editable{golden, instead(quoted(clientKey)), instead(quoted(managementKey)), instead(quoted(proxyURL))}
	with := func(config string) editable {
		other := written
		other.config = config
		return other
	}
	noNewline := func(place func(config, value string) string) func(config, value string) string {
		return func(config, value string) string { return strings.TrimSuffix(place(config, value), "\n") + "\n" }
	}
	return map[string]editable{
		"as written": written,
		"rewritten by cpa": {
			read(t, "testdata/initialize/rewritten-by-cpa.yaml"), written.client, instead(hash), written.proxy,
		},
		"edited by a user": {
			read(t, "testdata/initialize/edited-by-user.yaml"),
			after("api-keys:\n", "  - %s\n"), instead(`"$2a$10$Vw0pU1nJm8kQyT6c4sRrXe"`), instead(proxyURL),
		},
		"Windows line ends": with(strings.ReplaceAll(golden, "\n", "\r\n")),
		"no final newline": {
			strings.TrimSuffix(golden, "\n"),
			noNewline(written.client), noNewline(written.management), noNewline(written.proxy),
		},
		"blank lines at the end": with(golden + "\n \n\n"),
		"list without indent":    with(strings.Replace(golden, "  - "+quoted(clientKey), "- "+quoted(clientKey), 1)),
		"key among others": with(strings.Replace(golden, "  - "+quoted(clientKey),
			"  # one\n  - one-key\n  -   "+quoted(clientKey)+" # ours\n\n# two\n  - \"two key\"\t\n  - 'it''s three'", 1)),
		"comments and blanks": with(strings.NewReplacer(
			"api-keys:", "api-keys: # clients", "remote-management:", "# the panel\nremote-management:   # ...",
			"  allow-remote", "# cpa moves comments to the left\n  allow-remote",
			"secret-key: "+quoted(managementKey), "secret-key :   "+quoted(managementKey)+" # secret",
			"proxy-url:", "proxy-url:\t", quoted(proxyURL), quoted(proxyURL)+"\t# out",
		).Replace(strings.Replace(golden, "secret-key: ", "secret-key:  ", 1))),
		"double quotes": {
			strings.NewReplacer("'", `"`).Replace(golden),
			instead(`"` + clientKey + `"`), instead(`"` + managementKey + `"`), instead(`"` + proxyURL + `"`),
		},
		"plain values": {
			strings.ReplaceAll(golden, "'", ""), instead(clientKey), instead(managementKey), instead(proxyURL),
		},
		"escapes": {
			strings.NewReplacer(quoted(managementKey), `"a\"b\\\x41 # c"`, quoted(proxyURL), `"http:\u002f\u002fproxy"`).Replace(golden),
			written.client, instead(`"a\"b\\\x41 # c"`), instead(`"http:\u002f\u002fproxy"`),
		},
		"no proxy-url": {
			strings.Replace(golden, "proxy-url: "+quoted(proxyURL)+"\n", "", 1), written.client, written.management,
			func(config, value string) string { return config + "proxy-url: " + value + "\n" },
		},
		"empty proxy-url": {
			strings.Replace(golden, " "+quoted(proxyURL), "", 1), written.client, written.management,
			after("proxy-url:", " %s"),
		},
		"settings of the same names": with(golden + "other:\n  api-keys:\n    - " + quoted(clientKey) + "\n  secret-key: a\n" +
			"  remote-management:\n    secret-key: a\n  text: |\n    api-keys:\n    proxy-url: a\nsecret-key: a\n"),
		"settings of other shapes": with("%YAML 1.1\n---\n" + golden +
			"base: &base {a: [1, 2]}\n<<: *base\nflow: [\n  a, 'b'\n]\nmap: {\n  \"a\": b,\n}\nlist:\n- - 1\n- b: c\n" +
			"text: >-\n  # no comment\n\n  more\nquoted: \"a\n  b\"\nplain: a\n  b\n\n"),
	}
}

// combination is the inputs of which those whose bit is set are new.
func combination(bits int) inputs {
	in := oldInputs
	if bits&1 != 0 {
		in.client = newInputs.client
	}
	if bits&2 != 0 {
		in.management = newInputs.management
	}
	if bits&4 != 0 {
		in.proxy = newInputs.proxy
	}
	return in
}

// Of a config.yaml only the settings change whose inputs did; every other byte stays. The shells share the
// combinations of inputs out between them, for the sake of time.
func TestInitializeChangesOnlyChangedSettings(t *testing.T) {
	inShells(t, imageShells, func(t *testing.T, sh shell) {
		all := editables(t)
		for i, name := range slices.Sorted(maps.Keys(all)) {
			for bits := range 8 {
				if (i+bits)%len(imageShells) == share(sh) {
					t.Run(fmt.Sprintf("%s %03b", name, bits), func(t *testing.T) {
						requireOnlyChanged(t, newPod(t, sh), all[name], bits)
					})
				}
			}
		}
	})
}

func requireOnlyChanged(t *testing.T, p *pod, edit editable, bits int) {
	t.Helper()
	in, want := combination(bits), edit.config
	if bits&1 != 0 {
		want = edit.client(want, quoted(in.client))
	}
	if bits&2 != 0 {
		want = edit.management(want, quoted(in.management))
	}
	if bits&4 != 0 {
		want = edit.proxy(want, quoted(in.proxy))
	}
	p.write(t, p.config(), edit.config)
	p.write(t, p.marker(), oldInputs.marker())
	p.setInputs(t, in)

	r := p.mustRun(t)
	assert.Equal(t, want, read(t, p.config()))
	assert.Equal(t, in.marker(), read(t, p.marker()))
	config := parseConfig(t, want)
	if bits == 0 {
		assert.Empty(t, r.stdout)
		return
	}
	assert.Equal(t, "initialize: brought "+p.config()+" in line with the keys, the proxy URL and the Pod\n", r.stdout)
	if bits&1 != 0 {
		assert.Contains(t, config.APIKeys, in.client)
		assert.NotContains(t, config.APIKeys, oldInputs.client)
	}
	if bits&2 != 0 {
		assert.Equal(t, in.management, config.RemoteManagement.SecretKey)
	}
	if bits&4 != 0 {
		assert.Equal(t, in.proxy, config.ProxyURL)
	}
	if bits == 7 {
		tree, times := p.tree(t), p.times(t)
		assert.Empty(t, p.mustRun(t).stdout)
		assert.Equal(t, tree, p.tree(t))
		assert.Equal(t, times, p.times(t))
	}
}

func TestInitializeFindsItsOwnClientKey(t *testing.T) {
	next := quoted(newInputs.client)
	tests := map[string]struct{ former, list, want string }{
		"only":              {"old", "  - 'old'\n", "  - " + next + "\n"},
		"twice":             {"old", "  - 'old'\n  - a\n  - old\n", "  - " + next + "\n  - a\n"},
		"new one is there":  {"old", "  - 'old'\n  - " + next + "\n", "  - " + next + "\n"},
		"new one alone":     {"old", "  - b\n  - \"" + newInputs.client + "\" # c\n", "  - b\n  - \"" + newInputs.client + "\" # c\n"},
		"removed by a user": {"old", "# mine\n    - a\n", "    - " + next + "\n# mine\n    - a\n"},
		"part of another":   {"old", "  - old-\n  - older\n", "  - " + next + "\n  - old-\n  - older\n"},
		"in a comment":      {"old", "  - a # - old\n  # - old\n", "  - " + next + "\n  - a # - old\n  # - old\n"},
		"single quotes":     {"it's", "  - 'it''s'\n", "  - " + next + "\n"},
		"plain quote":       {"it's", "  - it's\n", "  - " + next + "\n"},
		"double quotes":     {"it's", "  - \"it's\"\n", "  - " + next + "\n"},
		"other double":      {`a"b`, "  - a\"b\n", "  - " + next + "\n"},
		"like a comment":    {"a #b", "  - 'a #b' #c\n", "  - " + next + " #c\n"},
		"like a setting":    {"a: b", "  - 'a: b'\n", "  - " + next + "\n"},
		"with a colon":      {"a:b#c", "  - a:b#c\n", "  - " + next + "\n"},
		"like a pattern":    {".*", "  - a\n  - .*\n", "  - a\n  - " + next + "\n"},
		"with a dash":       {"-a", "  - b\n  - -a\n", "  - b\n  - " + next + "\n"},
		"ampersands":        {`a&b\&`, "  - 'a&b\\&'\n", "  - " + next + "\n"},
		"number":            {"123", "  - 123\n", "  - " + next + "\n"},
	}
	golden := read(t, "testdata/initialize/config.yaml")
	inShells(t, imageShells, func(t *testing.T, sh shell) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				p := newPod(t, sh)
				with := func(list string) string { return strings.Replace(golden, "  - "+quoted(clientKey)+"\n", list, 1) }
				p.write(t, p.config(), with(test.list))
				p.write(t, p.marker(), inputs{test.former, managementKey, proxyURL}.marker())
				p.setKey(t, "cpa_client_key", newInputs.client)
				p.mustRun(t)
				assert.Equal(t, with(test.want), read(t, p.config()))
				assert.Contains(t, parseConfig(t, with(test.want)).APIKeys, newInputs.client)
			})
		}
	})
}

// A config.yaml of an earlier version of the script, whose marker is missing, gets all the present inputs.
func TestInitializeWithoutMarker(t *testing.T) {
	inShells(t, allShells, func(t *testing.T, sh shell) {
		t.Run("same keys", func(t *testing.T) {
			p := newPod(t, sh)
			p.write(t, p.config(), read(t, "testdata/initialize/rewritten-by-cpa.yaml"))
			p.mustRun(t)
			p.requireInputs(t, oldInputs)
			assert.Equal(t, oldInputs.marker(), read(t, p.marker()))
		})
		t.Run("other keys", func(t *testing.T) {
			p := newPod(t, sh)
			p.write(t, p.config(), read(t, "testdata/initialize/rewritten-by-cpa.yaml"))
			p.setInputs(t, newInputs)
			p.mustRun(t)
			config := parseConfig(t, read(t, p.config()))
			assert.Equal(t, []string{newInputs.client, clientKey}, config.APIKeys, "the old one may be a user's")
			assert.Equal(t, newInputs.management, config.RemoteManagement.SecretKey)
			assert.Equal(t, newInputs.proxy, config.ProxyURL)
			assert.Equal(t, newInputs.marker(), read(t, p.marker()))
		})
	})
}

// A marker that was cut anywhere never leaves an old management key or proxy-url, nor takes a user's key for the pool's.
func TestInitializeCutMarker(t *testing.T) {
	rewritten := read(t, "testdata/initialize/rewritten-by-cpa.yaml")
	former := inputs{"it's", managementKey, proxyURL} // 'it' is a value, too
	config := strings.Replace(rewritten, quoted(clientKey), "it\n  - 'it''s'\n  - ''''", 1)
	whole := former.marker()
	lengths := []int{len(whole) - 1, len(whole) - 2, strings.Index(whole, "proxy-url"), strings.Index(whole, "proxy-url") - 3}
	for length := range strings.Index(whole, "sha256") {
		lengths = append(lengths, length)
	}
	inShells(t, imageShells, func(t *testing.T, sh shell) {
		for _, length := range lengths {
			p := newPod(t, sh)
			p.write(t, p.config(), config)
			p.write(t, p.marker(), whole[:length])
			p.setInputs(t, newInputs)
			p.mustRun(t)
			parsed := parseConfig(t, read(t, p.config()))
			require.Contains(t, parsed.APIKeys, newInputs.client)
			require.Subset(t, parsed.APIKeys, []string{"it", "'"})
			require.Equal(t, newInputs.management, parsed.RemoteManagement.SecretKey)
			require.Equal(t, newInputs.proxy, parsed.ProxyURL)
			require.Equal(t, newInputs.marker(), read(t, p.marker()))
		}
	})
}

// What cannot be changed with certainty is set aside, and only if it has to change.
func TestInitializeSetsAsideWhatItCannotEdit(t *testing.T) {
	golden := read(t, "testdata/initialize/config.yaml")
	client, secret, proxy := "  - "+quoted(clientKey), " "+quoted(managementKey), " "+quoted(proxyURL)
	tests := map[string]struct {
		old, new string
		bits     int // the inputs whose change the shape forbids
	}{
		"list in a line":        {"api-keys:\n" + client, "api-keys: ['a', " + quoted(clientKey) + "]", 1},
		"list with an anchor":   {"api-keys:", "api-keys: &keys", 1},
		"list with a tag":       {"api-keys:", "api-keys: !!seq", 1},
		"entry with an anchor":  {"  - ", "  - &key ", 1},
		"alias":                 {client, client + "\n  - *other", 1},
		"nested list":           {client, client + "\n  - - a", 1},
		"mapping in the list":   {client, client + "\n  - a: b", 1},
		"escape in the list":    {client, client + "\n  - \"\\x61\"", 1},
		"block scalar":          {client, client + "\n  - |\n    a", 1},
		"plain over two lines":  {client, client + "\n  - a\n    b", 1},
		"dash in a plain value": {client, client + "\n  - a\n    - b", 1},
		"quoted over two lines": {client, client + "\n  - 'a\n    b'", 1},
		"entry on the next line": {
			client, client + "\n  -\n    a", 1,
		},
		"list twice":              {"debug:", "api-keys:\n  - a\ndebug:", 1},
		"section with an anchor":  {"remote-management:", "remote-management: &panel", 2},
		"block scalar as key":     {" secret-key:" + secret, " secret-key: |-\n    secret", 2},
		"folded key":              {" secret-key:" + secret, " secret-key: a\n    b", 2},
		"quoted key over lines":   {" secret-key:" + secret, " secret-key: \"a\n    b\"", 2},
		"key with an anchor":      {" secret-key:" + secret, " secret-key: &key a", 2},
		"only a nested key":       {" secret-key:" + secret, " other:\n    secret-key: a", 2},
		"key twice":               {" secret-key:" + secret, " secret-key: a\n  secret-key: b", 2},
		"URL on the next line":    {"proxy-url:" + proxy, "proxy-url:\n  " + proxyURL, 4},
		"URL over two lines":      {"proxy-url:" + proxy, "proxy-url: http://a\n\n  b", 4},
		"URL in brackets":         {"proxy-url:" + proxy, "proxy-url: [a]", 4},
		"URL as a list":           {"proxy-url:" + proxy, "proxy-url:\n- a", 4},
		"URL twice":               {"debug:", "proxy-url: a\ndebug:", 4},
		"setting name in quotes":  {"proxy-url:", "\"proxy-url\":", 7},
		"explicit setting name":   {"proxy-url:", "? proxy-url\n:", 7},
		"text at the left margin": {"debug:", "text: \"a\nb\"\ndebug:", 7},
		"second document":         {"debug:", "---\ndebug:", 7},
	}
	inShells(t, imageShells, func(t *testing.T, sh shell) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				require.Contains(t, golden, test.old)
				config := strings.Replace(golden, test.old, test.new, 1)
				p := newPod(t, sh)
				p.write(t, p.config(), config)
				p.write(t, p.marker(), oldInputs.marker())
				p.setInputs(t, combination(7&^test.bits))
				p.mustRun(t)
				_, err := os.Lstat(p.damaged(1))
				require.ErrorIs(t, err, fs.ErrNotExist, "the other settings can change")

				p.write(t, p.config(), config)
				p.write(t, p.marker(), oldInputs.marker())
				p.setInputs(t, newInputs)
				r := p.mustRun(t)
				assert.Contains(t, r.stdout, "not written on a line of its own: wrote it anew, kept the old one beside it")
				assert.Equal(t, config, read(t, p.damaged(1)))
				p.requireInputs(t, newInputs)
			})
		}
	})
}

// A key that a user has changed in config.yaml, or a client key that a user has removed, is the user's business until
// the Secret changes.
func TestInitializeLeavesUsersChanges(t *testing.T) {
	inShells(t, allShells, func(t *testing.T, sh shell) {
		p := newPod(t, sh)
		p.mustRun(t)
		user := inputs{"a-users-key", "a-users-management-key", "http://a-users-proxy"}
		p.write(t, p.config(), strings.NewReplacer(
			clientKey, user.client, managementKey, user.management, proxyURL, user.proxy,
		).Replace(read(t, p.config())))
		tree := p.tree(t)
		p.mustRun(t)
		assert.Equal(t, tree, p.tree(t))

		p.setInputs(t, combination(2))
		p.mustRun(t)
		p.requireInputs(t, inputs{user.client, newInputs.management, user.proxy})
	})
}
