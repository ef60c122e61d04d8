#!/bin/bash
# Usage: hack/demo.sh up|down
# up: starts a Kubernetes node, installs the operator as its manuals say, a stand-in for the shared Mihomo, and
# examples/subpool-internal.yaml with stand-in images, and follows the pool until it is Ready. down: removes all of it.
# Expects bin/lab and bin/images (see `make demo`).
set -euo pipefail

cd "$(dirname "$0")/.."
lab_name=demo
ready_timeout=180 # seconds

lab() { local verb=$1; shift; bin/lab "$verb" --name "$lab_name" "$@"; }
kubectl() { lab kubectl -- "$@"; }
step() { printf '==> [%3ds] %s\n' "$SECONDS" "$*"; }

# standins puts the images built from this tree in the place of those that the example names.
standins() {
	sed -E 's#registry\.example\.invalid/subrelay/(cpa|cpa-manager):.*#registry.example.invalid/subrelay-standin/\1:dev#' "$1"
}

# Ready as "STATUS REASON MESSAGE", empty before the operator has looked.
ready_condition() {
	kubectl get subpool demo-pool --output \
		'jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.reason} {.message}{end}'
}

follow_until_ready() {
	local deadline=$((SECONDS + ready_timeout)) before='' now
	while [ "$SECONDS" -lt "$deadline" ]; do
		now=$(ready_condition)
		if [ "$now" != "$before" ]; then
			printf '    [%3ds] Ready=%s\n' "$SECONDS" "$now"
			before=$now
		fi
		case $now in True*) return 0 ;; esac
		sleep 0.5
	done
	printf 'demo-pool did not become Ready within %d s. What there is:\n' "$ready_timeout" >&2
	kubectl describe subpool demo-pool >&2
	kubectl --namespace subpool-demo-pool get all,pvc >&2
	return 1
}

up() {
	step 'start a Kubernetes node'
	bin/lab up --name "$lab_name"
	step 'load images'
	lab load bin/images/*.tar
	step 'install the operator (deploy/operator)'
	kubectl apply --server-side --kustomize deploy/operator
	step 'install a stand-in for the shared Mihomo'
	kubectl apply --server-side --kustomize test/manifests/mihomo
	kubectl --namespace subpool-system rollout status deployment/subpool-operator --timeout=120s
	step 'create demo-pool (examples/subpool-internal.yaml with stand-in images)'
	standins examples/subpool-internal.yaml | kubectl apply --server-side --filename -
	follow_until_ready
	step 'Ready'
	kubectl get subpools --output wide
	kubectl --namespace subpool-demo-pool get statefulset,pod,pvc,service,networkpolicy
	next_steps
}

next_steps() {
	cat <<-END

		The node runs on. In this shell:

		  export KUBECONFIG=$(lab kubeconfig)
		  kubectl describe subpool demo-pool

		Reach the two applications, each from a terminal of its own:

		  kubectl -n subpool-demo-pool port-forward service/cpa 8317:8317
		  kubectl -n subpool-demo-pool port-forward service/cpa-manager 18317:18317

		Then try:

		  key() { kubectl -n subpool-demo-pool get secret subpool-credentials -o go-template="{{index .data \"\$1\" | base64decode}}"; }
		  curl -H "Authorization: Bearer \$(key cpa_client_key)" http://127.0.0.1:8317/v1/models
		  curl -H "Authorization: Bearer \$(key cpamp_admin_key)" http://127.0.0.1:18317/status
		  kubectl patch subpool demo-pool --type=merge -p '{"spec":{"suspend":true}}'   # stop it, keep its data
		  kubectl -n subpool-demo-pool delete networkpolicy default-deny               # comes back at once
		  kubectl delete subpool demo-pool                                             # removes it and its data

		Without a kubectl of your own: bin/lab kubectl --name $lab_name -- get subpools
		Remove everything: make demo-down
	END
}

case ${1:-} in
up) up ;;
down) bin/lab down --name "$lab_name" ;;
*)
	echo 'usage: hack/demo.sh up|down' >&2
	exit 2
	;;
esac
