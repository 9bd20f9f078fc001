# Everything sets itself up: a virtual environment in .venv, from the pinned versions.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: test reproduce bench check mutants lint clean

reproduce: .venv/runtime
	$(BIN)/wbsim reproduce P13 --out results/P13

test: .venv/development lint
	$(BIN)/pytest -n auto

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
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/development: .venv/runtime
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

.venv/mutants: .venv/development
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[mutants]'
	touch $@
