# Start with `make run` and `make test`. Every target sets up what it needs in .venv; `make help` lists them all.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SECONDS ?= 60
MEGABYTES ?= 1239
OPTIONS ?=
QUICK := not (browser or real or slow or crash) or smoke
PYTEST = $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal $(OPTIONS)

unexport PYTHONDONTWRITEBYTECODE # tests start hundreds of processes, and each would compile every module again

.PHONY: help run test test-all check bench bench-thread bench-usage bench-index bench-search bench-relevance bench-watch bench-changes bench-page bench-redaction bench-keep bench-sdk bench-compare bench-lake fuzz docs clean

run: $(VENV)/.run ## set up, then print the overview of your home, or of a demo home if you have none
	@$(BIN)/threadline list --limit 1 >/dev/null 2>&1; \
	if [ $$? -ne 1 ]; then $(BIN)/threadline; else \
	  echo "You have no sessions yet. This is an example home (./demo-home):"; echo; \
	  [ -d demo-home ] || $(BIN)/threadline demo demo-home >/dev/null; \
	  $(BIN)/threadline --home demo-home; fi
	@echo; echo "To run these commands: . $(BIN)/activate"

test: $(VENV)/.test ## lint, types, layers and the quick tests: under three minutes on two cores
	@# In a new clone, one core compiles the tests while the other one checks types.
	@[ -d tests/__pycache__ ] || $(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1 & compiled=$$!; \
	$(MAKE) --no-print-directory check; status=$$?; wait $$compiled; exit $$status
	$(PYTEST) -m "$(QUICK)"

test-all: check $(VENV)/.interop ## the same with all tests (browser, real data, crashes, slow ones) and random seeds
	$(PYTEST) --hypothesis-profile=ci

check: $(VENV)/.test ## lint, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports & imports=$$!; $(BIN)/mypy && wait $$imports

bench: $(VENV)/.bench ## reading speed and memory, compared with json and orjson; relevance of search
	PYTHONPATH=. $(BIN)/python bench/read.py --megabytes $(MEGABYTES)
	PYTHONPATH=. $(BIN)/python bench/relevance.py

bench-thread: $(VENV)/.bench ## cost of threading per entry, in sessions of up to a million entries
	PYTHONPATH=. $(BIN)/python bench/thread.py

bench-usage: $(VENV)/.bench ## speed and counts of `usage`, compared with ccusage (npm fetches it)
	PYTHONPATH=. $(BIN)/python bench/usage.py

bench-index: $(VENV)/.bench ## first index, refreshes, usage and search on 2 GB, compared with other tools (pip fetches them)
	PYTHONPATH=. $(BIN)/python bench/index.py $(OPTIONS)

bench-search: $(VENV)/.bench ## speed of search; OPTIONS="--megabytes 200" for a quick run, OPTIONS=--help for more
	PYTHONPATH=. $(BIN)/python bench/search.py $(OPTIONS)

bench-relevance: $(VENV)/.bench ## relevance of search on judged queries: recall at ten, MRR and the worst misses
	PYTHONPATH=. $(BIN)/python bench/relevance.py $(OPTIONS)

bench-watch: $(VENV)/.bench ## latency, throughput and idle cost of `watch`
	PYTHONPATH=. $(BIN)/python bench/watch.py $(OPTIONS)

bench-changes: $(VENV)/.bench ## cost of detecting that nothing changed
	PYTHONPATH=. $(BIN)/python bench/changes.py $(OPTIONS)

bench-page: $(VENV)/.test ## a session of 50,000 entries in chromium: first entry and scrolling, compared with agentsview, or with a checkout (OPTIONS='--beside ../other')
	PYTHONPATH=. $(BIN)/python bench/page.py $(OPTIONS)

bench-redaction: $(VENV)/.bench ## speed of scanning and redacting, compared with a plain search
	PYTHONPATH=. $(BIN)/python bench/redaction.py $(OPTIONS)

bench-sdk: $(VENV)/.bench ## listing and reading sessions, compared with the official SDK (pip fetches it)
	PYTHONPATH=. $(BIN)/python bench/sdk.py $(OPTIONS)

bench-compare: $(VENV)/.bench ## compare with another checkout: OPTIONS="--base ../other"
	PYTHONPATH=. $(BIN)/python bench/compare.py $(OPTIONS)

bench-keep: $(VENV)/.bench ## size and speed of `keep` over ten days, compared with restic, borg and tar | zstd if installed
	PYTHONPATH=. $(BIN)/python bench/keep.py $(OPTIONS)

bench-lake: $(VENV)/.bench ## speed of pushing to a lake and building it, compared with the index, on four sizes from 200 MB to 2 GB
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[lake]'
	PYTHONPATH=. $(BIN)/python bench/lake.py $(OPTIONS)

fuzz: $(VENV)/.test ## look for bytes that break the reader for SECONDS (guided by coverage if atheris can be installed)
	-$(BIN)/pip install --quiet --disable-pip-version-check atheris
	$(BIN)/python tests/fuzz/fuzz_entries.py --seconds $(SECONDS)

docs: $(VENV)/.test ## regenerate docs/cli.md
	$(BIN)/python docs/write_cli.py

clean: ## delete everything that make created
	rm -rf $(VENV) dist demo-home bench/out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1 \2/p' Makefile | while read -r name text; do printf '%-16s %s\n' "$$name" "$$text"; done

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "threadline needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(BIN)/python pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cli,web,keep-encrypted]'
	@touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ $(VENV)/.run

# Libraries that read exports. Tests that need one are skipped without it. Harbor needs Python 3.12, so only its models are used.
$(VENV)/.interop: $(VENV)/.test
	-@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,interop]'
	-@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[lake-test]' # S3 and Sail on loopback
	-@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --ignore-requires-python 'harbor>=0.25,<0.26'
	@touch $@

$(VENV)/.bench: $(BIN)/python pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@ $(VENV)/.run
