# make run: the main job on a fresh machine;  make test: the test suite;  make bench: the benchmarks.
# make mutants: deliberate mistakes, and the share of them that the tests catch (MUTANTS='--size 40 --seed 1').
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed
BENCH ?= pass sklearn small scaling imagenet ingest gradient relevance headline chi2 classes pca $(if $(DKL_DATA),covtype learned table expchi2)

.PHONY: run env test test-long bench mutants lint clean

run: env
	$(VENV)/bin/python -m dkl.quickstart output

env: $(STAMP)

$(STAMP): pyproject.toml deploy/constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("dkl needs Python 3.11 or newer, found " + sys.version) if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --constraint deploy/constraints.txt --editable '.[dev,dataframe]'
	touch $(STAMP)

test: env
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m pytest -n 2 --dist loadfile

test-long: env
	$(VENV)/bin/python -m pytest -m long

bench: env
	for name in $(BENCH); do $(VENV)/bin/python -m tests.benchmarks $$name || exit 1; done

mutants: env
	$(VENV)/bin/python -m tests.mutants $(MUTANTS)

lint: env
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(VENV)/bin/mypy

clean:
	rm -rf $(VENV) output
