#!/bin/bash
# Usage: hack/release-notes.sh TAG
# Prints what CHANGELOG.md says about a version. It is an error if that is nothing.
set -euo pipefail

cd "$(dirname "$0")/.."
notes=$(awk -v heading="## [${1#v}]" 'index($0, "## [") == 1 || /^\[/ { here = index($0, heading) == 1; next } here' CHANGELOG.md)
if [ -z "${notes//[[:space:]]/}" ]; then
	echo "release-notes.sh: CHANGELOG.md has nothing under \"## [${1#v}]\": move what is under Unreleased there" >&2
	exit 1
fi
printf '%s\n' "$notes"
