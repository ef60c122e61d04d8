#!/bin/sh
# Prepares the volume of a pool before its applications start: the folders they mount and the configuration of cpa. A
# configuration that is already there belongs to its users and to cpa, which stores its hashed management key in it. It
# is written anew only if cpa could not run with it; when a key or the proxy changes, or a setting does not suit the Pod,
# only that setting does. Every step may be cut short and repeated.
#
#   MIHOMO_URL   the proxy for all outbound traffic (required)
#   LOG_LIMIT_MB how much cpa's logs may fill, in megabytes, default 100; only for a new configuration
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
log_limit=${LOG_LIMIT_MB:-100}
data_dir=${DATA_DIR:-/data}
secrets_dir=${SECRETS_DIR:-/run/secrets}
config=$data_dir/cpa/config.yaml
marker=$data_dir/cpa/.subrelay-inputs

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
		logs-max-total-size-mb: $log_limit
		error-logs-max-files: 10
		usage-statistics-enabled: true
		redis-usage-queue-retention-seconds: 3600
		ws-auth: true
		plugins:
		  enabled: false
		auth-dir: "/CLIProxyAPI/auths"
	END
}

# The marker says what was last put into config.yaml. The file itself cannot: cpa replaces the management key by a bcrypt
# hash, which nothing here can compare, and the pool's client key looks like those that users have added. The marker
# follows the Secret alone. A management key that a user has changed in config.yaml is therefore left as it is.
print_inputs() {
	printf "client-key '%s'\nmanagement-key-sha256 %s\nproxy-url '%s'\n" "$client_key" "$management_hash" "$proxy_url"
}

is_current() { print_inputs | cmp -s - "$marker" 2>/dev/null; }

# print_transition is the marker while config.yaml is being replaced. What changes is not in it, so that a run that is
# cut short is made up for even if the Secret is back at its old keys by then. It names every client key that may have
# been put into config.yaml. They stand before the last line, which may be all that a damaged marker has of one.
print_transition() {
	{ former_client_keys && printf "former-client-key '%s'\n" "$client_key"; } | awk '!seen[$0]++'
	print_inputs | while IFS= read -r input; do
		if has_input "$input"; then printf '%s\n' "$input"; fi
	done
	echo 'changing config.yaml'
}

former_client_keys() {
	if [ -f "$marker" ] && [ -r "$marker" ]; then sed -n "\$!s/^\(former-\)*client-key /former-client-key /p" "$marker"; fi
}

# has_input LINE finds a line in the marker.
has_input() {
	if ! [ -f "$marker" ] || ! [ -r "$marker" ]; then return 1; fi
	while IFS= read -r line; do
		if [ "$line" = "$1" ]; then return; fi
	done <"$marker"
	return 1
}

# pod_settings FILE prints the settings in which the Pod leaves no choice and a config.yaml has another one. The panel
# accepts them, and then cpa does not start, or not where the probes and the manager find it, to have them corrected.
pod_settings() {
	end="[[:space:]]*(#.*)?$"
	grep -Eq "^port:[[:space:]]+8317$end" "$1" || echo 'port 8317'
	if grep '^host:' "$1" | grep -Eqv "^host:([[:space:]]+(''|\"\"|['\"]?0\.0\.0\.0['\"]?|['\"]::['\"]))?$end"; then
		echo 'host ""'
	fi
	grep -Eq "^auth-dir:[[:space:]]+['\"]?(/cpa|/CLIProxyAPI/auths)(['\"/[:space:]]|$)" "$1" ||
		echo 'auth-dir "/CLIProxyAPI/auths"'
	enabled='^(tls:.*[{,]|[[:space:]])[[:space:]]*enable:[[:space:]]+(true|yes|on)([^[:alnum:]]|$)'
	if section tls "$1" | grep -Eiq "$enabled"; then echo 'tls/enable false'; fi
}

# is_settled FILE finds nothing to change in a config.yaml that cpa can read.
is_settled() { is_current && [ -z "$(pod_settings "$1")" ]; }

# These functions read and change single lines of config.yaml, and end the program when they are not certain of one.
# Keys are compared in single quotes, of which q is one.
# shellcheck disable=SC2016 # $0 is the line in awk
awk_functions='
	function put(line) { if (pass == 3) print line line_end }

	# value_length is the length of the value that the text begins with. It must not go on in the next line.
	function value_length(text) {
		if (text ~ /^(#|$)/) return 0
		if (text ~ "^[\"" q "]") { if (!match(text, quoted)) exit 1 }
		else if (text ~ /^([][{},&*!|>%@`]|[-?:]([ \t]|$))/ || !match(text, plain)) exit 1
		if (substr(text, RLENGTH + 1) !~ /^([ \t]+#|[ \t]*$)/) exit 1
		return RLENGTH
	}

	# with_value is the present line with another value after the first size characters.
	function with_value(size, value,   head, tail) {
		head = substr($0, 1, size)
		tail = substr($0, size + 1)
		tail = substr(tail, value_length(tail) + 1)
		return head (head ~ /:$/ ? " " : "") value (tail ~ /^#/ ? " " : "") tail
	}

	# requote is a value in single quotes.
	function requote(value) {
		if (value ~ "^" q) return value
		if (value ~ /^".*\\/) exit 1
		if (value ~ /^"/) value = substr(value, 2, length(value) - 2)
		gsub(q, q q, value)
		return q value q
	}

	function has_own_entry(   key) {
		for (key in former) if (key in entries) return 1
		return wanted["api-keys"] in entries
	}
'

# edit_config FILE prints a config.yaml with the inputs that are not in the marker and the settings that the Pod needs;
# every other line stays. It fails unless it is certain of every line that it has to understand: each must hold one
# whole value, and each of the api-keys have a line of its own. The first pass over FILE checks it and collects the
# api-keys, the second one prints.
edit_config() {
	{
		former_client_keys
		has_input "client-key '$client_key'" || printf "api-keys '%s'\n" "$client_key"
		has_input "management-key-sha256 $management_hash" ||
			printf "remote-management/secret-key '%s'\n" "$management_key"
		has_input "proxy-url '$proxy_url'" || printf "proxy-url '%s'\n" "$proxy_url"
		pod_settings "$1"
	} | awk -v q="'" "$awk_functions"'
		BEGIN {
			quoted = "^(" q "([^" q "]|" q q ")*" q "|\"([^\"\\\\]|\\\\.)*\")"
			word = "([^ \t#:]|[^ \t#][^ \t]*[^ \t:])"
			plain = "^" word "([ \t]+" word ")*"
		}
		FNR == 1 { pass++; block = ""; value_indent = -1; split("", seen) }
		pass == 1 {
			value = substr($0, length($1) + 2)
			if ($1 == "former-client-key") former[value]; else wanted[$1] = value
			if (split($1, path, "/") == 2) parents[path[1]]
			next
		}
		{ line_end = sub(/\r$/, "") ? "\r" : "" }
		/^[ \t]*(#|$)/ { put($0); next }
		{
			match($0, /^ */)
			indent = RLENGTH
			dash = $0 ~ /^ *-([ \t]|$)/
			if (value_indent >= 0 && (indent > value_indent || indent == value_indent && dash)) exit 1
			value_indent = -1
		}
		indent == 0 && !dash {
			if ($0 ~ (block == "" ? "^(%|---)" : "^[]}]")) { put($0); next }
			if (!match($0, /^[A-Za-z0-9_<.-]+[ \t]*:([ \t]+|$)/)) exit 1
			block = $0
			sub(/[ \t]*:.*/, "", block)
			child = ""
			seen[block]++
			managed = block in wanted || block in parents
			if (block in wanted && block != "api-keys") {
				$0 = with_value(RLENGTH, wanted[block])
				value_indent = 0
			} else if (managed && value_length(substr($0, RLENGTH + 1)) > 0) exit 1
			put($0)
			if (block == "api-keys" && managed && !has_own_entry()) put(prefix wanted[block])
			next
		}
		block == "api-keys" && managed {
			if (!match($0, /^ *-[ \t]+/) || child != "" && child != indent) exit 1
			child = indent
			start = RLENGTH
			key = requote(substr($0, start + 1, value_length(substr($0, start + 1))))
			if (pass == 2) {
				entries[key]
				if (prefix == "") prefix = substr($0, 1, start)
			} else if (key in former && key != wanted[block]) {
				if (wanted[block] in entries) next
				$0 = with_value(start, wanted[block])
				entries[wanted[block]]
			}
		}
		block in parents {
			if (child == "") child = indent
			if (indent < child) exit 1
			if (indent == child && match($0, /^ *[a-z-]+[ \t]*:([ \t]+|$)/)) {
				start = RLENGTH
				setting = block "/" $1
				sub(/:.*/, "", setting)
				if (setting in wanted) {
					seen[setting]++
					$0 = with_value(start, wanted[setting])
					value_indent = indent
				}
			}
		}
		{ put($0) }
		END {
			for (name in wanted) if (seen[name] != 1 && (name != "proxy-url" || seen[name])) exit 1
			if ("proxy-url" in wanted && !seen["proxy-url"]) put("proxy-url: " wanted["proxy-url"])
		}' - "$1" "$1"
}

# section NAME FILE prints a top-level block of a config.yaml and the first line of the next one.
section() { sed -n "/^$1:/,/^[^[:space:]#-]/p" "$2"; }

# config_problem FILE prints why cpa could not run with a config.yaml, nothing if it could. It looks for the lines
# without which cpa does not start, is open to everybody or locks the manager out, and judges no other setting.
config_problem() {
	value="[[:space:]]*('[[:space:]]*([^'[:space:]]|'')|\"[[:space:]]*[^\"[:space:]]|[^]['\"{}#[:space:]])"
	if ! [ -e "$1" ]; then
		echo 'does not exist'
	elif ! [ -f "$1" ]; then
		echo 'is not a file'
	elif od -An -v -tx1 "$1" | grep -q ' 00'; then
		echo 'has NUL bytes'
	elif ! grep -q '^port:' "$1"; then
		echo 'has no port'
	elif ! section api-keys "$1" | grep -Eq "^([[:space:]]*-[[:space:]]|api-keys:[[:space:]]+\[)$value"; then
		echo 'has no api-keys'
	elif section api-keys "$1" | grep -Eq "^[^#]*[['\",[:space:]]your-api-key-[0-9]"; then
		echo 'has an example key in api-keys'
	elif ! section remote-management "$1" | grep -Eq "^[[:space:]]+secret-key:[[:space:]]$value"; then
		echo 'has no secret-key in remote-management'
	elif ! grep -Eq "^auth-dir:[[:space:]]$value" "$1"; then
		echo 'has no auth-dir'
	elif [ -n "$(tail -c 1 "$1")" ] && ! tail -n 1 "$1" | grep -Eq \
		"^[[:space:]]*#|[:-][[:space:]]+('([^']|'')*'|\"[^\"]*\"|\[.*\]|\{.*\}|true|false)[[:space:]]*$"; then
		# Without a final newline a value must show its own end: half of an auth-dir would hide all accounts.
		echo 'ends within a line'
	elif ! is_settled "$1" && ! edit_config "$1" >/dev/null; then
		echo 'has a setting that has to change but is not written on a line of its own'
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

# stage FILE brings standard input safely to the disk beside FILE and prints the name that it has there.
stage() {
	staged=$(mktemp "$1.new-XXXXXX") || return
	if cat >"$staged" && sync "$staged"; then
		printf '%s\n' "$staged"
	else
		rm -f "$staged"
		return 1
	fi
}

write_marker() { new_marker=$(stage "$marker") && mv "$new_marker" "$marker"; }

print_successor() { if [ -n "$problem" ]; then print_config; else edit_config "$config"; fi; }

# update_config touches config.yaml only when its successor is safe on the disk, and only if it is still wrong then: a
# second copy of this script, in a Pod that runs on at a lost node, may have come first.
update_config() {
	successor=$(print_successor && echo .) || return # the dot keeps the newlines at the end
	new=$(printf '%s' "${successor%.}" | stage "$config") || return
	if is_settled "$config" && [ -z "$(config_problem "$config")" ]; then return; fi
	if { [ -n "$problem" ] || [ -z "$(config_problem "$new")" ]; } && print_transition | write_marker; then
		case $(config_problem "$config") in
		'' | 'does not exist') ;;
		*) set_aside_config ;;
		esac && mv "$new" "$config" && print_inputs | write_marker && return
	fi
	rm -f "$new"
	return 1
}

# try_twice makes up for what a second copy did in between: at its end it removes what this one has not finished.
try_twice() { update_config 2>/dev/null || { problem=$(config_problem "$config") && update_config; }; }

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
management_hash=$(printf '%s' "$management_key" | sha256sum)
management_hash=${management_hash%% *}
client_key=$(printf '%s' "$client_key" | sed "s/'/''/g")
management_key=$(printf '%s' "$management_key" | sed "s/'/''/g")

volume="free space on the pool's volume, or make it writable for the group of the Pod (fsGroup)"
for folder in cpa cpa/auths cpa/logs cpa/plugins cpa-manager; do
	folder=$data_dir/$folder
	reason=$(mkdir -p "$folder" 2>&1) || fail "$reason: $volume"
	[ -w "$folder" ] || fail "$folder is not writable: $volume"
done
if [ -f "$config" ] && ! [ -r "$config" ]; then
	fail "$config is not readable: give the file to the user of the Pod, or remove it to have it written anew"
fi

problem=$(config_problem "$config")
if [ -n "$problem" ] || ! is_settled "$config"; then
	reason=$(try_twice 2>&1) ||
		fail "$config ${problem:-does not have the settings that the pool needs} and cannot be written: $reason: $volume"
	case $problem in
	'') printf 'initialize: brought %s in line with the keys, the proxy URL and the Pod\n' "$config" ;;
	'does not exist') printf 'initialize: wrote %s\n' "$config" ;;
	*) printf 'initialize: %s %s: wrote it anew, kept the old one beside it\n' "$config" "$problem" ;;
	esac
fi
# What killed runs have left goes last: as long as config.yaml is missing, a second copy needs its own.
rm -f "$config".new-* "$marker".new-* 2>/dev/null || : # what the second copy removes at the same time
