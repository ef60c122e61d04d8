#!/bin/sh
# Prepares the volume of a pool before its applications start: the folders they mount and, once, the configuration of
# cpa. A configuration that is already there belongs to its users and to cpa, which stores its hashed management key in
# it: it stays as it is unless cpa could not run with it. Every step may be cut short and repeated.
#
#   MIHOMO_URL   the proxy for all outbound traffic (required)
#   DATA_DIR     where the volume is mounted, default /data
#   SECRETS_DIR  where the Secret is mounted, default /run/secrets
#
# A refusal is one line on standard error and exit code 1. Keys reach other commands through standard input only, never
# as an argument or in the environment, and are never printed.
set -eu
umask 077
# Ranges like a-z mean ASCII and messages are in English, whatever the locale of the image.
LC_ALL=C
export LC_ALL

proxy_url=${MIHOMO_URL:-}
data_dir=${DATA_DIR:-/data}
secrets_dir=${SECRETS_DIR:-/run/secrets}
config=$data_dir/cpa/config.yaml

fail() {
	printf 'initialize: %s\n' "$(printf '%s' "$*" | tr '\n' ' ')" >&2
	exit 1
}

# refuse_key NAME REASON names the file and the entry of the Secret that it comes from.
refuse_key() { fail "$secrets_dir/$1 $2: correct $1 in the Secret subpool-credentials"; }

# check_key NAME refuses a key that the applications would not all read alike. They trim blanks, down to nothing:
# without a client key cpa is open to everybody, and it bans a manager that comes with another management key.
# The bytes are compared in hexadecimal because a shell variable loses NULs and the newlines at its end: 0x and 1x are
# control characters, 8x to fx are beyond ASCII.
check_key() {
	if ! [ -f "$secrets_dir/$1" ] || ! [ -r "$secrets_dir/$1" ]; then refuse_key "$1" 'is missing or not readable'; fi
	bytes=$(od -An -v -tx1 "$secrets_dir/$1" | tr -d '\n')
	bytes=${bytes% 0a}
	case $bytes in
	'') refuse_key "$1" 'is empty' ;;
	*' 0a'*) refuse_key "$1" 'has more than one line' ;;
	*' '[0189a-f]?* | *' 7f'*) refuse_key "$1" 'has a character that is not printable ASCII' ;;
	' 20'* | *' 20') refuse_key "$1" 'begins or ends with a space' ;;
	esac
}

# check_proxy_url is strict because cpa connects directly, past the proxy, when it cannot use its proxy-url.
check_proxy_url() {
	label='[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?'
	port='([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])'
	form="(https?|socks5h?)://($label(\.$label)*\.?|\[[0-9A-Fa-f:.]+\])(:$port)?/?"
	printf '%s' "$proxy_url" | tr '\n' ' ' | grep -Eqx "$form" ||
		fail 'MIHOMO_URL is not like http://host:port (or https, socks5, socks5h; without user and path):' \
			'correct the URL of Mihomo in the operator configuration'
}

# print_config ends with auth-dir, which cpa needs and never changes: a file that was cut anywhere lacks it.
# The keys are printable ASCII, so that doubled single quotes are all the quoting they need.
print_config() {
	cat <<-END
		host: ""
		port: 8317
		api-keys:
		  - '$client_key'
		remote-management:
		  allow-remote: false
		  secret-key: '$management_key'
		  disable-control-panel: true
		  disable-auto-update-panel: true
		proxy-url: '$proxy_url'
		debug: false
		request-log: false
		logging-to-file: true
		logs-max-total-size-mb: 100
		error-logs-max-files: 10
		usage-statistics-enabled: true
		redis-usage-queue-retention-seconds: 3600
		ws-auth: true
		plugins:
		  enabled: false
		auth-dir: "/CLIProxyAPI/auths"
	END
}

# section NAME prints a top-level block of config.yaml and the first line of the next one.
section() { sed -n "/^$1:/,/^[^[:space:]#-]/p" "$config"; }

# config_problem prints why cpa could not run with config.yaml, nothing if it could. It looks for the lines without
# which cpa does not start, is open to everybody or locks the manager out, and judges no other setting.
config_problem() {
	value="[[:space:]]*('[[:space:]]*([^'[:space:]]|'')|\"[[:space:]]*[^\"[:space:]]|[^]['\"{}#[:space:]])"
	if ! [ -e "$config" ]; then
		echo 'does not exist'
	elif ! [ -f "$config" ]; then
		echo 'is not a file'
	elif od -An -v -tx1 "$config" | grep -q ' 00'; then
		echo 'has NUL bytes'
	elif ! grep -Eq "^port:[[:space:]]+[0-9]" "$config"; then
		echo 'has no port'
	elif ! section api-keys | grep -Eq "^([[:space:]]*-[[:space:]]|api-keys:[[:space:]]+\[)$value"; then
		echo 'has no api-keys'
	elif section api-keys | grep -Eq "^[^#]*[['\",[:space:]]your-api-key-[0-9]"; then
		echo 'has an example key in api-keys'
	elif ! section remote-management | grep -Eq "^[[:space:]]+secret-key:[[:space:]]$value"; then
		echo 'has no secret-key in remote-management'
	elif ! grep -Eq "^auth-dir:[[:space:]]$value" "$config"; then
		echo 'has no auth-dir'
	elif [ -n "$(tail -c 1 "$config")" ] && ! tail -n 1 "$config" | grep -Eq \
		"^[[:space:]]*#|[:-][[:space:]]+('([^']|'')*'|\"[^\"]*\"|\[.*\]|\{.*\}|true|false)[[:space:]]*$"; then
		# Without a final newline a value must show its own end: half of an auth-dir would hide all accounts.
		echo 'ends within a line'
	fi
}

# set_aside_config keeps what is at config.yaml as config.yaml.damaged-N, for the settings in it, and the newest three
# of them. A link leaves config.yaml in its place until it is replaced; a folder has to be moved.
set_aside_config() {
	last=0
	for kept in "$config".damaged-[1-9]*; do
		# shellcheck disable=SC3013 # -ef is in POSIX since 2024, and long in dash and busybox
		if [ "$config" -ef "$kept" ]; then return; fi # by a run that was cut short
		number=${kept##*-}
		case $number in *[!0-9]*) continue ;; esac
		[ "$number" -le "$last" ] || last=$number
	done
	kept=$config.damaged-$((last + 1))
	rm -rf "$config.damaged-$((last - 2))"
	ln "$config" "$kept" || mv -n "$config" "$kept" || [ -e "$kept" ]
}

# replace_config touches config.yaml only when its successor is safe on the disk, and only if it is still unusable then:
# a second copy of this script, in a Pod that runs on at a lost node, may have come first.
replace_config() {
	new=$(mktemp "$config.new-XXXXXX") || return
	if print_config >"$new" && sync "$new"; then
		case $(config_problem) in
		'') return ;;
		'does not exist') ;;
		*) set_aside_config ;;
		esac && mv "$new" "$config" && return
	fi
	rm -f "$new"
	return 1
}

for name in cpa_client_key cpa_management_key cpamp_admin_key; do
	check_key "$name"
done
client_key=$(cat "$secrets_dir/cpa_client_key")
case $client_key in
your-api-key-[0-9]*) refuse_key cpa_client_key 'is an example key, with which cpa serves no model' ;;
esac
management_key=$(cat "$secrets_dir/cpa_management_key")
case $management_key in
\$2[aby]\$*) refuse_key cpa_management_key 'begins like a bcrypt hash, which cpa takes for one' ;;
esac
[ ${#management_key} -le 72 ] || refuse_key cpa_management_key 'is longer than the 72 bytes that bcrypt takes'
check_proxy_url
client_key=$(printf '%s' "$client_key" | sed "s/'/''/g")
management_key=$(printf '%s' "$management_key" | sed "s/'/''/g")

volume="free space on the pool's volume, or make it writable for the group of the Pod (fsGroup)"
for folder in "$data_dir/cpa" "$data_dir/cpa/auths" "$data_dir/cpa/logs" "$data_dir/cpa-manager"; do
	reason=$(mkdir -p "$folder" 2>&1) || fail "$reason: $volume"
	[ -w "$folder" ] || fail "$folder is not writable: $volume"
done
if [ -f "$config" ] && ! [ -r "$config" ]; then
	fail "$config is not readable: give the file to the user of the Pod, or remove it to have it written anew"
fi

problem=$(config_problem)
if [ -n "$problem" ]; then
	# After a failure it is the file that counts: a second copy may have written it and removed what this one wrote.
	if ! reason=$(replace_config 2>&1) && [ -n "$(config_problem)" ]; then
		fail "$config $problem and cannot be written: $reason: $volume"
	fi
	case $problem in
	'does not exist') printf 'initialize: wrote %s\n' "$config" ;;
	*) printf 'initialize: %s %s: wrote it anew, kept the old one beside it\n' "$config" "$problem" ;;
	esac
fi
# What killed runs have left goes last: as long as config.yaml is missing, a second copy needs its own.
rm -f "$config".new-*
