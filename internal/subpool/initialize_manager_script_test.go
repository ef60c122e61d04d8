package subpool_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	managerProgram = "cpa-manager-plus"
	nextAdminKey   = "next-admin-key's"
)

// fakeManager is a cpa-manager whose database holds nothing but the admin key. It prints the key, which the real one
// does not do with a key from a file.
const fakeManager = `#!/bin/sh
if [ $# -ne 5 ] || [ "$1 $2 $4" != 'reset-admin-key --db-path --admin-key-file' ]; then exit 64; fi
/bin/cat "$5"
if [ -e "$3.in-use" ]; then printf 'the database\nis in use\n' >&2; exit 1; fi
if ! [ -s "$3" ]; then echo 'there is no database' >&2; exit 1; fi
/bin/cat "$5" >"$3"
`

// toManager turns a fresh Pod into what the script of cpa-manager sees: its own folder of the volume, and its program.
func toManager(t *testing.T, p *pod) {
	t.Helper()
	p.name = "initialize-manager.sh"
	p.copyScript(t)
	p.mkdir(t, filepath.Join(p.data, "cpa-manager"))
	p.data = filepath.Join(p.data, "cpa-manager")
	p.programs = []string{managerProgram}
	p.shell.path = p.root + ":" + p.shell.path
	require.NoError(t, os.WriteFile(filepath.Join(p.root, managerProgram), []byte(fakeManager), 0o755))
}

func newManagerPod(t *testing.T, sh shell) *pod {
	t.Helper()
	p := newPod(t, sh)
	toManager(t, p)
	return p
}

func (p *pod) database() string { return filepath.Join(p.data, "usage.sqlite") }

func (p *pod) managerMarker() string { return filepath.Join(p.data, ".subrelay-inputs") }

func adminMarker(key string) string {
	return fmt.Sprintf("admin-key-sha256 %x\n", sha256.Sum256([]byte(key)))
}

// changedAdminKey is a volume with a database that was in line with adminKey when another one came.
func changedAdminKey(t *testing.T, p *pod) {
	t.Helper()
	toManager(t, p)
	p.write(t, p.database(), adminKey)
	p.write(t, p.managerMarker(), adminMarker(adminKey))
	p.write(t, p.managerMarker()+".new-Ab12Cd", "left by an earlier kill")
	p.setKey(t, "cpamp_admin_key", nextAdminKey)
}

// At the first start cpa-manager takes the key from the Secret itself. It may have been killed while it made its
// database, and a marker may be that of a database which is gone.
func TestInitializeManagerWithoutDatabase(t *testing.T) {
	inShells(t, allShells, func(t *testing.T, sh shell) {
		p := newManagerPod(t, sh)
		tree := p.tree(t)
		for _, prepare := range []func(){
			func() {},
			func() { p.write(t, p.managerMarker(), adminMarker(adminKey)) },
		} {
			prepare()
			assert.Empty(t, p.mustRun(t).stdout)
			assert.Equal(t, tree, p.tree(t))
		}
		p.write(t, p.database(), "")
		tree = p.tree(t)
		assert.Empty(t, p.mustRun(t).stdout)
		assert.Equal(t, tree, p.tree(t))
	})
}

func TestInitializeManagerBringsKeyInLine(t *testing.T) {
	markers := map[string]func(t *testing.T, p *pod){
		"no marker":      func(*testing.T, *pod) {},
		"of another key": func(t *testing.T, p *pod) { p.write(t, p.managerMarker(), adminMarker("another")) },
		"cut": func(t *testing.T, p *pod) {
			p.write(t, p.managerMarker(), adminMarker(nextAdminKey)[:20])
		},
		"empty": func(t *testing.T, p *pod) { p.write(t, p.managerMarker(), "") },
	}
	inShells(t, allShells, func(t *testing.T, sh shell) {
		for name, marker := range markers {
			t.Run(name, func(t *testing.T) {
				p := newManagerPod(t, sh)
				p.write(t, p.database(), adminKey)
				marker(t, p)
				p.setKey(t, "cpamp_admin_key", nextAdminKey)

				r := p.mustRun(t)
				assert.Equal(t, "initialize-manager: brought the admin key in "+p.database()+" in line with the Secret\n", r.stdout)
				assert.Equal(t, []string{
					`. dgrwx------ ""`,
					fmt.Sprintf(".subrelay-inputs -rw------- %q", adminMarker(nextAdminKey)),
					fmt.Sprintf("usage.sqlite -rw------- %q", nextAdminKey),
				}, p.tree(t))

				tree, times := p.tree(t), p.times(t)
				assert.Empty(t, p.mustRun(t).stdout)
				assert.Equal(t, tree, p.tree(t))
				assert.Equal(t, times, p.times(t))
			})
		}
	})
}

func TestInitializeManagerRefusals(t *testing.T) {
	inShells(t, allShells, func(t *testing.T, sh shell) {
		t.Run("no key", func(t *testing.T) {
			p := newManagerPod(t, sh)
			path := filepath.Join(p.secrets, "cpamp_admin_key")
			require.NoError(t, os.Remove(path))
			requireRefused(t, p.run(t), path, "is missing or not readable", "subpool-credentials")
		})
		t.Run("database in use", func(t *testing.T) {
			p := newPod(t, sh)
			changedAdminKey(t, p)
			p.write(t, p.database()+".in-use", "")
			r := p.run(t)
			requireRefused(t, r, p.database(), "the database is in use", "end other programs")
			assert.NotContains(t, r.stdout+r.stderr, nextAdminKey)
			assert.Equal(t, adminKey, read(t, p.database()))

			require.NoError(t, os.Remove(p.database()+".in-use"))
			p.mustRun(t)
			assert.Equal(t, nextAdminKey, read(t, p.database()))
		})
		for name, content := range map[string]string{"database": adminKey, "no database": ""} {
			t.Run("read-only folder with "+name, func(t *testing.T) {
				p := newPod(t, sh)
				changedAdminKey(t, p)
				p.write(t, p.database(), content)
				require.NoError(t, os.Chmod(p.data, 0o555))
				requireRefused(t, p.run(t), "Permission denied")
				assert.Equal(t, content, read(t, p.database()))
			})
		}
	})
}

func TestInitializeManagerKilledAnywhere(t *testing.T) {
	inShells(t, imageShells, func(t *testing.T, sh shell) {
		undisturbed := newPod(t, sh)
		changedAdminKey(t, undisturbed)
		undisturbed.mustRun(t)
		t.Run("run again", func(t *testing.T) {
			eachKill(t, sh, changedAdminKey, func(p *pod, step int) {
				p.mustRun(t)
				require.Equal(t, undisturbed.tree(t), p.tree(t), "killed at step %d", step)
			})
		})
		t.Run("changed back", func(t *testing.T) {
			eachKill(t, sh, changedAdminKey, func(p *pod, step int) {
				p.setKey(t, "cpamp_admin_key", adminKey)
				p.mustRun(t)
				require.Equal(t, adminKey, read(t, p.database()), "killed at step %d", step)
				require.Equal(t, adminMarker(adminKey), read(t, p.managerMarker()))
			})
		})
	})
}

// The key is never printed, nor an argument of a command or in its environment.
func TestInitializeManagerKeepsKeyFromCommands(t *testing.T) {
	const hook = `hook() { { printf '%s\n' "$*"; /usr/bin/env; } >>"$RECORD"; }`
	inShells(t, allShells, func(t *testing.T, sh shell) {
		p := newPod(t, sh)
		changedAdminKey(t, p)
		record := p.note(t, "record", "")
		cmd := p.wrapped(t, append([]string{"cat", "mktemp", "mv", "rm", "sha256sum", "sync"}, p.programs...), hook)
		cmd.Env = append(cmd.Env, "RECORD="+record)
		r := finish(t, cmd)
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, nextAdminKey, read(t, p.database()))

		seen := read(t, record) + r.stdout + r.stderr
		assert.Contains(t, seen, managerProgram+" reset-admin-key")
		assert.NotContains(t, strings.ReplaceAll(seen, "''", "'"), nextAdminKey)
		assert.NotContains(t, seen, adminKey)
	})
}
