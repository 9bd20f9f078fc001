# Everything sets itself up: a virtual environment in .venv, from the pinned versions.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# What is imported is compiled once and kept, whatever the caller's environment says; the rest never is.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt

.PHONY: test reproduce bench check mutants lint clean

reproduce: .venv/runtime
	$(BIN)/wbsim reproduce P13 --out results/P13

# mypy has one processor for half a minute; the tests need not wait for it.
test: .venv/development
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy & types=$$!; $(BIN)/pytest -n auto; tests=$$?; wait $$types && exit $$tests

lint: .venv/development
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/runtime
	$(BIN)/python tests/bench.py

# Full-size: the claims of every experiment (minutes).
check: .venv/development
	$(BIN)/pytest -m fullsize -n 2

# Plants faults in a part, e.g. `make mutants PART=models/block`, and prints those that no test sees (minutes).
mutants: .venv/mutants
	@test -n "$(PART)" || { echo "make mutants: PART is missing; give a folder, e.g. PART=models/block"; exit 2; }
	$(BIN)/python -m tests.mutants $(PART)

clean:
	rm -rf .venv .mutants results

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/runtime: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e .
	touch $@

.venv/development: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[dev]'
	touch $@ .venv/runtime

.venv/mutants: .venv/development
	$(INSTALL) -e '.[mutants]'
	touch $@
