# Each target makes what it needs in a virtual environment, .venv, with the pinned versions.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# Python keeps the bytecode of imported modules, even if the caller's environment forbids it.  pip compiles nothing.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt
SITE_OF := import sysconfig; print(sysconfig.get_path("platlib"))

.PHONY: test test-compiled reproduce bench compiled wheel check fuzz mutants lint notebook clean

reproduce: .venv/runtime
	@$(MAKE) --no-print-directory fastest
	$(BIN)/wbsim reproduce P13 --out results/P13

# mypy runs on one processor for half a minute, while Numba compiles on the other; then the tests begin.  Complete
# commands and reports (`long`) run in test-compiled, at a fifth of the cost.
test: .venv/development
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy & types=$$!; $(BIN)/python -m tests.warm && $(BIN)/pytest -n auto --durations=10 -m 'not (fullsize or long)'; tests=$$?; wait $$types && exit $$tests

# The tests with the compiled engine, and a comparison of its results with those of the source.
test-compiled: .venv/development
	@$(MAKE) --no-print-directory compiled
	WBSIM_ENGINE=compiled $(BIN)/python -m tests.warm
	WBSIM_ENGINE=compiled $(BIN)/pytest -n auto --durations=10 -m 'not (fullsize or stock or source)'

lint: .venv/development
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The benchmark.  With AGAINST=COMMIT: the CPU time of P13 at full size, in five pairs of runs with that commit.
bench: .venv/runtime
	@$(MAKE) --no-print-directory fastest
	$(BIN)/python -m $(if $(AGAINST),tests.bench_against $(AGAINST),tests.bench)

# The full-size runs: the claims of every experiment, on the compiled engine (CONTRIBUTING.md has the time).
check: .venv/development
	@$(MAKE) --no-print-directory compiled
	WBSIM_ENGINE=compiled $(BIN)/pytest -m fullsize -n 2

# Random scenarios on the source and on the compiled engine, and faulty inputs: for MINUTES, on all processors.
fuzz: .venv/development
	@$(MAKE) --no-print-directory compiled
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),5)

# Plant faults in a part, such as `make mutants PART=wbsim/models/block`, and print the faults that no test finds
# (minutes).  Without PART, plant faults in all parts.
mutants: .venv/mutants
	$(BIN)/python -m tests.mutants $(PART)

# The modules that a run spends its time in, as a library: five to six times as fast, with the same results.
compiled: .venv/compiler
	@WBSIM_ENGINE=compiled $(BIN)/python -c 'import wbsim.sim' 2> /dev/null || $(MAKE) --no-print-directory build-engine

.PHONY: build-engine
build-engine:
	@echo "building the compiled engine (a minute or two)"
	@site=$$($(BIN)/python -c '$(SITE_OF)') && rm -rf build "$$site/wbsim_compiled" && mkdir build && \
	    WBSIM_COMPILE=1 $(BIN)/python setup.py --quiet build_ext --build-lib "$$site" > build/log 2>&1 || \
	    { tail -n 20 build/log; exit 1; }

# A wheel in dist for this platform, with the compiled engine.
wheel: .venv/compiler
	WBSIM_COMPILE=1 $(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

# Open the notebooks in Jupyter, as .ipynb files next to their sources.
notebook: .venv/notebook
	@$(MAKE) --no-print-directory fastest
	$(BIN)/jupytext --quiet --to notebook notebooks/*.py
	$(BIN)/jupyter lab notebooks

# The compiled engine if it can be built, otherwise the interpreted engine.
.PHONY: fastest
fastest:
	@if command -v $(CC) > /dev/null; then $(MAKE) --no-print-directory compiled || \
	    echo "the compiled engine cannot be built here"; fi
	@$(BIN)/python -c 'from wbsim import sim; print("engine:", sim.build.engine(sim.COMPILED))'

clean:
	rm -rf .venv .mutants .bench build dist results

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/runtime: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e .
	touch $@

.venv/development: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[dev]'
	touch $@ .venv/runtime

.venv/compiler: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[compile]'
	touch $@ .venv/runtime

.venv/notebook: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[notebook]'
	touch $@ .venv/runtime

.venv/mutants: .venv/development
	$(INSTALL) -e '.[mutants]'
	touch $@
