#!/bin/bash
# Usage: hack/verify-modules.sh MODULE...
# Fails when `go mod tidy` would change one of the modules (folders with a go.mod), and prints what it would change.
set -euo pipefail

status=0
for module in "$@"; do
	if ! go -C "$module" mod tidy -diff; then
		echo "not tidy. Run: go -C $module mod tidy" >&2
		status=1
	fi
done
exit "$status"
