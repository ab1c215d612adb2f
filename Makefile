# make verify: all claims at smoke scale.  make test: the tests.  Both set everything up first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: verify test setup lint types layers examples docs products clean

# The stamp is older than what it depends on exactly when the environment must be made again.
$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "steppe needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[test]'
	touch $@

$(VENV)/ready-all: $(VENV)/ready
	$(PIP) -e '.[dev,torch,peers,docs]'
	touch $@

verify: $(VENV)/ready
	$(BIN)/steppe verify --scale smoke --store build/runs --report build/report.html

# All tests, or with ROOM=measures those of one room: its tests, the laws, and its doctests.
test: $(VENV)/ready
	$(BIN)/python -m pytest $(if $(ROOM),tests/$(ROOM) tests/laws steppe/$(ROOM))

# Everything: tests, lint, types, and every extra that exists.
setup: $(VENV)/ready-all

lint: $(VENV)/ready-all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/ready-all
	$(BIN)/mypy

layers: $(VENV)/ready-all
	$(BIN)/lint-imports

examples: $(VENV)/ready
	@set -e; for file in examples/*.py minimal.py; do echo "$$file"; $(BIN)/python $$file > /dev/null; done

# The site, in build/site: every page, the API, and the gallery, whose examples run.
docs: $(VENV)/ready-all
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site

# Products with curvature of every network at every size, compiled as users do, without the flags of the tests.
products: $(VENV)/ready
	$(BIN)/python tests/products.py

clean:
	rm -rf build $(VENV)
