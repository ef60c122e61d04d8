#!/bin/bash
# Usage: hack/verify-versions.sh [TAG]
# Fails when the places that name the project's version or Go's do not agree. With a git tag it also checks that the tag is
# that version, and that the changelog tells about it.
set -euo pipefail

cd "$(dirname "$0")/.."
problems=0
problem() {
	printf 'verify-versions.sh: %s\n' "$*" >&2
	problems=$((problems + 1))
}

entry=deploy/operator/kustomization.yaml
configuration=config/default/operator-config.yaml
name=$(sed -n 's/^ *newName: //p' "$entry")
version=$(sed -n 's/^ *newTag: //p' "$entry")
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-z.-]+)?$ ]] || problem "$entry: newTag \"$version\" is not vMAJOR.MINOR.PATCH"

# The start gate may be of an older version, so that an upgrade of the operator restarts no pool.
gate=$(sed -nE 's/^ +image: (.+)/\1/p' "$configuration")
[ "${gate%:*}" = "$name" ] || problem "$configuration: startGate.image is ${gate%:*}, and $entry has $name"
[ "$(printf '%s\n' "${gate##*:}" "$version" | sort --version-sort | tail -1)" = "$version" ] ||
	problem "$configuration: startGate.image is of ${gate##*:}, which is later than $version in $entry"
grep -qF "image: $gate" docs/isolation.md || problem "docs/isolation.md does not show the start gate's image, $gate"

go=$(sed -nE 's/^FROM .*golang:([^ ]+) .*/\1/p' Dockerfile)
for workflow in .github/workflows/*.yaml; do
	while read -r used; do
		[ "$used" = "$go" ] || problem "$workflow sets up Go $used, and Dockerfile has $go: their programs would differ"
	done < <(sed -nE 's/^ +go-version: //p' "$workflow")
done

if [ $# -gt 0 ]; then
	[ "$1" = "$version" ] || problem "the tag is $1, and $entry has $version"
	hack/release-notes.sh "$1" >/dev/null || problems=$((problems + 1))
fi
[ "$problems" -eq 0 ]
