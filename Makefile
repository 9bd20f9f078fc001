# Everything sets itself up: a virtual environment in .venv, from the pinned versions.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: test reproduce bench check lint clean

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

clean:
	rm -rf .venv results

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/runtime: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/development: .venv/runtime
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@
