# make run: the main job on a fresh machine;  make test: the test suite;  make bench: the benchmarks.
# make test PYTHON=python3.13 tries another Python, in an environment of its own (.venv-3.13).
# make test-torch: the tests of the extra `torch`, in an environment of its own (.venv-torch), with a pinned torch.
# make docs: the site, in build/site, from notebooks/; test-docs: opened in a browser (chromium must be installed).
# make test-deploy: images, batch systems and MPI, with the real programs (buildah, podman, Slurm).
# make mutants: deliberate mistakes, and the share of them that the tests catch (MUTANTS='--size 40 --seed 1').
PYTHON ?= python3
VENV ?= $(if $(filter python3,$(PYTHON)),.venv,.venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'))
INSTALLED := $(VENV)/.installed
TOOLS := $(VENV)/.tools
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check
BENCH ?= pass sklearn small dual scaling imagenet ingest gradient relevance headline chi2 classes pca losses equivalence path mkl_scaling master $(if $(DKL_DATA),covtype learned table expchi2 proba logistic wide mfeat ckl)

TORCH ?= torch==2.13.0

.PHONY: run env test test-long test-deploy test-torch docs test-docs bench mutants manifests lint clean

run: $(INSTALLED)
	$(VENV)/bin/python -m dkl.quickstart output

env: $(TOOLS)

# What dkl itself needs.
$(INSTALLED): pyproject.toml deploy/constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("dkl needs Python 3.11 or newer, found " + sys.version) if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --constraint deploy/constraints.txt --editable .
	touch $@

# The test tools, in the same environment.
$(TOOLS): $(INSTALLED) deploy/constraints-dev.txt
	$(PIP) --constraint deploy/constraints-dev.txt --editable '.[dev,dataframe]'
	touch $@

test: env
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m pytest -n 2 --dist loadfile

test-long: env
	$(VENV)/bin/python -m pytest -m long

# Installs system packages if it may (as root, with apt-get); ends with what it skipped, and why.
test-deploy: env
	$(VENV)/bin/python -m pytest -m deploy -n 0 -rs -v tests/deploy

test-torch:
	test -d .venv-torch || $(PYTHON) -m venv .venv-torch
	$(subst $(VENV),.venv-torch,$(PIP)) --constraint deploy/constraints-dev.txt '$(TORCH)' --editable '.[dev,dataframe,torch]'
	.venv-torch/bin/python -m pytest tests/torch tests/test_import_time.py
	.venv-torch/bin/python -m pytest tests/test_docs.py -k torch

docs:
	test -d .venv-docs || $(PYTHON) -m venv .venv-docs
	$(subst $(VENV),.venv-docs,$(PIP)) --constraint deploy/constraints-docs.txt --editable '.[docs]'
	rm -rf build/site notebooks/api
	.venv-docs/bin/sphinx-build -W --keep-going -q -d build/site-cache -b html notebooks build/site

test-docs: docs env
	$(VENV)/bin/python -m pytest tests/test_site.py -m 'site or not site'

# The plain manifests of deploy/kubernetes, from the chart.
manifests: env
	$(VENV)/bin/python -m tests.deploy.render

bench: env
	for name in $(BENCH); do $(VENV)/bin/python -m tests.benchmarks $$name || exit 1; done

mutants: env
	$(VENV)/bin/python -m tests.mutants $(MUTANTS)

lint: env
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(VENV)/bin/mypy

clean:
	rm -rf .venv .venv-* output build notebooks/api
