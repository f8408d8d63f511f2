# make run    set up, then scan your own home (the demonstration home, when yours has no MCP server)
# make test   set up, then everything that CI runs
# make bench  figures beside their floors and budgets
# make lock   write requirements/*.txt anew
#
# Two environments: .venv is what an endpoint has (no test tool, no click, no rich: docs/adr/0003), .venv-dev has the tools.

PYTHON ?= python3
BIN    := .venv/bin
DEV    := .venv-dev/bin
JOBS   ?= 2
PIP    := -m pip --disable-pip-version-check --quiet

.PHONY: setup dev run test lint types contracts unit coverage cases bench lock clean

setup: .venv/.ready
dev: .venv-dev/.ready

.venv/.ready: pyproject.toml requirements/base.txt requirements/build.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP) install --require-hashes -r requirements/base.txt -r requirements/build.txt
	$(BIN)/python $(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

.venv-dev/.ready: pyproject.toml requirements/dev.txt
	$(PYTHON) -m venv .venv-dev
	$(DEV)/python $(PIP) install --require-hashes -r requirements/dev.txt
	$(DEV)/python $(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

run: setup
	@$(BIN)/python tools/demo.py

test: setup dev lint types contracts unit coverage cases
	@echo "make test: everything that CI runs has passed"

lint: dev
	$(DEV)/ruff check .
	$(DEV)/ruff format --check .

types: dev
	$(DEV)/mypy

contracts: dev
	$(DEV)/lint-imports --no-cache

unit: dev
	rm -f .coverage .coverage.*
	$(DEV)/coverage run -m pytest -q -n $(JOBS)

coverage: dev
	$(DEV)/coverage combine -q
	$(DEV)/python tools/coverage_gate.py

cases: setup
	$(BIN)/python tools/cases.py

bench: setup
	$(BIN)/python tests/bench/run.py

lock: dev
	for set in base build dev; do \
	  case $$set in base) what=pyproject.toml;; build) what="--group build";; dev) what="pyproject.toml --group dev --group build";; esac; \
	  $(DEV)/uv pip compile -q $$what --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements/$$set.txt; \
	done

clean:
	rm -rf .venv .venv-dev build dist .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
