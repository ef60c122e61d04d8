#!/bin/bash
# Usage: hack/generate.sh [FOLDER]
# Makes what is generated from the API types in FOLDER (default: this repository): deep copies, apply configurations, CRD.
# What was generated before is removed first, so that nothing outlives the type it was made from.
set -euo pipefail

cd "${1:-$(dirname "$0")/..}"
rm -rf api/v1alpha1/zz_generated.deepcopy.go api/v1alpha1/applyconfiguration config/crd/bases
mkdir -p config/crd/bases
controller-gen object applyconfiguration crd paths=./api/v1alpha1 output:crd:dir=config/crd/bases
