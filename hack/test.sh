#!/bin/bash
# Checks and tests everything, as `make test` does: first what later steps need, then every check, also after one has
# failed. However it ends, no lab of a test keeps running and the counts of executed tests come last.
set -uo pipefail

cd "$(dirname "$0")/.." || exit 1
results=bin/test-results
rm -rf "$results"
failed=()

# Labs of tests live apart from the user's own. /var/tmp, because images are too large for a /tmp in memory.
XDG_STATE_HOME=$(mktemp -d /var/tmp/subrelay.XXXXXX) || exit 1
export XDG_STATE_HOME

# Gives each step a process group of its own, so that it can be stopped with everything it started.
set -m

run() {
	hack/step.sh "$@" &
	step=$!
	wait "$step"
}

prepare() {
	run "$@" || {
		failed+=("$1")
		exit 1
	}
}

check() {
	run "$@" || failed+=("$1")
}

stop() {
	trap '' HUP INT TERM
	failed+=("stopped by a signal")
	kill -TERM -- "-$step" 2>/dev/null
	wait "$step"
	exit 1
}

# count RESULT prints how many tests and subtests ended as pass, fail or skip. Results of packages have no "Test".
count() {
	find "$results" -name '*.json' -exec cat {} + 2>/dev/null | grep -c "\"Action\":\"$1\".*\"Test\":"
}

take_down_labs() {
	local folder
	for folder in "$XDG_STATE_HOME"/subrelay-lab/*/; do
		[ -d "$folder" ] || continue
		echo "taking down a lab that a test has left"
		bin/lab down --name "$(basename "$folder")" || return 1
	done
	rm -rf --one-file-system "$XDG_STATE_HOME"
}

finish() {
	trap '' HUP INT TERM
	take_down_labs || failed+=("taking down labs (see $XDG_STATE_HOME)")
	echo "==> result after ${SECONDS}s"
	echo "$(count pass) passed, $(count fail) failed, $(count skip) skipped"
	if [ ${#failed[@]} -gt 0 ]; then
		printf 'FAILED: %s\n' "${failed[@]}"
		exit 1
	fi
}

trap finish EXIT
trap stop HUP INT TERM

prepare 'Debian packages' make debian-packages
prepare 'development tools' make tools
prepare 'operator and lab' make build lab
prepare 'components of the lab' bin/lab build
prepare 'images' make images

check 'verify' make --keep-going verify
check 'unit tests' make --keep-going test-unit
check 'lab tests' make test-lab
check 'integration tests' make test-integration
check 'chaos, short' make test-chaos-short
check 'end-to-end tests' make test-e2e
