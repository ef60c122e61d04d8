#!/bin/bash
# Usage: hack/verify-reproducible.sh VERSION
# Fails when the programs in bin differ from those that a copy of the sources in another folder makes, with nothing reused
# of what was compiled before. That takes as long as a first build.
set -euo pipefail

cd "$(dirname "$0")/.."
copy=$(mktemp -d)
# A failed build may leave folders without the right to change them.
trap 'chmod -R u+w "$copy"; rm -rf "$copy"' EXIT

mkdir "$copy/elsewhere"
cp -R go.mod go.sum api cmd controllers internal hack "$copy/elsewhere"
GOCACHE=$copy/cache "$copy/elsewhere/hack/build.sh" "$1" "$copy/programs"
[ "$("$copy/programs/manager" --version)" = "$1" ] || {
	echo "manager --version does not print $1" >&2
	exit 1
}
for program in manager wait-for-isolation; do
	cmp "bin/$program" "$copy/programs/$program"
	sha256sum "bin/$program"
done
