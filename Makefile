# Every command a person or a build server needs. Only make, Python and its venv module are expected.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup serve test lint check bench benchprices benchscale benchpeers fuzz faults soak audit sbom format lock pictures clean

PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
# Test files run in this many processes; starting them pays off once the tests take more than some ten seconds.
WORKERS ?= 2
# More options for the command behind a target, such as `make test ARGS="-k price"`.
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime-stamp
DEV := $(VENV)/.dev-stamp
PIP_INSTALL := $(BIN)/python -m pip --disable-pip-version-check -q install
# What a start imports besides the service, and the service itself, so that no start has to compile it.
MAKE_READY := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -c 'import anyio, compileall, uvicorn, uvloop; \
	import costsvc.cli.serve; from costsvc import app; \
	[compileall.compile_dir(one.__path__[0], quiet=1) for one in (anyio, uvicorn, uvloop)]; \
	app.create_app(app.Settings.model_construct()); app.make_ready()'
# The project itself, from this folder: what builds it is in the lock, so nothing more is downloaded.
INSTALL_PROJECT := $(PIP_INSTALL) --no-deps --no-build-isolation -e .

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(RUNTIME) ## Install the service into .venv

serve: $(RUNTIME) ## Start the service on http://127.0.0.1:8000 (HOST=… PORT=…)
	@exec $(BIN)/costsvc serve --host $(HOST) --port $(PORT) $(ARGS)

test: $(DEV) ## Run the tests but those that break things (WORKERS=0 for one process, as a debugger needs)
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --ignore tests/faults $(ARGS)

lint: $(DEV) ## Check format, style, types and the arrows between layers
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

check: lint test ## Everything that has to pass before a commit

bench: $(DEV) ## Measure speed, as ratios within one run, under load with wrk (ARGS=SECONDS of each)
	@$(BIN)/python -m bench $(ARGS)

benchprices: $(DEV) ## Measure quotes and lists with a million prices (ARGS=PRICES, or PRICES and an empty database's URL)
	@$(BIN)/python -m bench.prices $(ARGS)

benchscale: $(DEV) ## Measure and draw how time grows with catalog, prices, batches and traces
	@$(BIN)/python -m bench.scaling $(ARGS)

benchpeers: $(DEV) ## Predict measured points beside other tools, each in .peers/ (ARGS=POINTS.CSV; needs the network)
	@$(BIN)/python -m bench.peers $(ARGS)

fuzz: $(DEV) ## Send odd inputs to every reader of strangers' bytes and every route (ARGS=INPUTS)
	@$(BIN)/python -m tests.fuzz $(ARGS)
	@COSTSVC_TEST_EXAMPLES=200 $(BIN)/pytest -q tests/api/test_schemathesis.py

faults: $(DEV) ## Break what three replicas stand on, again and again, and upgrade them (ARGS=ROUNDS, of ten kills of SQLite each)
	@COSTSVC_TEST_REPEATS=$(or $(ARGS),20) $(BIN)/pytest -q -rP --deselect tests/faults/test_soak.py tests/faults

soak: $(DEV) ## Ten minutes of mixed load: no fault, and memory stays flat (ARGS=SECONDS)
	@$(BIN)/python -m tests.faults.soak $(ARGS)

audit: ## Look up known weaknesses of the locked dependencies (needs the network)
	@PYTHON=$(PYTHON) .ci/audit

sbom: ## Write dist/sbom.json: what is installed, with versions and hashes (CycloneDX)
	@tools=$$(mktemp -d) && trap 'rm -rf "$$tools"' EXIT && mkdir -p dist && \
	$(PYTHON) -m venv "$$tools" && "$$tools/bin/python" -m pip --disable-pip-version-check -q install cyclonedx-bom && \
	"$$tools/bin/cyclonedx-py" requirements --pyproject pyproject.toml --output-reproducible -o dist/sbom.json requirements.lock

format: $(DEV) ## Format the code and sort its imports
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format

lock: ## Resolve both lock files anew, keeping pins that still fit (ARGS=--upgrade for the newest)
	@uv=$$(mktemp -d) && trap 'rm -rf "$$uv"' EXIT && \
	$(PYTHON) -m venv "$$uv" && "$$uv/bin/python" -m pip --disable-pip-version-check -q install uv && \
	resolve() { "$$uv/bin/uv" pip compile -q --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --group build $(ARGS) "$$@" pyproject.toml; } && \
	resolve -o requirements.lock && \
	resolve --group dev -c requirements.lock -o requirements-dev.lock

pictures: $(DEV) ## Take the pictures of the pages anew (needs chromium, LibreOffice and poppler-utils)
	@$(BIN)/python -m tests.browser.pictures
	@$(BIN)/python -m tests.spreadsheets.pictures

clean: ## Remove .venv, caches and build results (never a database)
	@rm -rf $(VENV) .peers build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "costsvc needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || \
		{ echo "$(PYTHON) cannot make a virtual environment; on Debian or Ubuntu: apt install python3-venv" >&2; exit 1; }

# pyproject.toml is here for the console script and the version; installing again takes seconds.
# Only what the service runs is compiled, its search to machine code: every installed file takes longer than downloading it.
$(RUNTIME): requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing the service into $(VENV) …"
	@$(PIP_INSTALL) --no-compile --require-hashes -r requirements.lock
	@$(INSTALL_PROJECT)
	@$(MAKE_READY)
	@touch $@

# The development lock holds the runtime lock, so both are then up to date.
$(DEV): requirements-dev.lock requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing the service and its development tools into $(VENV) …"
	@$(PIP_INSTALL) --require-hashes -r requirements-dev.lock
	@$(INSTALL_PROJECT)
	@$(MAKE_READY)
	@touch $(RUNTIME) $@
