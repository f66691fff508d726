# SPDX-License-Identifier: GPL-2.0-only
# The index; the work is in the folders. `make help` lists what there is.

SHELL := /bin/bash
VENV = $(shell testbed/setup paths | sed -n 's/^venv=//p')
PYTHON = PYTHONPATH=testbed $(VENV)/bin/python
DEMO_OUT ?= results/demo

.PHONY: demo test setup modules lab install check fmt bench-lab clean distclean help

help:
	@echo "make demo       set up what is missing, compare our modules with the kernel's on a lossy link"
	@echo "make test       set up what is missing, run every test this machine can run"
	@echo
	@echo "make setup      packages, Python environment, lab kernel"
	@echo "make modules    build the TCP modules for this host's kernel (KDIR=...: for another)"
	@echo "make install    build and install them (root)"
	@echo "make lab        build all the lab needs, run nothing"
	@echo "make check      style and static checks only"
	@echo "make fmt        format the Python code"
	@echo "make bench-lab  virtual seconds per wall second of the lab, on one core"
	@echo "make clean      remove build/ (results/ and the kernel cache stay)"
	@echo "make distclean  remove build/, results/ and the cache of kernels and environments"
	@echo
	@echo "testbed/run --help   any experiment"

setup:
	@testbed/setup

# Finished points are kept; FRESH=1 runs them again.
demo: setup
	@$(if $(FRESH),rm -rf '$(DEMO_OUT)',true)
	@testbed/run demo --out '$(DEMO_OUT)' --resume

test: setup
	@testbed/setup test
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory -C testbed/traffic check PYTHON=$(VENV)/bin/python
	@$(PYTHON) -m pytest -q -rs -p no:cacheprovider tcp_veno_jitter/tests testbed/tests

check: setup
	@$(VENV)/bin/ruff check --no-cache .
	@$(VENV)/bin/ruff format --no-cache --check .
	@if command -v shellcheck >/dev/null; then \
		shellcheck testbed/setup testbed/run testbed/lab/guest/init .ci/run; \
	else echo "shellcheck: skipped, not installed"; fi

fmt: setup
	@$(VENV)/bin/ruff check -q --no-cache --fix . ; $(VENV)/bin/ruff format --no-cache .

modules:
	@$(MAKE) --no-print-directory -C tcp_veno_jitter all

install:
	@$(MAKE) --no-print-directory -C tcp_veno_jitter install

lab: setup
	@$(PYTHON) -c 'from lab import build; print("lab:", build.prepare().stage)'

bench-lab: setup
	@$(PYTHON) -m lab.bench

clean:
	rm -rf build

distclean: clean
	cache="$$(testbed/setup paths | sed -n 's/^cache=//p')"; \
	rm -rf results "$$cache"/kernels "$$cache"/venv-* "$$cache"/{packages,python}.log
