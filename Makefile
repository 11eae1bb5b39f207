# Two commands for a newcomer: `make demo` and `make test`. Both make what they need.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo demo-gateway web test system check unit cluster scale public-scripts beds beds-down bench clean

# The Python that also other users of this machine can run: the test bed submits as an ordinary user.
PYTHON ?= $(shell bin=/usr/bin/python3; $$bin -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || bin=python3; echo $$bin)
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin

help:
	@echo "make demo       train a small model through at least four jobs on this machine, one of them killed"
	@echo "make demo-gateway   requests through a real RabbitMQ, trained on this machine, models back (Debian; root installs the broker)"
	@echo "make web        build the page that 'onward up' serves"
	@echo "make test       everything that must hold: lint, types, rooms, unit, crash and cluster tests"
	@echo "make beds       bring up a real Slurm, Grid Engine and login node for the tests (Debian, root); make beds-down ends them"
	@echo "make scale      nightly: real checkpoints of SCALE_GB (20) on slow, small and full file systems, on four nodes (Debian, root)"
	@echo "make public-scripts   nightly: scripts of public examples' shapes, with their frameworks, through 30-second legs and a kill -9"
	@echo "make bench      measure, against peers and limits"

# ── the virtual environment ───────────────────────────────────────────────────
$(READY): pyproject.toml constraints.txt scripts/venv
	@scripts/venv "$(PYTHON)" "$(VENV)"
	@touch $@

# ── what a newcomer runs ──────────────────────────────────────────────────────
demo: $(READY)
	@$(RUN)/python examples/digits/demo.py

demo-gateway: $(READY)
	@$(RUN)/python -m examples.gateway.demo

web: $(READY)
	@$(RUN)/python build_web.py --if-needed

test:
	@$(MAKE) --no-print-directory -j2 system web
	@scripts/test

system: beds
	@scripts/chromium
	@scripts/tmux

check: $(READY)
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy
	$(RUN)/lint-imports
	$(RUN)/python build_web.py --check

unit: $(READY)
	$(RUN)/pytest -n 2 tests/unit tests/simulation tests/docs tests/suite tests/contract tests/processes tests/services -m "not cluster and not slow"

cluster: $(READY) beds
	$(RUN)/pytest -n 6 tests/cluster

scale: $(READY)
	$(RUN)/pytest -q -s tests/scale

public-scripts: $(READY)
	@scripts/public-scripts

# ── the test beds ─────────────────────────────────────────────────────────────
beds:
	@scripts/beds up

beds-down:
	@scripts/beds down

bench: $(READY)
	@for b in bench/*.py; do echo "── $$b"; $(RUN)/python $$b; done

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
