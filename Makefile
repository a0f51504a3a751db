# make demo   runs the first tutorial on real data and says where its results are
# make test   lint, types, tests
# make lab    opens the tutorials in JupyterLab
# make bench  compares lakekit with Delta, Iceberg, Paimon and Hudi (hours)
#
# Each of them first makes .venv and fetches the jars; the second time that takes no time and no network.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Installed as a copy, also by an editable install.
EXTENSION := extensions/lakekit-lab/labextensions/lakekit-lab/package.json

.PHONY: demo test lab bench browser clean

demo: $(VENV)/lab.done
	@$(BIN)/python notebooks/run.py

lab: $(VENV)/lab.done
	$(BIN)/jupyter lab --notebook-dir=notebooks

test: $(VENV)/dev.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder --durations 12 $(ARGS)

bench: $(VENV)/dev.done
	$(BIN)/python -m tests.benchmarks $(ARGS)

clean:
	rm -rf $(VENV) build dist

# The tests of the notebook need a browser: Debian's Chromium, or the one that LAKEKIT_CHROMIUM names.
$(VENV)/dev.done: | browser

browser:
	@command -v "$${LAKEKIT_CHROMIUM:-chromium}" >/dev/null || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq \
	    && apt-get install -qq --no-install-recommends chromium >/dev/null; \
	} || echo "No Chromium here: install it, or name one in LAKEKIT_CHROMIUM, to run tests/browser."

# Java is looked for before anything is downloaded: without one, the rest would be in vain.
$(VENV)/%.done: pyproject.toml lakekit/session/versions.py $(EXTENSION)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "lakekit needs Python 3.10 or newer, and this is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12")'
	@$(PYTHON) -m lakekit.session.java
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PYTHON) -m lakekit.session.versions | tr ' ' '\n' >$(VENV)/tested-versions.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]' --constraint $(VENV)/tested-versions.txt
	@$(BIN)/python -m lakekit.session
	@touch $@
