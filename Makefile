# `make perf` (K=scan selects), `make test`, `make test-quick` for the rooms that compile no JAX program, and `make docs` for the
# site in build/docs. The first call sets up .venv, later ones do not. SHUFFLE=7 runs the tests in an order drawn from that
# number, ALL_TESTS=1 runs what takes longest, too, as every night. `make perf-target` compiles cases for
# a TPU or GPUs that are not there (TARGET chooses), in an environment of its own that has their compiler, 640 or 400 MB:
# the families that have baselines for it, or what K names. SIZE=full K=training compiles the training steps at the size
# that needs the chip.
PYTHON ?= python3
VENV   ?= .venv
K      ?=
ARGS   ?=
RESULTS ?=
SHUFFLE ?=
ALL_TESTS ?=
# One more than CI has cores: some tests wait. One that crashes is named, and not replaced: xdist may wait for ever then.
WORKERS ?= 3
TARGET  ?= tpu:v5e:2x4
SIZE    ?=
# Names further packages of the environment: `tpu` is requirements/py311-tpu.txt.
WITH    ?=
COMPILER := $(if $(filter gpu:%,$(TARGET)),cuda,tpu)
# What has baselines for hardware that is not there; gate.yml names the same.
FAMILIES := $(if $(filter cuda,$(COMPILER)),remat training,donation scaling training)

RUN   := $(VENV)/bin/python -m
READY := $(VENV)/.ready
DOCS  := $(VENV)/.docs

.PHONY: perf perf-target test test-quick evaluate lint docs page-check ready clean

perf: $(READY)
	@$(RUN) pytest perf $(if $(K),-k "$(K)") $(ARGS)

perf-target:
	@$(MAKE) --no-print-directory ready VENV=.venv-$(COMPILER) WITH=$(COMPILER)
	@.venv-$(COMPILER)/bin/python -m pytest $(if $(K),perf -k "$(K)",$(FAMILIES:%=perf/test_%.py)) -n 2 \
	  --perf-target=$(TARGET) $(if $(SIZE),--perf-size=$(SIZE)) $(ARGS)

test: $(READY)
	@SHUFFLE=$(SHUFFLE) ALL_TESTS=$(ALL_TESTS) $(RUN) pytest tests -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
	  --max-worker-restart=0 $(ARGS)

test-quick: $(READY)
	@$(RUN) pytest tests/model tests/judge tests/keep tests/report -n auto --maxprocesses 4 $(ARGS)

# Parts by name: ARGS="peers power"; what was measured at this commit is not measured again.
evaluate: $(READY)
	@$(RUN) ci.evaluation $(ARGS)

lint: $(READY)
	@$(RUN) ruff check . && $(RUN) ruff format --check . && $(RUN) mypy
	@$(VENV)/bin/zizmor --offline --quiet .github action.yml

# Everything is read anew: what was read before would not be warned of again.
docs: $(DOCS)
	@rm -rf build/docs
	@$(RUN) sphinx --fail-on-warning --keep-going --nitpicky --fresh-env --quiet --builder html \
	  --conf-dir docs/site --doctree-dir build/doctrees . build/docs
	@echo "build/docs/index.html"

# Opens pages of sample runs in Chromium, wide and narrow, light and dark, and asks axe-core what is wrong with them.
# Chromium and npm must be there (apt-get install chromium npm). RESULTS names further results.json to look at.
page-check: $(READY)
	@npm install --silent --no-save --prefix build/page-check axe-core@4
	@$(RUN) ci.page $(RESULTS) $(ARGS)

ready: $(READY)

clean:
	rm -rf $(VENV) .venv-tpu .venv-cuda .venv-torch

$(READY): pyproject.toml requirements/py311.txt requirements/py312.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 14) else \
	  "expected Python 3.11, 3.12 or 3.13, found %d.%d; choose one with: make PYTHON=python3.12" % v)'
	@echo "Setting up $(VENV) (about a minute, once)"
	@$(PYTHON) -m venv --clear $(VENV)
	@pins=$$($(PYTHON) -c 'import sys; print("py311" if sys.version_info[:2] == (3, 11) else "py312")'); \
	  $(RUN) pip install --quiet --disable-pip-version-check -r requirements/$$pins.txt \
	  $(if $(WITH),-r requirements/$$pins-$(WITH).txt)
	@$(RUN) pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

$(DOCS): $(READY) requirements/docs.txt
	@$(RUN) pip install --quiet --disable-pip-version-check -r requirements/docs.txt
	@touch $@
