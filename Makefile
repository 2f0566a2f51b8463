# The two commands: make demo, make test. Each makes .venv from the lock file first; the second time that costs nothing.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test check faults bench bench-refresh bench-push bench-operations lock clean

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "livewell needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Set PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY)          ## a market kept fresh (ARGS="--for 30 --json", ARGS="--for 60 --faults"); ARGS=tour: 5,000 jobs, one of two workers killed
	@$(BIN)/livewell demo $(ARGS)

test: $(READY)          ## everything but what has the mark campaign (ARGS="tests/sql -k claim")
	$(BIN)/python -m pytest -n 3 --dist worksteal $(ARGS)  # three for two cores: much of a test is waiting

check: $(READY)         ## linters, types, layers, SQL
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/squawk src/livewell/*/sql/*.sql

faults: $(READY)        ## the whole fault campaign, one JSON line per code (ARGS="F-A2 F-B1", ARGS=--short); without ARGS also the long forms of other tests
	$(BIN)/python -m tests.faults.campaign $(ARGS)
	$(if $(ARGS),,$(BIN)/python -m pytest -m campaign --ignore=tests/faults/test_scenarios.py)
	$(if $(ARGS),,LIVEWELL_MODEL_SECONDS=1200 LIVEWELL_MODEL_EXAMPLES=5000 $(BIN)/python -m pytest tests/model -k "what_the_model_does")

bench: $(READY)         ## the queue beside its peers, in one run (ARGS="--lines drain,idle --pairs 3")
	$(BIN)/livewell bench queue $(ARGS)

bench-refresh: $(READY) ## the refresh engine, in one run (ARGS="--lines due --pairs 3")
	$(BIN)/livewell bench refresh $(ARGS)

bench-push: $(READY)    ## streams, in one run (ARGS="--lines storm")
	$(BIN)/livewell bench push $(ARGS)

bench-operations: $(READY) ## the scheduler, in one run (ARGS="--lines frozen")
	$(BIN)/livewell bench operations $(ARGS)

lock:                   ## after changing dependencies
	uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --upgrade -o requirements.lock

clean:
	rm -rf .venv .livewell .livewell-demo .pytest_cache .mypy_cache .ruff_cache
