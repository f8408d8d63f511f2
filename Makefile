# make run    set up, scan your own home, then a console with a demonstration fleet, to which this machine reports
# make scan   set up, then scan your own home (the demonstration home, when yours has no MCP server)
# make test   set up, then everything that CI runs
# make bench  figures beside their floors and budgets
# make bench-console  the same of the console, with a large fleet on both engines (OPTIONS="--devices 2000" for a small one)
# make dist   wheel, sdist, self-contained build, .deb, .rpm and bill of materials, into dist/
# make fuzz  every fuzz target under atheris, two at a time, for MINUTES (30)
# make launch-check  what the real launchers run, against what is approved
# make render-check  what the real AI tools make of the files that halo plan renders
# make lock   write requirements/*.txt anew
#
# .venv is what an endpoint has (no test tool, no web framework, no click, no rich: docs/adr/0003), .venv-console what the
# console has, .venv-dev has the tools and both. .venv-dist builds what is released; only `make dist` and the test of the
# packages need it.

PYTHON ?= python3
BIN    := .venv/bin
DEV    := .venv-dev/bin
CONSOLE := .venv-console/bin
DIST   := .venv-dist/bin
FUZZ   := .venv-fuzz/bin
MINUTES ?= 30
JOBS   ?= 2
PIP    := -m pip --disable-pip-version-check --quiet

.PHONY: setup dev console-env dist-env dist verify-dist run scan test lint types contracts unit coverage cases bench bench-console fuzz launch-check render-check lock clean

setup: .venv/.ready
dev: .venv-dev/.ready
console-env: .venv-console/.ready
dist-env: .venv-dist/.ready

.venv/.ready: pyproject.toml requirements/base.txt requirements/build.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP) install --require-hashes -r requirements/base.txt -r requirements/build.txt
	$(BIN)/python $(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

.venv-console/.ready: pyproject.toml requirements/console.txt requirements/build.txt
	$(PYTHON) -m venv .venv-console
	$(CONSOLE)/python $(PIP) install --require-hashes -r requirements/console.txt -r requirements/build.txt
	$(CONSOLE)/python $(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

.venv-dev/.ready: pyproject.toml requirements/dev.txt
	$(PYTHON) -m venv .venv-dev
	$(DEV)/python $(PIP) install --require-hashes -r requirements/dev.txt
	$(DEV)/python $(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

.venv-dist/.ready: requirements/dist.txt
	$(PYTHON) -m venv .venv-dist
	$(DIST)/python $(PIP) install --require-hashes -r requirements/dist.txt
	@touch $@

.venv-fuzz/.ready: requirements/fuzz.txt
	$(PYTHON) -m venv .venv-fuzz
	$(FUZZ)/python $(PIP) install --require-hashes -r requirements/fuzz.txt
	@touch $@

run: setup console-env scan
	@$(CONSOLE)/python tools/together.py

scan: setup
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

# In two runs: the console's tests keep servers and databases running, and the agent's count their own child processes.
unit: dev dist-env
	rm -f .coverage .coverage.*
	$(DEV)/python -m pytest -q -rs -n $(JOBS) --dist loadgroup --cov --cov-report= --ignore tests/console
	$(DEV)/python -m pytest -q -rs -n $(JOBS) --dist loadgroup --cov --cov-report= --cov-append tests/console

coverage: dev
	$(DEV)/python tools/coverage_gate.py

cases: setup
	$(BIN)/python tools/cases.py

bench: setup
	$(BIN)/python tests/bench/run.py
	$(BIN)/python tests/bench/service.py
	$(BIN)/python tests/bench/latency.py

bench-console: dev
	$(DEV)/python -m tests.bench.console.run $(OPTIONS)

fuzz: .venv-fuzz/.ready
	$(FUZZ)/python -m tests.fuzz.run --minutes $(MINUTES)

launch-check: dev
	$(DEV)/python -m tests.launchcheck.run

render-check: dev
	$(DEV)/python tools/render_check.py

dist: dist-env
	$(DIST)/python packaging/build.py

verify-dist: dist-env
	$(DIST)/python tools/verify_dist.py

lock: dev
	for set in base build console dist fuzz dev; do \
	  case $$set in base) what=pyproject.toml;; build) what="--group build";; console) what="pyproject.toml --extra console --extra postgres";; dist) what="pyproject.toml --group dist --group build";; fuzz) what="pyproject.toml --group fuzz";; dev) what="pyproject.toml --extra console --extra postgres --group dev --group build";; esac; \
	  $(DEV)/uv pip compile -q $$what --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -o requirements/$$set.txt; \
	done

clean:
	rm -rf .venv .venv-console .venv-dev .venv-dist .venv-fuzz build dist .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
