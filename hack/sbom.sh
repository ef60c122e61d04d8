#!/bin/bash
# Usage: hack/sbom.sh VERSION PROGRAM...
# Writes dist/PROGRAM.cdx.json for each program, a CycloneDX list of the modules in it, with Go's own library, read from the
# program itself. Licences are in LICENSES/THIRD_PARTY.md: what the tool guesses of them is wrong too often.
set -euo pipefail

cd "$(dirname "$0")/.."
version=$1
shift
mkdir -p dist
for program in "$@"; do
	cyclonedx-gomod bin -json -std -noserial -notimestamp -version "$version" -output "dist/$(basename "$program").cdx.json" "$program"
done
