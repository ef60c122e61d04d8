#!/bin/bash
# Usage: hack/build.sh VERSION FOLDER
# Builds the programs of the operator's image into the folder. The same sources, version and Go make the same bytes in any
# place: paths and the state of git stay out of them. GOOS and GOARCH choose the platform, as ever.
set -euo pipefail

version=$1
folder=$(realpath --canonicalize-missing "$2")
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
build() { go build -trimpath -buildvcs=false -ldflags "-s -w $1" -o "$folder/$2" "./cmd/$2"; }

build "-X main.version=$version" manager
build '' wait-for-isolation
