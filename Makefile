# The project's commands; `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Go uses all cores by itself.
.NOTPARALLEL:

# The pinned tools come before what the machine happens to have.
export PATH := $(CURDIR)/bin/tools:$(PATH)

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
# The image that deploy/operator names.
OPERATOR_IMAGE ?= $(shell sed -n 's/^ *newName: //p' deploy/operator/kustomization.yaml):$(shell sed -n 's/^ *newTag: //p' deploy/operator/kustomization.yaml)
# How `make undeploy` reaches the cluster. For the lab: make undeploy KUBECTL='bin/lab kubectl --'
KUBECTL ?= kubectl

MODULES := $(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path './bin/*' | sort))
SCRIPTS := $(shell find . -name '*.sh' -not -path './bin/*' | sort) .ci/run
STEP := hack/step.sh

.PHONY: help
help: ## List these targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##### Making things

.PHONY: generate
generate: bin/tools/controller-gen ## Make deep copies, apply configurations, the CRD and docs/conditions.md from the API.
	hack/generate.sh

.PHONY: build
build: ## Build the operator, bin/manager, and the pools' start gate, bin/wait-for-isolation.
	hack/build.sh '$(VERSION)' bin

.PHONY: lab
lab: ## Build the command that runs a Kubernetes node on this machine: bin/lab.
	go build -C lab -o ../bin/lab .

# The operator's has the labels that Dockerfile gives it.
.PHONY: images
images: build lab bin/THIRD_PARTY.txt ## Build the images of the operator and the stand-in applications: bin/images/*.tar.
	mkdir -p bin/images
	bin/lab image --tag $(OPERATOR_IMAGE) --output bin/images/operator.tar \
		--file bin/manager:/manager:0755 --file bin/wait-for-isolation:/wait-for-isolation:0755 \
		--file LICENSE:/licenses/LICENSE:0644 --file bin/THIRD_PARTY.txt:/licenses/THIRD_PARTY.txt:0644 \
		--label 'org.opencontainers.image.title=SubRelay Operator' \
		--label org.opencontainers.image.source=https://github.com/example-org/subrelay-operator \
		--label org.opencontainers.image.licenses=Apache-2.0 \
		--label 'org.opencontainers.image.version=$(VERSION)' --label 'org.opencontainers.image.revision=$(REVISION)' \
		--user 65532:65532 --entrypoint /manager
	test/images/build.sh

bin/THIRD_PARTY.txt: bin/tools/licences go.sum
	licences --texts ./cmd/manager ./cmd/wait-for-isolation >$@

.PHONY: dist
dist: build bin/tools/cyclonedx-gomod dist/install.yaml ## Make what a release hands out beside the image: dist/install.yaml, dist/*.cdx.json.
	hack/sbom.sh '$(VERSION)' bin/manager bin/wait-for-isolation

dist/install.yaml: bin/tools/kustomize hack/install-manifest.sh $(shell find config deploy/operator -name '*.yaml')
	mkdir -p $(@D)
	hack/install-manifest.sh >$@

.PHONY: licences
licences: bin/tools/licences ## Write LICENSES/THIRD_PARTY.md, the licences of what is linked into the programs.
	hack/licences.sh

.PHONY: fmt
fmt: bin/tools/golangci-lint ## Format the Go code of every module.
	golangci-lint fmt
	cd lab && golangci-lint fmt
	cd test/images && golangci-lint fmt
	cd test/scale && golangci-lint fmt

.PHONY: clean
clean: ## Remove everything that was built here. The lab's cache of components stays.
	rm -rf bin dist

##### Checking

.PHONY: lint
lint: lint-operator lint-lab lint-images lint-scale lint-scripts ## Run the linters on the Go code and the scripts.

.PHONY: lint-operator lint-lab lint-images lint-scale
lint-operator: module := .
lint-lab: module := lab
lint-images: module := test/images
lint-scale: module := test/scale
lint-operator lint-lab lint-images lint-scale: bin/tools/golangci-lint
	@$(STEP) 'golangci-lint in $(module)' env -C $(module) golangci-lint run

.PHONY: lint-scripts
lint-scripts: debian-packages
	@$(STEP) shellcheck shellcheck $(SCRIPTS)

.PHONY: verify
verify: verify-generated verify-modules verify-format lint verify-manifests verify-crd verify-dependencies verify-licences verify-versions verify-workflows ## Check all that needs no running cluster.

.PHONY: verify-generated
verify-generated: bin/tools/controller-gen
	@$(STEP) 'generated files are up to date' hack/generate.sh --check

.PHONY: verify-modules
verify-modules:
	@$(STEP) 'go.mod and go.sum are tidy' hack/verify-modules.sh $(MODULES)

.PHONY: verify-format
verify-format:
	@$(STEP) gofmt hack/verify-format.sh

.PHONY: verify-manifests
verify-manifests: bin/tools/kustomize
	@$(STEP) 'manifests keep the rules' deploy/tests/render.sh

# config/crd/previous is the definition of the last release, which each release replaces.
.PHONY: verify-crd
verify-crd:
	@$(STEP) 'SubPools of the last release stay valid' \
		go run ./hack/crd config/crd/previous/subrelay.example.com_subpools.yaml config/crd/bases/subrelay.example.com_subpools.yaml

.PHONY: verify-dependencies
verify-dependencies: bin/tools/govulncheck
	@$(STEP) 'no known vulnerabilities' hack/vulncheck.sh . lab test/images test/scale

.PHONY: verify-licences
verify-licences: bin/tools/licences
	@$(STEP) 'licences of linked modules are listed' hack/licences.sh --check

.PHONY: verify-versions
verify-versions:
	@$(STEP) 'versions agree' hack/verify-versions.sh

# actionlint has shellcheck look at the workflows' scripts.
.PHONY: verify-workflows
verify-workflows: bin/tools/actionlint debian-packages
	@$(STEP) 'workflows are well-formed' actionlint

.PHONY: verify-reproducible
verify-reproducible: build ## Check that another folder and an empty cache give the same programs. Compiles everything.
	@$(STEP) 'programs are reproducible' hack/verify-reproducible.sh '$(VERSION)'

##### Testing. Results go to bin/test-results, where `make test` counts them.

# $(call go-test,NAME,MODULE,ARGUMENTS) runs the tests of one module.
format = standard-quiet
go-test = mkdir -p bin/test-results && cd $(2) && \
	gotestsum --format $(format) --jsonfile $(CURDIR)/bin/test-results/$(1).json -- $(3)

.PHONY: test
test: ## Check and test everything; installs what it needs, leaves nothing running.
	hack/test.sh

.PHONY: test-unit
test-unit: test-unit-operator test-unit-lab test-unit-images test-unit-scale ## Run the tests of single packages, without a cluster.

.PHONY: test-unit-operator test-unit-lab test-unit-images test-unit-scale
test-unit-operator: bin/tools/gotestsum debian-packages
	$(call go-test,unit-operator,.,-race ./...)
test-unit-lab: bin/tools/gotestsum debian-packages
	$(call go-test,unit-lab,lab,./...)
test-unit-images: bin/tools/gotestsum debian-packages
	$(call go-test,unit-images,test/images,./...)
test-unit-scale: bin/tools/gotestsum
	$(call go-test,unit-scale,test/scale,./...)

.PHONY: test-lab
test-lab: bin/tools/gotestsum lab ## Test the lab itself: start nodes, use them, take them down. Needs root.
	$(call go-test,lab,lab,-count=1 -timeout=30m -tags=lab ./internal/node/endtoend/...)

.PHONY: test-integration
test-integration: bin/tools/gotestsum build lab dist/install.yaml ## Test the operator against a real API server.
	$(call go-test,integration,.,-count=1 -timeout=20m -tags=integration ./test/integration/... ./test/clusterwide/... ./test/availability/...)

# The seed is to be seen at once, and what happens on the way.
.PHONY: test-chaos test-chaos-short
test-chaos test-chaos-short: format := standard-verbose
test-chaos: bin/tools/gotestsum build lab ## Test 30 pools while users, administrators and the cluster run wild, and long pauses. SUBRELAY_CHAOS_SEED repeats a run.
	$(call go-test,chaos,.,-count=1 -timeout=30m -tags=chaos ./test/chaos/... ./test/availability/...)
test-chaos-short: bin/tools/gotestsum build lab
	$(call go-test,chaos,.,-count=1 -timeout=15m -short -tags=chaos ./test/chaos/...)

.PHONY: test-e2e
test-e2e: bin/tools/gotestsum images ## Test the operator on a real node. Needs root.
	$(call go-test,e2e,.,-count=1 -timeout=30m -tags=e2e ./test/e2e/...)

##### Measuring

.PHONY: sizing
sizing: build lab ## Measure the operator's memory, CPU time and requests by the number of pools (SIZING='--pools 100'); prints a table.
	go build -C test/scale -o $(CURDIR)/bin/sizing ./sizing
	cd test/scale && ../../bin/sizing $(SIZING)

.PHONY: bench
bench: build lab ## Measure the operator next to plain writes and peers, and judge it (BENCH='--quick' tries it). Results: bin/bench.
	go build -C test/scale -o $(CURDIR)/bin/benchmark ./bench
	cd test/scale && ../../bin/benchmark $(BENCH)

.PHONY: profile
profile: BENCH = --pools 200 --rounds 1 --only create
profile: build lab ## Show where the time of making 200 pools goes, and what memory they take. Profiles: bin/profile.
	go build -C test/scale -o $(CURDIR)/bin/benchmark ./bench
	rm -rf bin/profile
	cd test/scale && ../../bin/benchmark $(BENCH) --out ../../bin/profile --profile ../../bin/profile
	for profile in bin/profile/*.pprof; do \
		echo "==> $$profile"; \
		go tool pprof -top -cum -nodecount=60 bin/manager "$$profile"; \
	done

##### Trying it

.PHONY: demo
demo: images ## Start a node, install the operator and create demo-pool. Needs root.
	hack/demo.sh up

.PHONY: demo-down
demo-down: lab ## Remove everything that `make demo` made.
	hack/demo.sh down

.PHONY: undeploy
undeploy: bin/tools/kustomize ## Remove the operator from a cluster (KUBECTL); the CRD and all pools stay.
	kustomize build deploy/operator \
		| kustomize cfg grep --invert-match --annotate=false kind=CustomResourceDefinition \
		| $(KUBECTL) delete --ignore-not-found -f -

##### Tools, pinned by the modules below hack/tools

TOOLS := actionlint controller-gen cyclonedx-gomod gotestsum govulncheck kustomize licences

.PHONY: tools
tools: $(addprefix bin/tools/,golangci-lint $(TOOLS)) ## Build the pinned development tools: bin/tools/*.

.PHONY: debian-packages
debian-packages: ## Install the Debian packages that are missing. Needs root if there are any.
	@hack/debian-packages.sh

bin/tools/actionlint:      package := github.com/rhysd/actionlint/cmd/actionlint
bin/tools/controller-gen:  package := sigs.k8s.io/controller-tools/cmd/controller-gen
bin/tools/cyclonedx-gomod: package := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
bin/tools/gotestsum:       package := gotest.tools/gotestsum
bin/tools/govulncheck:     package := golang.org/x/vuln/cmd/govulncheck
bin/tools/kustomize:       package := sigs.k8s.io/kustomize/kustomize/v5
bin/tools/licences:        package := ./licences
bin/tools/golangci-lint:   package := sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter

$(addprefix bin/tools/,$(TOOLS)): hack/tools/go.mod hack/tools/go.sum
	nice -n 10 go build -C $(<D) -trimpath -o $(CURDIR)/$@ $(package)
	@touch $@
bin/tools/licences: $(wildcard hack/tools/licences/*.go)

bin/tools/golangci-lint: hack/tools/golangci-lint/go.mod hack/tools/golangci-lint/go.sum
	nice -n 10 go build -C $(<D) -trimpath -o $(CURDIR)/$@ $(package)
	@touch $@
