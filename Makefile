# The one door: `make demo` runs the product, `make check test` is what CI runs, in that order.

PYTHON ?= python3
VENV ?= .venv
NAME ?= placement
BIN := $(abspath $(VENV))/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet
# The lock is closed (pip has nothing to resolve), and what is never imported need not be compiled: a third of the time.
PIP_LOCKED := $(PIP) --no-deps --no-compile
export PATH := $(BIN):$(PATH)
# Compiled modules are kept: a study is a hundred starts of Python, and some machines forbid it by this variable.
export PYTHONDONTWRITEBYTECODE :=
ifneq ($(words $(CURDIR)),1)
$(error make cannot work in a path with a space, "$(CURDIR)": clone elsewhere)
endif

.PHONY: demo build check check-deps test test-deps system-deps bench lock docs wheel bundle clean

demo: build
	@started=$$(date +%s); \
	snakemake --profile cluster_profiles/local && \
	echo "demo: finished in $$(( $$(date +%s) - started )) s"

# Stamps, so that nothing is installed again until a pin changes.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is older than 3.11: make PYTHON=python3.12 (or newer) $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV) || \
	  { echo "no venv module: apt-get install python3-venv python3-dev"; exit 2; }

$(VENV)/.lock: envs/lock.txt envs/mpi.txt | $(VENV)/bin/python
	@echo "installing pinned packages into $(VENV)"
	@# Two at a time, since unpacking is the work and torch is as large as all the others.
	@$(PIP_LOCKED) $$(grep '^torch==' envs/lock.txt) & torch=$$!; \
	grep -v '^torch==' envs/lock.txt >$(VENV)/rest.txt; $(PIP_LOCKED) -r $(VENV)/rest.txt; rest=$$?; \
	wait $$torch && exit $$rest
	@# What torch's own build needs besides, at the versions that it names itself: CUDA's libraries, or nothing for the CPU's.
	@$(PIP) --no-compile $$(grep '^torch==' envs/lock.txt)
	@# A site's own MPI is kept where there is one; PyPI's MPICH needs no root.
	@command -v mpiexec >/dev/null || $(PIP_LOCKED) -r envs/mpi.txt
	@touch $@

$(VENV)/.check: envs/check.txt $(VENV)/.lock
	$(PIP_LOCKED) -r envs/check.txt
	@touch $@

$(VENV)/.test: envs/test.txt $(VENV)/.lock
	$(PIP_LOCKED) -r envs/test.txt
	@touch $@

NATIVE := src/windtunnel/native/libwindtunnel.so
$(NATIVE): | build/.folder
build/.folder:
	@mkdir -p build && touch $@

$(NATIVE): $(wildcard src/windtunnel/native/csrc/* src/windtunnel/native/csrc/*/*) CMakeLists.txt pyproject.toml $(VENV)/.lock
	@echo "building the C++ library"
	@cmake -S . -B build/native -G Ninja >build/cmake.log && cmake --build build/native >>build/cmake.log || \
	  { cat build/cmake.log; echo "no C++ compiler? apt-get install g++"; exit 2; }
	$(PIP) --no-build-isolation --no-deps --editable .
	@touch $@

build: $(NATIVE)

check-deps: build $(VENV)/.check
test-deps: build $(VENV)/.check $(VENV)/.test

check: check-deps
	ruff check .
	ruff format --check .
	mypy
	lint-imports
	snakefmt --check Snakefile workflow
	snakemake --lint
	python tools/settings_reference.py --check

system-deps:
	@tools/system-deps

# Two workers, since there is more waiting than computing; a file's tests share what they set up. The workflow's files
# are last, and share the time of the two studies on the testbed.
test: system-deps test-deps
	pytest -q -n 2 tests/unit
	pytest -q -n 2 --dist loadfile --no-loadscope-reorder --durations=25 tests/integration

bench: build $(VENV)/.test
	@python -m benchmarks $(NAME)

docs: build
	python tools/settings_reference.py

lock: check-deps test-deps
	python tools/lock.py

wheel: build $(VENV)/.test
	python -m build --wheel --no-isolation --outdir dist .

# A folder of wheels that installs without a network: docs/cluster.md.
bundle: build
	python -m tools.bundle

clean:
	rm -rf build dist .pytest_cache .ruff_cache .mypy_cache $(NATIVE)
