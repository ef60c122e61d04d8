#!/bin/sh
# Brings the admin key in the database of cpa-manager in line with the Secret, before cpa-manager starts. The program
# takes the key from the Secret at its very first start only; afterwards it has a command to replace the stored one.
# Runs in the image of cpa-manager. Every step may be cut short and repeated.
#
#   DATA_DIR     where the folder of cpa-manager on the volume is mounted, default /data
#   SECRETS_DIR  where the Secret is mounted, default /run/secrets
#
# A refusal is one line on standard error and exit code 1. The key is read by the commands that need it, from the file;
# it is never an argument, in the environment or printed.
set -eu
umask 077

data_dir=${DATA_DIR:-/data}
admin_key_file=${SECRETS_DIR:-/run/secrets}/cpamp_admin_key
database=$data_dir/usage.sqlite
marker=$data_dir/.subrelay-inputs # which key the database has, as a hash

fail() {
	printf 'initialize-manager: %s\n' "$(printf '%s' "$*" | tr '\n' ' ')" >&2
	exit 1
}

# The marker is away while the key is being replaced: a run that is cut short is then made up for even if the Secret is
# back at its old key. What the command prints besides errors is dropped, lest it should ever print a key.
replace_admin_key() {
	rm -f "$marker" &&
		cpa-manager-plus reset-admin-key --db-path "$database" --admin-key-file "$admin_key_file" >/dev/null
}

write_marker() {
	new=$(mktemp "$marker.new-XXXXXX") || return
	if printf '%s\n' "$inputs" | cat >"$new" && sync "$new" && mv "$new" "$marker"; then return; fi
	rm -f "$new"
	return 1
}

if ! [ -f "$admin_key_file" ] || ! [ -r "$admin_key_file" ]; then
	fail "$admin_key_file is missing or not readable: correct cpamp_admin_key in the Secret subpool-credentials"
fi
hash=$(sha256sum <"$admin_key_file")
inputs="admin-key-sha256 ${hash%% *}"

if ! [ -s "$database" ]; then
	# The first start will take the key from the Secret, which may be another one by then: no marker for it yet.
	reason=$(rm -f "$marker" 2>&1) || fail "$reason: make the pool's volume writable for the group of the Pod (fsGroup)"
elif ! [ -f "$marker" ] || [ "$(cat "$marker")" != "$inputs" ]; then
	reason=$(replace_admin_key 2>&1) ||
		fail "the admin key in $database was not replaced: $reason: end other programs that use the database;" \
			"if it is damaged, restore it from a backup or remove it, with which the collected usage is lost"
	reason=$(write_marker 2>&1) || fail "$marker was not written: $reason: free space on the pool's volume"
	printf 'initialize-manager: brought the admin key in %s in line with the Secret\n' "$database"
fi
rm -f "$marker".new-*
