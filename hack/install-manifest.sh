#!/bin/bash
# Usage: hack/install-manifest.sh [IMAGE START_GATE_IMAGE]
# Prints deploy/operator as one file. With arguments it names those images instead of the ones that deploy/operator and the
# operator configuration have: a release names its own by digest.
set -euo pipefail

cd "$(dirname "$0")/.."
shipped=$(sed -nE 's/^ +image: (.+)/\1/p' config/default/operator-config.yaml)
manifest=$(kustomize build deploy/operator)
if [ $# -eq 2 ]; then
	# The start gate's comes first: both can be the same image before, and are told apart by where they stand.
	manifest=$(sed -E "/^ +startGate:/,/image:/ s#image: $shipped\$#image: $2#" <<<"$manifest" |
		sed -E "/^ +containers:/,/image:/ s#( image: ).*#\\1$1#")
	for image in "$@"; do
		grep -qE "^ +(- )?image: $image\$" <<<"$manifest" || {
			echo "install-manifest.sh: cannot put $image into what deploy/operator renders" >&2
			exit 1
		}
	done
elif [ $# -ne 0 ]; then
	echo 'usage: hack/install-manifest.sh [IMAGE START_GATE_IMAGE]' >&2
	exit 2
fi
printf '%s\n' "$manifest"
