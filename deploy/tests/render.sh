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

# Every policy is in force and fails closed, and those who are exempt or confined are who the entry installs.
check_admission() {
	local file name account
	file=$(objects "$1" ServiceAccount)
	account=system:serviceaccount:$(sed -n 's/^  namespace: //p' "$file"):$(sed -n 's/^  name: //p' "$file")
	for file in $(objects "$1" ValidatingAdmissionPolicy); do
		name=$(sed -n '/^metadata:/,/^spec:/s/^  name: //p' "$file")
		grep -qx '  failurePolicy: Fail' "$file" || problem "$1: policy $name must fail closed"
		grep -q "'$account'" "$file" || problem "$1: policy $name does not name $account"
		grep -lx "  policyName: $name" "$work/$1"/*_validatingadmissionpolicybinding_*.yaml | xargs -r grep -qx '  - Deny' ||
			problem "$1: nothing binds policy $name to deny"
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

# ranges lists the address blocks in a text, one a line.
ranges() { grep -oE '[0-9a-f.:]+/[0-9]+' | sort; }

# The shared Mihomo has no way out but its nodes, and the wall behind its rules has the same ranges as they.
check_mihomo() {
	local entry=$1 config deployment policy line rules wall
	config=$(objects "$entry" ConfigMap)
	deployment=$work/$entry/apps_v1_deployment_mihomo-gateway.yaml
	policy=$work/$entry/networking.k8s.io_v1_networkpolicy_mihomo-gateway.yaml
	for line in 'replicas: 2' 'maxUnavailable: 0' 'automountServiceAccountToken: false' 'runAsUser: 65532' \
		"name: $(sed -n 's/^  name: //p' "$config")"; do
		grep -qE "^ +$line\$" "$deployment" || problem "$entry: the Deployment lacks $line"
	done
	for line in 'port: 7890' 'mode: rule' 'exclude-type: direct' 'proxies: \[REJECT\]' '- MATCH,nodes-or-nothing'; do
		grep -qE "^ +$line\$" "$config" || problem "$entry: config.yaml lacks $line"
	done
	if grep -qE '^ +(mixed-port|socks-port|external-controller[a-z-]*|secret|filter|exclude-filter):' "$config"; then
		problem "$entry: config.yaml opens another door"
	fi
	if grep -q 'DIRECT' "$config"; then problem "$entry: config.yaml connects directly"; fi
	rules=$(grep -E '^ +- IP-CIDR,|^ +- IP-CIDR6,2' "$config" | ranges)
	wall=$(sed -n '/ipBlock:/,$p' "$policy" | grep -vE 'cidr: (0\.0\.0\.0/0|2000::/3)$' | ranges)
	[ "$rules" = "$wall" ] || problem "$entry: rules and NetworkPolicy differ: $(diff <(echo "$rules") <(echo "$wall") || true)"
	if grep -qE '^  type: (LoadBalancer|NodePort)$' "$work/$entry"/*.yaml; then problem "$entry opens the Service to the outside"; fi
}

# The example's Secret is the one that the Deployment uses, under a name that changes with the content.
check_mihomo_example() {
	local secret
	secret=$(sed -n 's/^  name: //p' "$(objects "$1" Secret)")
	case $secret in
	mihomo-gateway-providers-?*) ;;
	*) problem "$1: Secret $secret is not mihomo-gateway-providers-HASH" ;;
	esac
	grep -qx "          secretName: $secret" "$work/$1"/apps_v1_deployment_mihomo-gateway.yaml ||
		problem "$1: the Deployment does not use Secret $secret"
}

# manifest ENTRY GROUP_VERSION KIND NAME names an object's file; the namespace stands in front when there are several.
manifest() { find "$work/$1" -name "*$2_$3_$4.yaml"; }

require_lines() {
	local entry=$1 file=$2 line
	shift 2
	for line in "$@"; do
		grep -qsE "^[ -]*$line\$" "$file" || problem "$entry: ${file##*/} lacks $line"
	done
}

# The front door lets in routes of pools alone, and cuts no answer that takes long or is silent for long.
check_gateway() {
	local entry=$1 gateway policy
	gateway=$(manifest "$entry" gateway.networking.k8s.io_v1 gateway subpool-edge)
	require_lines "$entry" "$(manifest "$entry" gateway.networking.k8s.io_v1 gatewayclass subpool-envoy)" \
		'controllerName: gateway.envoyproxy.io/gatewayclass-controller'
	require_lines "$entry" "$gateway" 'namespace: subpool-gateway' 'gatewayClassName: subpool-envoy' 'name: http' 'port: 80' \
		'from: Selector' 'subrelay.example.com/managed: "true"' 'kind: HTTPRoute'
	if grep -q 'from: All' "$gateway"; then problem "$entry: Gateway subpool-edge lets in everybody's routes"; fi
	for policy in backendtrafficpolicy clienttrafficpolicy; do
		require_lines "$entry" "$(manifest "$entry" gateway.envoyproxy.io_v1alpha1 "$policy" subpool-edge)" \
			'kind: Gateway' 'name: subpool-edge' 'streamIdleTimeout: 0s' 'tcpKeepalive:'
	done
	require_lines "$entry" "$(manifest "$entry" gateway.envoyproxy.io_v1alpha1 backendtrafficpolicy subpool-edge)" 'requestTimeout: 0s'
	forbid_kinds "$entry" Secret SubPool CustomResourceDefinition ClusterRole
}

# With HTTPS, plain HTTP does nothing but redirect.
check_https() {
	local entry=$1 gateway
	gateway=$(manifest "$entry" gateway.networking.k8s.io_v1 gateway subpool-edge)
	require_lines "$entry" "$gateway" 'name: https' 'port: 443' 'protocol: HTTPS' 'mode: Terminate' 'name: subpool-edge-tls' 'from: Same'
	if [ "$(grep -c 'from: Selector' "$gateway")" != 1 ]; then problem "$entry: pools' routes must fit one listener"; fi
	require_lines "$entry" "$(manifest "$entry" gateway.networking.k8s.io_v1 httproute https-redirect)" \
		'namespace: subpool-gateway' 'sectionName: http' 'scheme: https' 'statusCode: 301'
}

render config/default
render deploy/operator
for entry in config/default deploy/operator; do
	require_kinds "$entry" Namespace CustomResourceDefinition ServiceAccount ClusterRole ClusterRoleBinding \
		ConfigMap Deployment Service PodDisruptionBudget ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
	# Installing the operator installs no gateway, no pool and no Secret.
	forbid_kinds "$entry" Secret SubPool Gateway GatewayClass HTTPRoute StatefulSet DaemonSet
	check_hardened "$entry"
	check_roles "$entry"
	check_admission "$entry"
	check_operator_configuration "$entry"
done
check_images deploy/operator

render deploy/gateway/mihomo
render examples/mihomo
for entry in deploy/gateway/mihomo examples/mihomo; do
	require_kinds "$entry" ServiceAccount ConfigMap Deployment Service PodDisruptionBudget NetworkPolicy
	check_hardened "$entry"
	check_images "$entry"
	check_mihomo "$entry"
done
# The nodes are secret and come from the administrator.
forbid_kinds deploy/gateway/mihomo Secret
check_mihomo_example examples/mihomo

render deploy/gateway
render deploy/gateway-https
for entry in deploy/gateway deploy/gateway-https; do
	require_kinds "$entry" Namespace GatewayClass Gateway ClientTrafficPolicy BackendTrafficPolicy Deployment NetworkPolicy
	check_gateway "$entry"
	check_hardened "$entry"
	check_images "$entry"
done
forbid_kinds deploy/gateway HTTPRoute
check_https deploy/gateway-https

if [ "$problems" -gt 0 ]; then
	printf 'render.sh: %d problems\n' "$problems" >&2
	exit 1
fi
echo 'render.sh: config/default, deploy/operator, deploy/gateway, deploy/gateway/mihomo, deploy/gateway-https and' \
	'examples/mihomo render and keep the rules'
