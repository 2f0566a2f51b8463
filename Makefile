# The two commands: make demo, make test. Each makes .venv from a lock file first; the second time
# that costs nothing. Running needs requirements.lock only; tests and checks add the other one.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
DEV := .venv/.dev
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
COMPILE := uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url

.PHONY: demo test check faults bench bench-refresh bench-push bench-operations lock clean

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "livewell needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Set PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --require-hashes -r requirements.lock
	$(PIP) --no-build-isolation -e .
	@touch $@

$(DEV): requirements-dev.lock $(READY)
	$(PIP) --require-hashes -r requirements-dev.lock
	@touch $@

demo: $(READY)          ## a market kept fresh (ARGS="--for 30 --json", ARGS="--for 60 --faults"); ARGS=tour: 5,000 jobs, one of two workers killed
	@$(BIN)/livewell demo $(ARGS)

test: $(DEV)            ## everything but what has the mark campaign (ARGS="tests/sql -k claim")
	@$(BIN)/python -m compileall -q src  # once, not in each of the hundreds of processes that tests start
	$(BIN)/python -m pytest -n 4 --dist worksteal $(ARGS)  # four for two cores: much of a test is waiting

check: $(DEV)           ## linters, types, layers, SQL
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/squawk src/livewell/*/sql/*.sql src/livewell/apps/*/sql/*.sql
	$(BIN)/python -m tools.lengths

faults: $(DEV)          ## the whole fault campaign, one JSON line per code (ARGS="F-A2 F-B1", ARGS=--short); without ARGS also the long forms of other tests
	$(BIN)/python -m tests.faults.campaign $(ARGS)
	$(if $(ARGS),,$(BIN)/python -m pytest -m campaign --ignore=tests/faults/test_scenarios.py)
	$(if $(ARGS),,LIVEWELL_MODEL_SECONDS=1200 LIVEWELL_MODEL_EXAMPLES=5000 $(BIN)/python -m pytest tests/model -k "what_the_model_does")

bench: $(DEV)           ## the queue beside its peers, in one run (ARGS="--lines drain,idle --pairs 3")
	$(BIN)/livewell bench queue $(ARGS)

bench-refresh: $(DEV)   ## the refresh engine, in one run (ARGS="--lines due --pairs 3")
	$(BIN)/livewell bench refresh $(ARGS)

bench-push: $(DEV)      ## streams, in one run (ARGS="--lines storm")
	$(BIN)/livewell bench push $(ARGS)

bench-operations: $(DEV)   ## the scheduler, in one run (ARGS="--lines frozen")
	$(BIN)/livewell bench operations $(ARGS)

lock:                   ## after changing dependencies (ARGS=--upgrade for newer versions of everything)
	$(COMPILE) --all-extras --group build $(ARGS) -o requirements-dev.lock
	$(COMPILE) --group build --constraint requirements-dev.lock -o requirements.lock

clean:
	rm -rf .venv .livewell .livewell-demo .pytest_cache .mypy_cache .ruff_cache
