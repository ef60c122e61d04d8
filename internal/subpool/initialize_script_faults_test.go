package subpool_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	// writers are the commands of the scripts that change the volume, readers all others.
	writers = []string{"cat", "ln", "mkdir", "mktemp", "mv", "rm", "sync"}
	readers = []string{"awk", "cmp", "grep", "od", "sed", "sha256sum", "tail", "tr"}
)

// wrapped is a run of the script in which a shell function, hook, is called before each of the named commands, and also
// when cat has copied a part of its standard input. Commands that are neither named nor readers are not found by the
// shells that look for commands in PATH, so that none is forgotten here.
func (p *pod) wrapped(t *testing.T, names []string, hook string) *exec.Cmd {
	t.Helper()
	bin := filepath.Join(p.root, "bin")
	require.NoError(t, os.Mkdir(bin, 0o755))
	prelude := &strings.Builder{}
	fmt.Fprintln(prelude, hook)
	for _, name := range slices.Concat(writers, readers, p.programs) {
		path, err := exec.LookPath(filepath.Join(p.root, name))
		if err != nil {
			path, err = exec.LookPath(name)
		}
		require.NoError(t, err)
		if !slices.Contains(names, name) {
			require.NoError(t, os.Symlink(path, filepath.Join(bin, name)))
			continue
		}
		if p.shell.name == busybox.name {
			path = "command \\" + name // the backslash keeps it from being taken for the alias
		}
		part := ""
		if name == "cat" {
			part = "if [ $# -eq 0 ]; then /bin/dd bs=1 count=100 2>/dev/null; hook; fi"
		}
		function := name
		if strings.Contains(name, "-") {
			function = strings.ReplaceAll(name, "-", "_") // the name of a function has no dash, that of an alias may
			fmt.Fprintf(prelude, "alias %s=%s\n", name, function)
		}
		fmt.Fprintf(prelude, `%[1]s() {
				hook %[2]s "$@"
				%[3]s
				%[4]s "$@"
			}
			`, function, name, part, path)
	}
	file := filepath.Join(p.root, "prelude.sh")
	require.NoError(t, os.WriteFile(file, []byte(prelude.String()), 0o644))
	cmd := p.command(t, "-c", `. "$0"; . "$1"`, file, p.script())
	if p.shell.name != busybox.name {
		cmd.Env = append(cmd.Env, "PATH="+bin)
	}
	return cmd
}

// note makes a file that the wrapped script may write.
func (p *pod) note(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(p.root, name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	chown(t, path, podUser, podUser)
	return path
}

// startingPoints are the volumes on which the script has something to do.
var startingPoints = map[string]func(t *testing.T, p *pod){
	"empty volume": func(*testing.T, *pod) {},
	"damaged config": func(t *testing.T, p *pod) {
		p.write(t, p.config(), "cut")
		p.write(t, p.config()+".new-Ab12Cd", "left by an earlier kill")
		for number := 1; number <= 3; number++ {
			p.write(t, p.damaged(number), fmt.Sprint("damaged ", number))
		}
	},
	"folder":         func(t *testing.T, p *pod) { p.mkdir(t, filepath.Join(p.config(), "below")) },
	"changed inputs": changedInputs,
}

// changedInputs is a volume that was in line with oldInputs when newInputs came.
func changedInputs(t *testing.T, p *pod) {
	t.Helper()
	p.write(t, p.config(), read(t, "testdata/initialize/rewritten-by-cpa.yaml"))
	p.write(t, p.marker(), oldInputs.marker())
	p.setInputs(t, newInputs)
}

// killedAt runs the script until its step with the given number. It reports false if the script has ended before.
func (p *pod) killedAt(t *testing.T, step int) bool {
	t.Helper()
	const hook = `hook() {
		read -r step <"$STEPS"
		step=$((step + 1))
		echo "$step" >"$STEPS"
		if [ "$step" -eq "$STOP_AT" ]; then kill -9 0; fi
	}`
	cmd := p.wrapped(t, slices.Concat(writers, p.programs), hook)
	cmd.Env = append(cmd.Env, "STEPS="+p.note(t, "steps", "0\n"), fmt.Sprint("STOP_AT=", step))
	r := finish(t, cmd)
	if r.code == 0 {
		return false
	}
	require.Equal(t, syscall.SIGKILL, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), r.stderr)
	return true
}

// eachKill calls test with a Pod whose script was killed, for every step of the script. The shells share the steps out
// between them, for the sake of time.
func eachKill(t *testing.T, sh shell, prepare func(t *testing.T, p *pod), test func(p *pod, step int)) {
	t.Helper()
	for step := 1 + share(sh); ; step += len(imageShells) {
		p := newPod(t, sh)
		prepare(t, p)
		if !p.killedAt(t, step) {
			require.Greater(t, step, 6, "the script has more steps than that")
			return
		}
		test(p, step)
	}
}

// Killed between any two changes of the volume, the script leaves a whole config.yaml, the old or the new one, and the
// next run ends with the tree that an undisturbed run makes.
func TestInitializeKilledAnywhere(t *testing.T) {
	inShells(t, imageShells, func(t *testing.T, sh shell) {
		for name, prepare := range startingPoints {
			t.Run(name, func(t *testing.T) {
				undisturbed := newPod(t, sh)
				prepare(t, undisturbed)
				before, _ := os.ReadFile(undisturbed.config()) // empty if there is none
				undisturbed.mustRun(t)
				after, err := os.ReadFile(undisturbed.config())
				require.NoError(t, err)
				require.NotEqual(t, before, after)

				eachKill(t, sh, prepare, func(p *pod, step int) {
					if content, err := os.ReadFile(p.config()); err == nil && !bytes.Equal(content, before) {
						require.Equal(t, string(after), string(content))
					}
					p.mustRun(t)
					require.Equal(t, undisturbed.tree(t), p.tree(t), "killed at step %d", step)
				})
			})
		}
	})
}

// If a run is killed and the Secret is back at its old keys by the next one, then so is config.yaml.
func TestInitializeKilledThenChangedBack(t *testing.T) {
	rewritten := read(t, "testdata/initialize/rewritten-by-cpa.yaml")
	inShells(t, imageShells, func(t *testing.T, sh shell) {
		eachKill(t, sh, changedInputs, func(p *pod, _ int) {
			p.setInputs(t, oldInputs)
			p.mustRun(t)
			require.Equal(t, oldInputs.marker(), read(t, p.marker()))
			if read(t, p.config()) != rewritten {
				p.requireInputs(t, oldInputs)
			}
		})
	})
}

// Every command is called without a key among its arguments or in its environment.
func TestInitializeKeepsKeysFromCommands(t *testing.T) {
	const hook = `hook() { { printf '%s\n' "$*"; /usr/bin/env; } >>"$RECORD"; }`
	inShells(t, allShells, func(t *testing.T, sh shell) {
		seen := &strings.Builder{}
		for _, prepare := range []func(t *testing.T, p *pod){
			// It takes every check to see that this one is cut.
			func(t *testing.T, p *pod) {
				p.write(t, p.config(), read(t, "testdata/initialize/config.yaml")+"usage-stat")
			},
			changedInputs,
		} {
			p := newPod(t, sh)
			prepare(t, p)
			record := p.note(t, "record", "")
			cmd := p.wrapped(t, slices.Concat(writers, readers), hook)
			cmd.Env = append(cmd.Env, "RECORD="+record)
			r := finish(t, cmd)
			require.Zero(t, r.code, r.stderr)
			fmt.Fprintln(seen, read(t, record), r.stdout, r.stderr)
		}
		for _, name := range slices.Concat(writers, readers) {
			assert.Regexp(t, `(?m)^`+name+`\b`, seen, "%s is called", name)
		}
		for _, key := range []string{clientKey, managementKey, adminKey, newInputs.client, newInputs.management} {
			assert.NotContains(t, seen.String(), key)
			assert.NotContains(t, seen.String(), quoted(key))
		}
	})
}

func TestInitializeTwoCopies(t *testing.T) {
	inShells(t, imageShells, func(t *testing.T, sh shell) {
		alone := newPod(t, sh)
		alone.mustRun(t)
		for range 5 {
			p := newPod(t, sh)
			runTwice(t, p)
			require.Equal(t, alone.tree(t), p.tree(t))

			p.write(t, p.config(), "damaged")
			runTwice(t, p)
			p.requireUsable(t)
			require.Equal(t, "damaged", read(t, p.damaged(1)))

			p.setInputs(t, newInputs)
			runTwice(t, p)
			p.requireInputs(t, newInputs)
			require.Equal(t, newInputs.marker(), read(t, p.marker()))

			unfinished, err := filepath.Glob(filepath.Join(p.data, "cpa", "*.new-*"))
			require.NoError(t, err)
			require.Empty(t, unfinished)
		}
	})
}

// runTwice runs two copies of the script at the same time.
func runTwice(t *testing.T, p *pod) {
	t.Helper()
	copies := []*exec.Cmd{p.command(t, p.script()), p.command(t, p.script())}
	for _, cmd := range copies {
		cmd.Stderr = &strings.Builder{}
		require.NoError(t, cmd.Start())
	}
	for _, cmd := range copies {
		assert.NoError(t, cmd.Wait(), "%s", cmd.Stderr)
	}
}

// mounted runs the script in a mount namespace of its own, after the given shell commands have mounted something on
// "$DATA_DIR", of which they find a copy in "$BEFORE". It returns the run, and a Pod with what is on the volume then.
func (p *pod) mounted(t *testing.T, mount string) (result, *pod) {
	t.Helper()
	binary, err := exec.LookPath(p.shell.command[0])
	require.NoError(t, err)
	namespaces := []string{"--mount"}
	run := slices.Concat([]string{"env", "PATH=" + p.shell.path, binary}, p.shell.command[1:], []string{p.script()})
	if os.Geteuid() == 0 {
		user := fmt.Sprint(podUser)
		run = slices.Concat([]string{"setpriv", "--reuid", user, "--regid", user, "--clear-groups"}, run)
	} else {
		namespaces = append(namespaces, "--map-root-user")
	}
	after := *p
	after.data = filepath.Join(p.root, "after")
	before := filepath.Join(p.root, "before")
	script := `cp -a "$DATA_DIR" "$BEFORE"
		` + mount + `
		code=0
		"$@" || code=$?
		cp -a "$DATA_DIR" "$AFTER"
		rm -f "$AFTER"/filler*
		exit $code`
	cmd := exec.Command("unshare", slices.Concat(namespaces, []string{"sh", "-euc", script, "sh"}, run)...)
	cmd.Env = slices.Concat(p.command(t).Env, []string{"PATH=" + os.Getenv("PATH"), "BEFORE=" + before, "AFTER=" + after.data})
	return finish(t, cmd), &after
}

func TestInitializeFullDisk(t *testing.T) {
	fillers := map[string]string{
		"no space left": `mount -t tmpfs -o size=64k tmpfs "$DATA_DIR"
			cp -a "$BEFORE/." "$DATA_DIR"
			dd if=/dev/zero of="$DATA_DIR/filler" bs=1k 2>/dev/null || :`,
		"no inodes left": `mount -t tmpfs -o nr_inodes=20 tmpfs "$DATA_DIR"
			cp -a "$BEFORE/." "$DATA_DIR"
			i=0
			while touch "$DATA_DIR/filler-$i" 2>/dev/null; do i=$((i + 1)); done`,
	}
	inShells(t, imageShells, func(t *testing.T, sh shell) {
		for name, fill := range fillers {
			t.Run(name+", empty volume", func(t *testing.T) {
				p := newPod(t, sh)
				r, after := p.mounted(t, fill)
				requireRefused(t, r, "No space left on device", "free space")
				for _, entry := range after.tree(t) {
					assert.NotContains(t, entry, "config.yaml")
				}
				after.mustRun(t)
				p.mustRun(t)
				assert.Equal(t, p.tree(t), after.tree(t), "after space was made")
			})
			t.Run(name+", damaged config", func(t *testing.T) {
				p := newPod(t, sh)
				p.mustRun(t)
				p.write(t, p.config(), "damaged")
				r, after := p.mounted(t, fill)
				requireRefused(t, r, p.config(), "has no port", "No space left on device", "free space")
				assert.Equal(t, p.tree(t), after.tree(t))
				after.mustRun(t)
				after.requireUsable(t)
			})
			t.Run(name+", changed inputs", func(t *testing.T) {
				p := newPod(t, sh)
				p.mustRun(t)
				p.setInputs(t, newInputs)
				r, after := p.mounted(t, fill)
				requireRefused(t, r, "does not have the settings that the pool needs", "No space left on device", "free space")
				assert.Equal(t, p.tree(t), after.tree(t))
				after.mustRun(t)
				after.requireInputs(t, newInputs)
			})
			t.Run(name+", usable config", func(t *testing.T) {
				p := newPod(t, sh)
				p.mustRun(t)
				r, after := p.mounted(t, fill)
				assert.Zero(t, r.code, r.stderr)
				assert.Equal(t, p.tree(t), after.tree(t))
			})
		}
	})
}

func TestInitializeReadOnlyVolume(t *testing.T) {
	const mount = `mount --bind "$DATA_DIR" "$DATA_DIR"
		mount -o remount,bind,ro "$DATA_DIR"`
	inShells(t, imageShells, func(t *testing.T, sh shell) {
		t.Run("empty", func(t *testing.T) {
			r, _ := newPod(t, sh).mounted(t, mount)
			requireRefused(t, r, "Read-only file system", "make it writable")
		})
		t.Run("prepared", func(t *testing.T) {
			p := newPod(t, sh)
			p.mustRun(t)
			r, after := p.mounted(t, mount)
			if sh.name == busybox.name {
				// Its test -w looks at the mode alone; the run ends well as there is nothing to write.
				assert.Zero(t, r.code, r.stderr)
			} else {
				requireRefused(t, r, filepath.Join(p.data, "cpa"), "is not writable", "make it writable")
			}
			assert.Equal(t, p.tree(t), after.tree(t))
		})
	})
}

// A volume whose driver ignores fsGroup belongs to root alone.
func TestInitializeForeignVolume(t *testing.T) {
	inShells(t, allShells, func(t *testing.T, sh shell) {
		p := newPod(t, sh)
		chown(t, p.data, 0, 0)
		require.NoError(t, os.Chmod(p.data, 0o555))
		requireRefused(t, p.run(t), p.data, "Permission denied", "fsGroup")
	})
}

// A configuration that the Pod may not read may be in good order, so it is left to a person.
func TestInitializeForeignConfig(t *testing.T) {
	inShells(t, allShells, func(t *testing.T, sh shell) {
		p := newPod(t, sh)
		p.mustRun(t)
		chown(t, p.config(), 0, 0)
		require.NoError(t, os.Chmod(p.config(), 0))
		tree := p.times(t)
		requireRefused(t, p.run(t), p.config(), "is not readable")
		assert.Equal(t, tree, p.times(t))
	})
}
