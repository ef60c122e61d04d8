#!/bin/bash
# Usage: hack/generate.sh [--check]
# Makes what is generated from the API: deep copies, apply configurations, CRD, the page about conditions. With --check it
# changes nothing and fails when the repository holds something else. Works in a copy, so that a failing generator leaves the
# repository whole.
set -euo pipefail

cd "$(dirname "$0")/.."
generated=(api/v1alpha1/zz_generated.deepcopy.go api/v1alpha1/applyconfiguration config/crd/bases docs/conditions.md)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

cp -R go.mod go.sum api "$copy"
# Nothing generated outlives the type that it was made from.
(cd "$copy" && rm -rf "${generated[@]}" && mkdir -p config/crd/bases &&
	controller-gen object applyconfiguration crd paths=./api/v1alpha1 output:crd:dir=config/crd/bases)
mkdir "$copy/docs"
go run ./hack/docs/conditions >"$copy/docs/conditions.md"

status=0
for path in "${generated[@]}"; do
	if [ "${1:-}" = --check ]; then
		diff --recursive --new-file --unified "$path" "$copy/$path" || status=1
	else
		rm -rf "$path"
		cp -R "$copy/$path" "$path"
	fi
done
if [ "$status" -ne 0 ]; then
	echo 'Generated files are out of date (+ is what they should be). Run: make generate' >&2
fi
exit "$status"
