#!/bin/bash
# Fails when gofmt would change a Go file, and prints which.
set -euo pipefail

cd "$(dirname "$0")/.."
unformatted=$(gofmt -l .)
[ -z "$unformatted" ] && exit 0
printf 'not formatted:\n%s\nRun: gofmt -w on them, or make fmt\n' "$unformatted" >&2
exit 1
