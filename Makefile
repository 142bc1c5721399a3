# The two commands to know: `make run` and `make test`. Each sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SECONDS ?= 60
MEGABYTES ?= 1239
OPTIONS ?=
QUICK := not (browser or real or slow or crash) or smoke
PYTEST = $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal $(OPTIONS)

unexport PYTHONDONTWRITEBYTECODE # tests start hundreds of processes: without it, each compiles every module

.PHONY: run test test-all check bench bench-thread bench-usage bench-index bench-search bench-relevance bench-watch bench-changes bench-page bench-redaction bench-keep bench-sdk bench-compare bench-lake fuzz docs clean

run: $(VENV)/.run ## set up, then show what there is: your own home, or a demo home where there is none
	@$(BIN)/threadline list --limit 1 >/dev/null 2>&1; \
	if [ $$? -ne 1 ]; then $(BIN)/threadline; else \
	  echo "You have no sessions yet. This is an example home (./demo-home):"; echo; \
	  [ -d demo-home ] || $(BIN)/threadline demo demo-home >/dev/null; \
	  $(BIN)/threadline --home demo-home; fi
	@echo; echo "To run these commands: . $(BIN)/activate"

test: $(VENV)/.test ## set up, then lint, types, layers and the quick tier of the tests: three minutes on two cores
	@# In a new clone, one core compiles the tests while the other checks types.
	@[ -d tests/__pycache__ ] || $(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1 & compiled=$$!; \
	$(MAKE) --no-print-directory check; status=$$?; wait $$compiled; exit $$status
	$(PYTEST) -m "$(QUICK)"

test-all: check $(VENV)/.interop ## the same with every test: browser, real data, crashes, slow ones; properties with random seeds
	$(PYTEST) --hypothesis-profile=ci

check: $(VENV)/.test ## lint, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports & imports=$$!; $(BIN)/mypy && wait $$imports

bench: $(VENV)/.bench ## speed and memory beside the read limit, json and orjson, on a generated home; how good search is
	PYTHONPATH=. $(BIN)/python bench/read.py --megabytes $(MEGABYTES)
	PYTHONPATH=. $(BIN)/python bench/relevance.py

bench-thread: $(VENV)/.bench ## what threading costs per entry, up to a session of a million
	PYTHONPATH=. $(BIN)/python bench/thread.py

bench-usage: $(VENV)/.bench ## how fast usage is counted beside ccusage, and what each counts (npm fetches ccusage)
	PYTHONPATH=. $(BIN)/python bench/usage.py

bench-index: $(VENV)/.bench ## first index, refreshes, usage and search on 2 GB, beside its peers (pip fetches those)
	PYTHONPATH=. $(BIN)/python bench/index.py $(OPTIONS)

bench-search: $(VENV)/.bench ## search alone; OPTIONS="--megabytes 200" for a quick one, --help for others
	PYTHONPATH=. $(BIN)/python bench/search.py $(OPTIONS)

bench-relevance: $(VENV)/.bench ## how good the ranking is: judged queries, recall at ten and MRR, and the worst misses
	PYTHONPATH=. $(BIN)/python bench/relevance.py $(OPTIONS)

bench-watch: $(VENV)/.bench ## how soon watch shows an entry, how many a second it holds, what waiting costs
	PYTHONPATH=. $(BIN)/python bench/watch.py $(OPTIONS)

bench-changes: $(VENV)/.bench ## what it costs to learn that nothing changed
	PYTHONPATH=. $(BIN)/python bench/changes.py $(OPTIONS)

bench-page: $(VENV)/.test ## how soon a session of 50,000 entries shows and how it scrolls in chromium, beside agentsview
	PYTHONPATH=. $(BIN)/python bench/page.py $(OPTIONS)

bench-redaction: $(VENV)/.bench ## how fast texts are looked through for secrets, and redacted, beside a plain search
	PYTHONPATH=. $(BIN)/python bench/redaction.py $(OPTIONS)

bench-sdk: $(VENV)/.bench ## listing and reading sessions beside the official SDK (pip fetches it)
	PYTHONPATH=. $(BIN)/python bench/sdk.py $(OPTIONS)

bench-compare: $(VENV)/.bench ## compare with another checkout: make bench-compare OPTIONS="--base ../other"
	PYTHONPATH=. $(BIN)/python bench/compare.py $(OPTIONS)

bench-keep: $(VENV)/.bench ## size and speed of a keep over ten days beside restic, borg and tar | zstd, where they are there
	PYTHONPATH=. $(BIN)/python bench/keep.py $(OPTIONS)

bench-lake: $(VENV)/.bench ## how fast a lake is filled and built beside the index, on 200 MB and 2 GB
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[lake]'
	PYTHONPATH=. $(BIN)/python bench/lake.py $(OPTIONS)

fuzz: $(VENV)/.test ## look for bytes that break the reader (coverage-guided where atheris installs)
	-$(BIN)/pip install --quiet --disable-pip-version-check atheris
	$(BIN)/python tests/fuzz/fuzz_entries.py --seconds $(SECONDS)

docs: $(VENV)/.test ## write the generated pages again: docs/cli.md
	$(BIN)/python docs/write_cli.py

clean: ## take away what make has made
	rm -rf $(VENV) dist demo-home bench/out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

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

# Libraries that read exports. Tests that need one are skipped without it. Of Harbor, which needs Python 3.12, only the models are used.
$(VENV)/.interop: $(VENV)/.test
	-@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,interop]'
	-@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[lake-test]' # S3 and Sail on loopback
	-@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --ignore-requires-python 'harbor>=0.25,<0.26'
	@touch $@

$(VENV)/.bench: $(BIN)/python pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@ $(VENV)/.run
