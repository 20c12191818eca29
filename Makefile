# Two commands do everything on a fresh machine with Python 3.11+, git and make:
#   make demo   every benchmark on the embedded sample, with models whose bias is known
#   make test   linting, types, doctests and the whole test suite
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Where local wheels lie, for uv as for pip (pip reads PIP_FIND_LINKS itself).
UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
ifneq ($(strip $(UV_FIND_LINKS)),)
export UV_FIND_LINKS
endif
INSTALL := $(BIN)/python -m uv pip install --quiet --compile-bytecode --python $(BIN)/python -c constraints.txt

.PHONY: help demo test check lint types unit constraints clean

help:
	@sed -n 's/^#  *\(make [a-z]*  .*\)/  \1/p' Makefile

demo: $(VENV)/.installed
	$(BIN)/equivox demo

test: lint types unit

check: test

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

unit: $(VENV)/.installed-dev
	$(BIN)/pytest -n auto --dist worksteal

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

constraints: $(VENV)/.uv
	$(BIN)/python -m uv pip compile --quiet --upgrade --no-header --no-annotate --python-version 3.11 --universal \
	  --all-extras setup.cfg -o constraints.txt
	$(BIN)/python -m pip list --format freeze | grep '^uv==' >> constraints.txt

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
