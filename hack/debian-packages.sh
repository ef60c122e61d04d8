#!/bin/bash
# Installs the Debian packages that building and testing need and the machine lacks.
# The lab looks after its own: see lab/internal/hostpkg.
set -euo pipefail

packages=(
	busybox-static # the init script's second shell
	dash           # the init script's first shell
	gcc            # the race detector, runc
	git            # the version that goes into the manager
	libc6-dev      # as gcc
	libseccomp-dev # runc
	pkg-config     # as libseccomp-dev
	shellcheck
)

if ! command -v dpkg-query >/dev/null; then
	echo "This is not a Debian machine: install what these Debian packages hold, then run the make target that failed: ${packages[*]}" >&2
	exit 1
fi

missing=()
for package in "${packages[@]}"; do
	if [ "$(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
		missing+=("$package")
	fi
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
	echo "Debian packages are missing. Run: sudo apt-get install ${missing[*]}" >&2
	exit 1
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet=2
# Nothing that is installed is given up: apt-get fails instead, and a person decides. Something else on the machine may be
# installing: apt-get waits for it for these seconds.
apt-get install -o DPkg::Lock::Timeout=300 --quiet=2 --yes --no-install-recommends --no-remove "${missing[@]}"
