# Two commands do everything on a fresh machine: `make demo` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The demo alone needs neither the tools nor the extras; where they are, it takes them.
DEMO := $(if $(wildcard $(STAMP)),$(STAMP),$(VENV)/.demo)
# What is imported is compiled when it is; all of it would take a minute. It is kept, whatever
# the environment says: without that every process compiles torch anew, seconds each.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
  --constraint packaging/constraints.txt

.PHONY: demo test pytest test-library test-studio test-bench test-long setup browser lint types docs bench fuzz release clean

demo: $(DEMO)
	@echo "== demo: learning from pairs of scikit-learn's digits"
	@OMP_NUM_THREADS=1 $(BIN)/pairlearn demo --out demo.png
	@echo "== demo: done, the figure is in demo.png"

# Tests often wait, for a process or a browser; types are checked meanwhile.
test: lint browser
	@$(MAKE) --no-print-directory --jobs=2 types pytest
	@echo "== test: all checks passed"

# Three workers keep two cores busy. The files come in their order: doctests, short ones, are
# the last, so that no worker ends long before the others.
pytest: $(STAMP) browser
	@echo "== test: unit tests, property tests and doctests"
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not long" -n 3 --dist loadfile --no-loadscope-reorder

# A distribution alone; the library and the bench need no browser.
test-library test-bench: $(STAMP)
test-studio: $(STAMP) browser
test-library: PARTS := tests src
test-studio: PARTS := studio
test-bench: PARTS := bench/tests bench/src
test-library test-studio test-bench:
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not long" -n 3 --dist loadfile $(PARTS)

test-long: $(STAMP) browser
	@echo "== test-long: soaks and sweeps at full size, new examples for property tests"
	@$(BIN)/python -m pytest -m "long or hypothesis" --hypothesis-profile=explore
	@echo "== test-long: all checks passed"

lint: $(STAMP)
	@echo "== lint: ruff, and the order of the packages"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-logo

types: $(STAMP)
	@echo "== types: mypy --strict"
	@$(BIN)/mypy

setup: $(STAMP)
	@echo "== setup: $(VENV) is ready"

# The stamp is newer than what it was made from, so a second run installs nothing.
$(STAMP): pyproject.toml studio/pyproject.toml bench/pyproject.toml packaging/constraints.txt
	@echo "== setup: creating $(VENV) and installing library, studio and bench with their tools"
	@test -x $(BIN)/python || $(MAKE) --no-print-directory $(BIN)/python
	@$(INSTALL) --editable ".[dev]" --editable ./studio --editable ./bench
	@touch $@

$(VENV)/.demo: pyproject.toml packaging/constraints.txt
	@echo "== setup: creating $(VENV) and installing pairlearn with matplotlib"
	@test -x $(BIN)/python || $(MAKE) --no-print-directory $(BIN)/python
	@$(INSTALL) --editable ".[plot]"
	@touch $@

# Debian's Python comes without ensurepip; then virtualenv, from a folder of its own, does it.
$(BIN)/python:
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { rm -rf $(VENV) && \
	  $(PYTHON) -m pip install --quiet --disable-pip-version-check --target .bootstrap virtualenv && \
	  PYTHONPATH=.bootstrap $(PYTHON) -m virtualenv --quiet $(VENV) && rm -rf .bootstrap; } || \
	  { echo "setup needs venv or pip: apt-get install python3-venv"; rm -rf $(VENV) .bootstrap; exit 1; }

# The studio is tested in a real browser.
browser:
	@{ test -n "$$CHROMIUM" || command -v chromium >/dev/null; } && \
	  { test "$$(uname)" != Linux || command -v strace >/dev/null; } || { \
	  echo "== setup: installing Chromium and strace for the tests of the studio"; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
	    --no-install-recommends chromium strace >/dev/null; } || \
	  { echo "the tests of the studio need Chromium and strace: apt-get install chromium strace"; exit 1; }; }

docs: $(STAMP)
	@echo "== docs: building the site"
	@$(BIN)/python -m sphinx -b html -q -n -W --keep-going -d build/doctrees docs build/docs
	@$(BIN)/python docs/tests/site_links.py build/docs
	@echo "== docs: build/docs/index.html"

bench: $(STAMP)
	@$(BIN)/python bench/speed/risk_overhead.py

# Atheris looks for files that break a reader, some seconds each.
fuzz: $(STAMP)
	@$(INSTALL) --editable ".[fuzz]"
	@$(BIN)/python bench/speed/fuzz.py --seconds $${SECONDS_EACH:-60}

# Wheel and sdist, each installed into an empty environment and tried outside the repository.
release: $(STAMP)
	@$(INSTALL) --editable ".[release]"
	@rm -rf dist
	@for part in . studio bench; do $(BIN)/python -m build --outdir dist $$part || exit 1; done
	@$(BIN)/python -m twine check --strict dist/*
	@$(BIN)/python tests/try_package.py dist

clean:
	rm -rf $(VENV) dist demo.png .pytest_cache .mypy_cache .ruff_cache .hypothesis
