# make install | demo | test | soak | bench | docs | site | dist | clean
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed
PEERS := bench/.venv-peers/.installed
export NUMBA_CACHE_DIR ?= $(CURDIR)/.numba_cache
export PYTHONDONTWRITEBYTECODE :=  # tests start hundreds of processes: what is compiled once serves them all

.PHONY: install demo test lint types suite soak bench docs site dist clean
.DEFAULT_GOAL := install

install: $(READY)  ## sdcmap and what tests need, into .venv

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "sdcmap needs Python 3.11 or later: make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing sdcmap into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	@touch $@

demo: install  ## the whole line on demo data: demo/map.html and demo/report.html
	@$(BIN)/sdcmap demo -o demo

# six workers on two cores: many tests wait for a process, a browser or a cluster; slow files come first
PYTEST := $(BIN)/pytest -n 6 --dist loadfile --no-loadscope-reorder
# every method and measure once, and releases: what one process compiles here, all workers find
FIRST := tests/testing/test_revisions.py tests/bundle/test_releasing.py

test: install  ## everything that must hold before a commit; every stage runs, and a failure of any fails the whole
	@$(MAKE) --no-print-directory --keep-going -j2 lint types suite

lint:
	$(BIN)/ruff check .; failed=$$?; $(BIN)/ruff format --check . && exit $$failed

types:  # beside the first tests: types, then the tests' own bytecode, which all workers would make at once
	$(BIN)/mypy; failed=$$?; $(BIN)/pytest --collect-only -qq >/dev/null; exit $$failed

suite:
	$(BIN)/pytest $(FIRST); failed=$$?; $(PYTEST) $(FIRST:%=--ignore=%) && exit $$failed

soak: install  ## the long tests in full: 50 kills, minutes of fuzzing a reader, 200 attacked releases, many more examples of every law
	SDCMAP_SOAK=1 $(PYTEST)

bench: install $(PEERS)  ## a table, and bench/results.json
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@$(BIN)/python bench/run.py

$(PEERS):  # packages of the field, apart from ours; a job whose package is missing says so and is left out
	@test -x bench/.venv-peers/bin/python || $(PYTHON) -m venv bench/.venv-peers
	@for name in splink recordlinkage pycanon; do \
		bench/.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check $$name || \
			echo "$$name cannot be installed: its jobs are left out"; \
	done
	@touch $@

docs: install  ## docs/reference: a page for each method and measure; commands, plan.toml and errors
	@$(BIN)/python docs/make_reference.py

dist: site  ## dist/: wheel and sdist with the site, and the demo from each in an environment of its own
	@rm -rf dist build/dist
	@$(BIN)/python -m hatchling build
	@for made in dist/*.whl dist/*.tar.gz; do \
		home=build/dist/$${made##*.}; $(PYTHON) -m venv $$home && \
		$$home/bin/python -m pip install --quiet --disable-pip-version-check $$made && \
		(cd $$home && unset PYTHONPATH && bin/sdcmap docs --where && bin/sdcmap demo -o demo) || exit 1; \
	done

SITE := src/sdcmap/site

site: $(READY:installed=docs) docs  ## the documentation, every notebook run: src/sdcmap/site, which a wheel carries and `sdcmap docs` opens
	@rm -rf $(SITE) site/build/html
	@$(BIN)/sphinx-build --quiet --fresh-env --fail-on-warning --keep-going --jobs 2 -c site -d site/build/trees docs site/build/html
	@$(BIN)/python site/check.py site/build/html
	@cp -r site/build/html $(SITE)
	@$(BIN)/codespell --ignore-words site/words.txt --skip '*.html,*.svg,*.png' README.md CHANGELOG.md docs site/*.py

$(READY:installed=docs): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

clean:  ## what can be made again; never a study or a release
	@rm -rf demo build dist docs/reference site/build $(SITE) .mypy_cache .ruff_cache .pytest_cache .hypothesis .numba_cache
	@find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
