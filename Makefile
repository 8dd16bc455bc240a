# `make train` and `make test` set up everything they need; a second run repeats nothing.

# Python to make the environment with (python3), and pip's index for torch (pip's default). A user
# without a GPU gives the index of the CPU builds, which spares the download of the CUDA packages.
# Another one than before takes effect; a run that gives none keeps what is there.
PYTHON ?=
TORCH_INDEX ?=
# Which algorithm to train (the quickstart's), and further arguments for train, test and bench.
AGENT ?=
ARGS ?=
# How the extension is built; setup.py explains them.
BUILD_VARIABLES := FORCE_CUDA NO_CUDA MARINENAV_ARCH TORCH_CUDA_ARCH_LIST CUDA_HOME CUDA_PATH CXX
export CXX

VENV := .venv
PY := $(VENV)/bin/python
EXTENSION := marinenav_env/_ops.so
CSRC := $(shell find marinenav_env/csrc -name '*.h' -o -name '*.cuh' -o -name '*.cpp' -o -name '*.cu')
# torch is installed first and alone, so that it can come from its own index; the rest finds it there.
# With what a build needs besides it, the simulator is compiled while the rest is fetched.
# Python compiles the modules that it imports; pip would compile all, for half a minute.
PIP := $(PY) -m pip --disable-pip-version-check install --no-compile
# So Python keeps its bytecode also where the environment says otherwise, as in many containers: every
# program would compile torch anew, for some 7 s.
unexport PYTHONDONTWRITEBYTECODE
# As many processes as cores, each with one thread: threads that wait for each other lose more.
# tests/conftest.py says which file begins.
PYTEST := OMP_NUM_THREADS=1 $(PY) -m pytest --numprocesses auto --maxprocesses 8 --dist loadfile \
	--no-loadscope-reorder
# First of all, too: what fails beside pip's work is told far above the end.
CHECK_COMPILER = command -v $(CXX) >/dev/null || \
  { echo "error: $(CXX) not found: install g++, or name a C++20 compiler with CXX=" >&2; exit 1; }; \
  echo 'int main() {}' | $(CXX) -std=c++20 -x c++ -fsyntax-only - || \
  { echo "error: $(CXX) knows no C++20: install g++ 11 or later, or name one with CXX=" >&2; exit 1; }
# What was given last, read when a recipe runs.
CHOSEN_PYTHON = $(or $(shell cat build/PYTHON),python3)
CHOSEN_INDEX = $(shell cat build/TORCH_INDEX)

# Two things at a time, unless make was told how many. What `clean` removes nothing else may need.
ifeq (,$(filter -j% --jobs% --jobserver%,$(MAKEFLAGS))$(filter clean,$(MAKECMDGOALS)))
MAKEFLAGS += --jobs=2
endif

.PHONY: help setup train check test lint bench clean
.DELETE_ON_ERROR:

help:
	@echo "make train [ARGS=...]                 set up, then train with the preset quickstart"
	@echo "make train AGENT=... [ARGS=...]       set up, then train this algorithm with the preset short"
	@echo "make test [ARGS=...]                  set up, then lint and run the tests"
	@echo "make check                            set up, lint, and the tests that take seconds"
	@echo "make lint                             ruff and mypy only"
	@echo "make bench [ARGS=...]                 set up, then measure the throughput"
	@echo "make setup                            environment and extension only"
	@echo "make clean                            remove what set-up and tests made; runs/ stays"
	@echo "Variables: PYTHON, TORCH_INDEX, $(BUILD_VARIABLES)"

train: setup
	$(PY) train_RL_agents/train.py $(if $(AGENT),--preset short --agent $(AGENT),--preset quickstart) $(ARGS)

# All but the tests that train, compile or start processes; each room has some that remain.
check: setup lint
	$(PYTEST) -m "not slow" $(ARGS)

test: setup lint
	$(PYTEST) $(ARGS)

lint: $(VENV)/.dependencies
	$(PY) -m ruff check .
	$(PY) -m mypy

bench: setup
	$(PY) scripts/bench.py $(ARGS)

setup: $(VENV)/.dependencies $(EXTENSION)
	@echo "ready: . $(VENV)/bin/activate"

clean:
	rm -rf $(VENV) build dist marinenav.egg-info .pytest_cache .ruff_cache .mypy_cache
	rm -f marinenav_env/_ops*.so marinenav_env/_build_info.json
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment, with the repository on its path: both packages import from any folder.
$(VENV)/.created: build/PYTHON
	@$(CHECK_COMPILER)
	@command -v $(CHOSEN_PYTHON) >/dev/null || \
	  { echo "error: $(CHOSEN_PYTHON) not found: install Python >= 3.11, or name one with PYTHON=" >&2; exit 1; }
	@$(CHOSEN_PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $$($(CHOSEN_PYTHON) --version) is too old: Python >= 3.11 is needed, name one with PYTHON=" >&2; exit 1; }
	@echo "1/3 environment"
	@$(CHOSEN_PYTHON) -m venv --clear $(VENV) || \
	  { echo "error: $(CHOSEN_PYTHON) cannot make environments: install its venv module (Debian: python3-venv)" >&2; exit 1; }
	@$(PY) -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "marinenav.pth").write_text(str(pathlib.Path.cwd()) + "\n")'
	@touch $@

# pip leaves a torch of the right version in place, wherever it is from: one of another index goes.
$(VENV)/.torch: requirements.txt $(VENV)/.created build/TORCH_INDEX
	@echo "2/3 packages (some minutes)"
	$(if $(and $(wildcard $@),$(filter build/TORCH_INDEX,$?)),@! $(PY) -m pip show --quiet torch 2>/dev/null || \
	  $(PY) -m pip uninstall --quiet --quiet --yes torch)
	$(PIP) $(if $(CHOSEN_INDEX),--index-url $(CHOSEN_INDEX)) $$(grep '^torch==' requirements.txt)
	$(PIP) $$(grep -E '^(numpy|packaging|setuptools|typing_extensions)==' requirements.txt)
	@touch $@

$(VENV)/.dependencies: requirements.txt $(VENV)/.torch
	$(PIP) --requirement requirements.txt
	@touch $@

# The extension. Its record of the variables changes only when they do.
$(EXTENSION): setup.py marinenav_env/build_record.py $(CSRC) $(VENV)/.torch build/variables
	@$(CHECK_COMPILER)
	@echo "3/3 compiling the simulator"
	$(PY) setup.py --quiet build_ext --inplace

build/variables: FORCE
	@mkdir -p build
	@echo "$(foreach name,$(BUILD_VARIABLES),$(name)=$($(name)))" | cmp --silent - $@ || \
	  echo "$(foreach name,$(BUILD_VARIABLES),$(name)=$($(name)))" > $@

build/PYTHON build/TORCH_INDEX: build/%: FORCE
	@mkdir -p build
	@{ [ -e $@ ] && [ -z "$($*)" ]; } || echo "$($*)" | cmp --silent - $@ || echo "$($*)" > $@

FORCE:
