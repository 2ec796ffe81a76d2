# Deputy's commands. `make help` lists them. ARGS goes to pytest, BENCH names a benchmark.

SHELL := /bin/sh
VENV := .venv/bin/python
# the first Python that is new enough, or the newest words to say that there is none
PYTHON = $(shell for python in python3.13 python3.12 python3.11 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && exit; done; echo none)
INSTALL = $(if $(filter none,$(PYTHON)),@echo "deputy: Python 3.11 or newer is needed and not on the PATH." >&2; exit 1,@$(PYTHON) -m launch.install)

IMAGE = deputy
ENGINE = $(shell command -v podman || echo docker)

.PHONY: help run test test-slow soak bench lint lock image chart messages pictures
.DEFAULT_GOAL := help

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name words; do printf '%-10s %s\n' "$$name" "$$words"; done

run:  ## start Deputy: PostgreSQL, web and workers; the first time installs what it needs
	$(INSTALL)
	@exec $(VENV) -m launch.run

test:  ## every check and all tests, on a database of their own (ARGS="-k word" for some tests)
	$(INSTALL) --dev
	@exec $(VENV) -m launch.check $(ARGS)

test-slow:  ## the long proofs
	$(INSTALL) --dev
	@exec $(VENV) -m launch.check --slow $(ARGS)

soak:  ## a mixed load under kills, MIN=10 minutes long, by SEED=n; then an audit
	$(INSTALL) --dev
	@SOAK_MINUTES=$(or $(MIN),10) SOAK_SEED=$(SEED) exec $(VENV) -m launch.check --slow tests/acceptance/test_soak.py -s $(ARGS)

lint:  ## style and types
	$(INSTALL) --dev
	@exec $(VENV) -m launch.check --lint

lock:  ## the lock files: every package with the digests of its files; after changing requirements*.txt (wants uv)
	@for name in requirements requirements-dev requirements-container; do \
		uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
			--custom-compile-command "make lock" $$name.txt -o $$name.lock || exit 1; done

image:  ## the container image (IMAGE=deputy; PYTHON_IMAGE=…@sha256:… for a base; IMAGE_ARGS for podman or docker)
	@$(ENGINE) build $(if $(findstring podman,$(ENGINE)),--format docker) -f Containerfile -t $(IMAGE) \
		$(if $(PYTHON_IMAGE),--build-arg PYTHON_IMAGE=$(PYTHON_IMAGE)) $(IMAGE_ARGS) .

chart:  ## what the Helm chart renders, checked against Kubernetes' schemas; after changing deploy/chart
	@test -x .chart/bin/python || { $(PYTHON) -m venv .chart && .chart/bin/pip install -q -r requirements-chart.txt; }
	@exec .chart/bin/python -m tests.chart $(ARGS)

messages:  ## the words of the interface: find new ones, compile, list what has no translation
	$(INSTALL) --dev
	@exec $(VENV) -m launch.messages

pictures:  ## the pictures of docs/tour.md, made anew
	$(INSTALL) --dev
	@exec $(VENV) -m tests.browser.pictures

bench:  ## every figure, and docs/benchmarks.md (BENCH=name for one: benchmarks/name.py)
	$(INSTALL) --dev
	@exec $(VENV) -m benchmarks$(if $(BENCH),.$(BENCH)) $(ARGS)
