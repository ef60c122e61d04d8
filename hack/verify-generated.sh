#!/bin/bash
# Fails when the generated files are not what `make generate` makes. Works on a copy: the repository stays as it is.
set -euo pipefail

cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/config"
cp -R go.mod go.sum api "$copy"
cp -R config/crd "$copy/config"
hack/generate.sh "$copy"
status=0
for folder in api config/crd; do
	diff --recursive --unified "$folder" "$copy/$folder" || status=1
done
if [ "$status" -ne 0 ]; then
	echo "Generated files are out of date (+ is what they should be). Run: make generate" >&2
fi
exit "$status"
