#!/bin/bash
# Renders every entry that a user applies and checks on the result what the project promises of it. Writes nothing to
# any cluster. Uses kustomize, or else kubectl's built-in one.
set -euo pipefail

cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
problems=0

problem() {
	printf 'render.sh: %s\n' "$*" >&2
	problems=$((problems + 1))
}

# render ENTRY leaves the entry's objects, one a file, in $work/ENTRY, named KIND_NAME.yaml.
render() {
	local entry=$1 out=$work/$1
	mkdir -p "$out"
	if command -v kustomize >/dev/null; then
		kustomize build "$entry" --output "$out" || problem "$entry cannot be rendered"
	else
		kubectl kustomize "$entry" --output "$out" || problem "$entry cannot be rendered"
	fi
}

# kinds ENTRY lists the kinds of an entry's objects.
kinds() { sed -n 's/^kind: //p' "$work/$1"/*.yaml | sort -u; }

# objects ENTRY KIND lists the files of an entry's objects of one kind.
objects() { grep -lx "kind: $2" "$work/$1"/*.yaml || true; }

forbid_kinds() {
	local entry=$1 kind
	shift
	for kind in "$@"; do
		if kinds "$entry" | grep -qx "$kind"; then problem "$entry must not contain a $kind"; fi
	done
}

require_kinds() {
	local entry=$1 kind
	shift
	for kind in "$@"; do
		kinds "$entry" | grep -qx "$kind" || problem "$entry lacks a $kind"
	done
}

# Shipped manifests name only images of the reserved domain, each with a version.
check_images() {
	local image
	while read -r image; do
		case $image in
		registry.example.invalid/*:latest) problem "$1: image $image moves: give it a version" ;;
		registry.example.invalid/*:*) ;;
		*) problem "$1: image $image is not registry.example.invalid/NAME:VERSION" ;;
		esac
	done < <(sed -nE 's/^ +(- )?image: //p' "$work/$1"/*.yaml)
}

check_hardened() {
	local file line
	for file in $(objects "$1" Deployment); do
		for line in 'runAsNonRoot: true' 'type: RuntimeDefault' 'allowPrivilegeEscalation: false' \
			'readOnlyRootFilesystem: true' 'limits:' 'requests:' 'livenessProbe:' 'readinessProbe:'; do
			grep -q "$line" "$file" || problem "$1: $(basename "$file") lacks $line"
		done
	done
}

# Cluster-wide, the operator has no verb on Secrets and can bind one role only.
check_roles() {
	local file
	for file in $(objects "$1" ClusterRole); do
		if grep -q -- '- \*$' "$file" || grep -q "'\*'" "$file"; then problem "$1: $(basename "$file") has a wildcard"; fi
		if ! grep -qx '  name: subpool-operator-pool' "$file" && grep -q -- '- secrets$' "$file"; then
			problem "$1: $(basename "$file") grants rights on Secrets cluster-wide"
		fi
	done
	for file in $(objects "$1" ClusterRoleBinding); do
		if grep -q 'subpool-operator-pool' "$file"; then problem "$1: $(basename "$file") binds the pool role cluster-wide"; fi
	done
}

# The Deployment starts with a configuration that is part of the same entry, and that cannot change under it.
check_operator_configuration() {
	local name file
	name=$(sed -nE 's/^ *- --operator-config=//p' "$work/$1"/*.yaml)
	file=$work/$1/v1_configmap_$name.yaml
	if ! [ -f "$file" ]; then
		problem "$1: --operator-config names $name, which is not in it"
	elif ! grep -qx 'immutable: true' "$file"; then
		problem "$1: ConfigMap $name must be immutable"
	fi
}

render config/default
render deploy/operator
for entry in config/default deploy/operator; do
	require_kinds "$entry" Namespace CustomResourceDefinition ServiceAccount ClusterRole ClusterRoleBinding \
		ConfigMap Deployment Service PodDisruptionBudget
	# Installing the operator installs no gateway, no pool and no Secret.
	forbid_kinds "$entry" Secret SubPool Gateway GatewayClass HTTPRoute StatefulSet DaemonSet
	check_hardened "$entry"
	check_roles "$entry"
	check_operator_configuration "$entry"
done
check_images deploy/operator

if [ "$problems" -gt 0 ]; then
	printf 'render.sh: %d problems\n' "$problems" >&2
	exit 1
fi
echo 'render.sh: config/default and deploy/operator render and keep the rules'
