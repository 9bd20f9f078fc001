# Everything sets itself up: a virtual environment in .venv, from the pinned versions.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# What is imported is compiled once and kept, whatever the caller's environment says; the rest never is.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt
SITE_OF := import sysconfig; print(sysconfig.get_path("platlib"))

.PHONY: test test-compiled reproduce bench compiled wheel check fuzz mutants lint notebook clean

reproduce: .venv/runtime
	@$(MAKE) --no-print-directory fastest
	$(BIN)/wbsim reproduce P13 --out results/P13

# mypy has one processor for half a minute, while Numba compiles on the other one; then the tests begin.  Whole
# commands and reports (`long`) are run by test-compiled, at a fifth of the cost.
test: .venv/development
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy & types=$$!; $(BIN)/python -m tests.warm && $(BIN)/pytest -n auto -m 'not (fullsize or long)'; tests=$$?; wait $$types && exit $$tests

# The same tests of the compiled engine, and that it gives what the source gives.
test-compiled: .venv/development
	@$(MAKE) --no-print-directory compiled
	WBSIM_ENGINE=compiled $(BIN)/python -m tests.warm
	WBSIM_ENGINE=compiled $(BIN)/pytest -n auto -m 'not (fullsize or stock or source)'

lint: .venv/development
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# With AGAINST=COMMIT: the CPU time of P13, full size, in five pairs against that commit.
bench: .venv/runtime
	@$(MAKE) --no-print-directory fastest
	$(BIN)/python -m $(if $(AGAINST),tests.bench_against $(AGAINST),tests.bench)

# Full-size: the claims of every experiment, on the compiled engine (CONTRIBUTING says how long it takes).
check: .venv/development
	@$(MAKE) --no-print-directory compiled
	WBSIM_ENGINE=compiled $(BIN)/pytest -m fullsize -n 2

# Whole runs of any scenario, on the source and compiled, and inputs with faults: for MINUTES, on all processors.
fuzz: .venv/development
	@$(MAKE) --no-print-directory compiled
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),5)

# Plants faults in a part, e.g. `make mutants PART=wbsim/models/block`, and prints those that no test sees (minutes);
# without PART in all of them.
mutants: .venv/mutants
	$(BIN)/python -m tests.mutants $(PART)

# The timed modules once more, as a library: five to six times as fast, with the same results.
compiled: .venv/compiler
	@WBSIM_ENGINE=compiled $(BIN)/python -c 'import wbsim.sim' 2> /dev/null || $(MAKE) --no-print-directory build-engine

.PHONY: build-engine
build-engine:
	@echo "building the compiled engine (a minute or two)"
	@site=$$($(BIN)/python -c '$(SITE_OF)') && rm -rf build "$$site/wbsim_compiled" && mkdir build && \
	    WBSIM_COMPILE=1 $(BIN)/python setup.py --quiet build_ext --build-lib "$$site" > build/log 2>&1 || \
	    { tail -n 20 build/log; exit 1; }

# The same in a wheel for this platform, in dist.
wheel: .venv/compiler
	WBSIM_COMPILE=1 $(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

# The notebooks in Jupyter, as notebooks of their own beside the sources.
notebook: .venv/notebook
	@$(MAKE) --no-print-directory fastest
	$(BIN)/jupytext --quiet --to notebook notebooks/*.py
	$(BIN)/jupyter lab notebooks

# The compiled engine where it can be built, the interpreted one otherwise.
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
