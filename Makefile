# make install | demo | test | soak | bench | docs | site | lock | dist | clean
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed
PEERS := bench/.venv-peers/.installed
export NUMBA_CACHE_DIR ?= $(CURDIR)/.numba_cache
export PYTHONDONTWRITEBYTECODE :=  # write bytecode: tests start hundreds of processes, which share it

.PHONY: install demo test lint types suite soak bench docs site lock dist clean
.DEFAULT_GOAL := install

install: $(READY)  ## install sdcmap and the packages for its tests into .venv

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "sdcmap needs Python 3.11 or later: make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing sdcmap into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	@touch $@

demo: install  ## run the whole workflow on demo data: demo/map.html, demo/public/ and demo/report.html
	@$(BIN)/sdcmap demo -o demo

# five workers on two cores, because many tests wait for a process, a browser or a cluster; slow files come first
PYTEST := $(BIN)/pytest -n 5 --dist loadfile --no-loadscope-reorder
# these run first in two processes: they compile the kernels of every method and measure, which all workers then share
FIRST := tests/testing/test_revisions.py tests/bundle/test_releasing.py

test: install  ## run all checks and tests; all three parts run, and the target fails if one of them fails
	@$(MAKE) --no-print-directory --keep-going -j2 lint types suite

lint:
	$(BIN)/ruff check .; failed=$$?; $(BIN)/ruff format --check . && exit $$failed

types:  # first compile the tests once, before the workers of `suite` start: otherwise every worker would do so
	$(BIN)/pytest --collect-only -qq >/dev/null; $(BIN)/mypy

suite:
	$(BIN)/pytest -n 2 --dist load $(FIRST); failed=$$?; $(PYTEST) $(FIRST:%=--ignore=%) && exit $$failed

soak: install  ## run the long tests: 50 kills, minutes of fuzzing, 200 attacked releases, many examples
	SDCMAP_SOAK=1 $(PYTEST)

bench: install $(PEERS)  ## run the benchmark: a table in docs/benchmarks.md, and bench/results.json
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@$(BIN)/python bench/run.py

$(PEERS):  # other packages, in their own environment; a job whose package is missing is left out with a message
	@test -x bench/.venv-peers/bin/python || $(PYTHON) -m venv bench/.venv-peers
	@for name in splink recordlinkage pycanon; do \
		bench/.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check $$name || \
			echo "$$name cannot be installed. Its jobs are left out."; \
	done
	@touch $@

docs: install  ## write docs/reference: a page for each method and measure; commands, plan.toml and errors
	@$(BIN)/python docs/make_reference.py

lock: install  ## write the tested set of dependencies with hashes, licenses and bill of materials to supply/
	@$(BIN)/python tools/lock_dependencies.py

dist: site  ## build wheel and sdist with the site in dist/, and run the demo from each in its own environment
	@rm -rf dist build/dist
	@$(BIN)/python -m hatchling build
	@for package in dist/*.whl dist/*.tar.gz; do \
		venv=build/dist/$${package##*.}; $(PYTHON) -m venv $$venv && \
		$$venv/bin/python -m pip install --quiet --disable-pip-version-check $$package && \
		(cd $$venv && unset PYTHONPATH && bin/sdcmap docs --where && bin/sdcmap demo -o demo) || exit 1; \
	done

SITE := src/sdcmap/site

site: $(READY:installed=docs) docs  ## build the documentation in src/sdcmap/site and run its notebooks
	@rm -rf $(SITE) site/build/html
	@$(BIN)/sphinx-build --quiet --fresh-env --fail-on-warning --keep-going --jobs 2 -c site -d site/build/trees docs site/build/html
	@$(BIN)/python site/check.py site/build/html
	@cp -r site/build/html $(SITE)
	@$(BIN)/codespell --ignore-words site/words.txt --skip '*.html,*.svg,*.png' README.md CHANGELOG.md docs site/*.py

$(READY:installed=docs): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

clean:  ## remove everything that can be made again, but never a study or a release
	@rm -rf demo build dist docs/reference site/build $(SITE) .mypy_cache .ruff_cache .pytest_cache .hypothesis .numba_cache
	@find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
