#!/bin/bash
# Usage: hack/step.sh NAME COMMAND [ARGUMENT]...
# Runs the command as a named step: its name comes first, the elapsed time after it. Ends with the command's exit code.
set -uo pipefail

name=$1
shift
echo "==> $name"
"$@"
code=$?
if [ "$code" -eq 0 ]; then
	echo "    done in ${SECONDS}s"
else
	echo "    FAILED after ${SECONDS}s (exit code $code): $name"
fi
exit "$code"
