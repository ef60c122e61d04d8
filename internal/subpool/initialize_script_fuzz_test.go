package subpool_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// A writer makes a config.yaml as people and programs may write it.
type writer struct {
	random *rand.Rand
	text   string // a word for everything that has no meaning to the script
}

func (w writer) oneOf(choices ...string) string { return choices[w.random.IntN(len(choices))] }

// scalar writes a value of printable ASCII in one of the styles of YAML that hold it.
func (w writer) scalar(value string) string {
	styles := []string{quoted(value), `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`}
	var plain any
	if yaml.Unmarshal([]byte("- "+value+" # end"), &plain) == nil && assert.ObjectsAreEqual([]any{value}, plain) {
		styles = append(styles, value)
	}
	return w.oneOf(styles...) + w.oneOf("", "", " ", " # "+w.text, "\t# it's")
}

// entry writes a client key. Escapes in double quotes are left out: the script sets such a list aside.
func (w writer) entry(value string) string {
	for {
		if text := w.scalar(value); !strings.HasPrefix(text, `"`) || !strings.Contains(text, `\`) {
			return text
		}
	}
}

// between is a line that has no meaning in YAML.
func (w writer) between() string {
	return w.oneOf("", "", "", "", "\n", "  \n", "# "+w.text+"\n", "  # api-keys:\n", "    # - 'a'\n")
}

func (w writer) list(keys []string) string {
	indent := w.oneOf("", "  ", "    ")
	list := &strings.Builder{}
	list.WriteString("api-keys:" + w.oneOf("", " ", " # clients") + "\n")
	for _, key := range keys {
		list.WriteString(w.between() + indent + "-" + w.oneOf(" ", "   ") + w.entry(key) + "\n")
	}
	return list.String()
}

func (w writer) remoteManagement(key string) string {
	indent := w.oneOf(" ", "  ", "    ")
	children := []string{
		"secret-key:" + w.oneOf(" ", "  ") + w.scalar(key) + "\n",
		"allow-remote: false\n",
		"nested:\n" + indent + "  secret-key: a\n",
		"text: |\n" + indent + "  secret-key: a\n" + indent + "  " + w.text + "\n",
		"list:\n" + indent + "- secret-key: a\n",
	}
	w.random.Shuffle(len(children), func(i, j int) { children[i], children[j] = children[j], children[i] })
	block := &strings.Builder{}
	block.WriteString("remote-management:" + w.oneOf("", " # panel") + "\n")
	for _, child := range children {
		block.WriteString(w.between() + indent + child)
	}
	return block.String()
}

// config writes a good config.yaml with the given settings and others.
func (w writer) config(keys []string, managementKey, proxyURL string) string {
	blocks := []string{
		w.list(keys),
		w.remoteManagement(managementKey),
		"port: 8317\n",
		"auth-dir: " + w.oneOf(`"/CLIProxyAPI/auths"`, "/CLIProxyAPI/auths") + "\n",
	}
	if w.random.IntN(4) > 0 {
		blocks = append(blocks, "proxy-url: "+w.scalar(proxyURL)+"\n")
	}
	others := []string{
		"text: |\n  proxy-url: a\n  api-keys:\n  - " + w.text + "\n",
		"folded: >-\n  " + w.text + "\n\n  # no comment\n",
		"providers:\n- name: " + quoted(w.text) + "\n  api-keys:\n  - 'a'\n  proxy-url: b\n- {name: c}\n",
		"flow: {a: [1, " + quoted(w.text) + "],\n  b: 2}\n",
		"brackets: [\n  'a'\n]\n",
		"quoted: \"one\n  " + w.oneOf("two", "proxy-url: two") + "\"\n",
		"plain: one\n  two\n",
		"other:\n  proxy-url: a\n  remote-management:\n    secret-key: b\n",
		"base: &base\n  a: 1\nmerged:\n  <<: *base\n",
		"proxy-urls: a\n",
		"null-value:\n",
		"number :  1.5 # " + w.text + "\n",
	}
	for _, other := range others {
		if w.random.IntN(3) == 0 {
			blocks = append(blocks, other)
		}
	}
	w.random.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
	config := &strings.Builder{}
	config.WriteString(w.oneOf("", "", "---\n"))
	for _, block := range blocks {
		config.WriteString(w.between() + block)
	}
	if w.random.IntN(4) == 0 {
		return strings.ReplaceAll(config.String(), "\n", "\r\n")
	}
	return config.String()
}

// settings are all the settings of a config.yaml.
func settings(t *testing.T, config string) map[string]any {
	t.Helper()
	var all map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(config), &all), config)
	return all
}

// After a change of inputs a config.yaml means what it did before, but for the settings whose inputs changed.
func FuzzInitializeChange(f *testing.F) {
	for seed := range uint64(16) {
		f.Add(seed, "a word", "one-key", "it's \"two\" #2", uint8(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, text, other, former string, bits uint8) {
		for _, value := range []string{text, other, former} {
			if !acceptable(value) || strings.Contains(value, "your-api-key-") {
				return // no such value gets into a good config.yaml
			}
		}
		shell := imageShells[seed%uint64(len(imageShells))]
		w := writer{rand.New(rand.NewPCG(seed, 1)), text}
		keys := []string{other, former, "third"}[w.random.IntN(2):]
		config := w.config(keys, former, proxyURL)
		before := settings(t, config)

		p := newPod(t, shell)
		p.write(t, p.config(), config)
		p.write(t, p.marker(), inputs{former, managementKey, proxyURL}.marker())
		next := inputs{former, managementKey, proxyURL}
		if bits&1 != 0 {
			next.client = newInputs.client
		}
		if bits&2 != 0 {
			next.management = newInputs.management
		}
		if bits&4 != 0 {
			next.proxy = newInputs.proxy
		}
		p.setInputs(t, next)
		p.mustRun(t)
		_, err := os.Lstat(p.damaged(1))
		require.ErrorIs(t, err, fs.ErrNotExist, config)

		want := before
		if bits&1 != 0 {
			want["api-keys"] = changedKeys(keys, former, next.client)
		}
		if bits&2 != 0 {
			want["remote-management"].(map[string]any)["secret-key"] = next.management
		}
		if bits&4 != 0 {
			want["proxy-url"] = next.proxy
		}
		require.Equal(t, want, settings(t, read(t, p.config())), "%q", config)
	})
}

// changedKeys are the client keys in which the next one has taken the place of the former one.
func changedKeys(keys []string, former, next string) []any {
	var changed []any
	for _, key := range keys {
		if key == former && slices.Contains(changed, any(next)) {
			continue
		}
		if key == former {
			key = next
		}
		changed = append(changed, key)
	}
	if !slices.Contains(changed, any(next)) {
		changed = slices.Insert(changed, 0, any(next))
	}
	return changed
}
