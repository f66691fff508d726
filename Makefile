# SPDX-License-Identifier: GPL-2.0-only
# The index; the work is in the folders. `make help` lists what there is.

SHELL := /bin/bash
VENV = $(shell testbed/setup paths | sed -n 's/^venv=//p')
PYTHON = PYTHONPATH=testbed $(VENV)/bin/python
DEMO_OUT ?= results/demo

.PHONY: demo test test-traffic test-tfrc setup-test test-debug test-vm test-smp matrix setup modules sctp sctp-install sctp-uninstall sctp-dkms sctp-undkms sctp-deb sctp-series sctp-netdev tfrc lab install uninstall dkms undkms deb install-tools uninstall-tools tools-deb tfrc-deb lab-deb debs apt-repo test-packages check fmt bench-lab bench-report bench-cost bench-law clean distclean help

help:
	@echo "make demo       set up what is missing, compare our modules with the kernel's on a lossy link"
	@echo "make test       set up what is missing, run every test this machine can run"
	@echo "make test-vm    run the modules on Debian's own 6.1, 6.12 and newest kernel, in QEMU"
	@echo "make test-smp   the modules with several processors at them, on those kernels (SMP_ROUNDS=, SMP_CPUS='2 4')"
	@echo "make test-packages  install, upgrade, remove, purge the packages on Debian 12 and the newest, in QEMU (root)"
	@echo "make matrix     build the modules and SCTP for Debian's 6.1, 6.12 and newest kernel, gcc and clang"
	@echo
	@echo "make setup      packages, Python environment, lab kernel"
	@echo "make sctp       build the patched SCTP for this host's kernel (KDIR=, SOURCE=: for another)"
	@echo "make tfrc       build libtfrc, tfrc-send and tfrc-recv (docs/tfrc.md; their own make install)"
	@echo "make modules    build the TCP modules for this host's kernel (KDIR=...: for another)"
	@echo "make install    build and install them for this kernel (root); make uninstall"
	@echo "make dkms       install them for this kernel and each one to come (root); make undkms"
	@echo "make deb        a Debian package that does what make dkms does, in build/"
	@echo "make install-tools   cc-compare and cc-watch (root; no headers needed); make uninstall-tools, make tools-deb"
	@echo "make debs       all Debian packages: modules, SCTP, cc-tools, libtfrc, lab; deb, sctp-deb, tools-deb,"
	@echo "                tfrc-deb, lab-deb: one of these; make apt-repo: in a folder for apt (APT_KEY=)"
	@echo "make sctp-install, sctp-dkms, sctp-deb, sctp-uninstall, sctp-undkms   the same for SCTP"
	@echo "make sctp-series   the SCTP patches of one kernel line for git am (LINE=6.1)"
	@echo "make sctp-netdev   the same as part of the kernel, with the algorithms, to be posted (SOURCE=a tree of net-next)"
	@echo "make lab        build all the lab needs, run nothing"
	@echo "make test-debug the modules' tests and the demo on a kernel with KASAN, UBSAN, lockdep and kmemleak"
	@echo "make check      style and static checks only"
	@echo "make fmt        format the Python code"
	@echo "make bench-lab  virtual seconds per wall second of the lab, on one core"
	@echo "make bench-report  how soon a report of 5,000 points is there, in Chromium"
	@echo "make bench-cost what the algorithms cost for each ACK (ALGORITHMS=a,b: these;"
	@echo "                LINES=steady: their source lines that cost most then)"
	@echo "make bench-law  what each constant of veno_jitter matters, on random places (PLACES=25, OUT=)"
	@echo "make clean      remove build/ (results/ and the kernel cache stay)"
	@echo "make distclean  remove build/ and the cache of kernels and environments; RESULTS=1: results/, too"
	@echo
	@echo "testbed/run --help        any experiment"
	@echo "testbed/veno-lab --help   all else that the lab does; testbed/veno-lab doctor: is this machine fit?"

setup:
	@testbed/setup

setup-test:
	@testbed/setup test

# Finished points are kept; FRESH=1 runs them again, as where the scenario has changed since.
demo: setup
	@$(if $(FRESH),rm -rf '$(DEMO_OUT)',true)
	@testbed/run demo --out '$(DEMO_OUT)' --resume || { status=$$?; \
		[ $$status -ne 2 ] || [ ! -d '$(DEMO_OUT)/points' ] || \
			echo "make: where these results are of other settings: make demo FRESH=1 replaces them" >&2; \
		exit $$status; }

# Files of tests side by side. More would not help: what takes long in them takes all cores itself.
TEST_JOBS ?= $(shell n=$$(nproc); echo $$((n < 4 ? n : 4)))
test: setup-test
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory -j2 -O test-traffic test-tfrc
	@$(PYTHON) -m pytest -q -rs -p no:cacheprovider -n $(TEST_JOBS) --dist loadfile --no-loadscope-reorder \
		tcp_veno_jitter/tests sctp_jitter/tests testbed/tests

test-traffic: setup-test
	@$(MAKE) --no-print-directory -j1 -C testbed/traffic check PYTHON=$(VENV)/bin/python

test-tfrc: setup-test
	@$(MAKE) --no-print-directory -j1 -C tfrc_uddj_user test TEST_JOBS=4 PYTHON=$(VENV)/bin/python

VM_KERNELS ?= 6.1 6.12 7
test-vm: setup
	@VM_KERNELS='$(VM_KERNELS)' $(PYTHON) -m pytest -v -rs -p no:cacheprovider testbed/tests/test_vm.py tcp_veno_jitter/tests/test_radios.py \
		sctp_jitter/tests/matrix_peers.py

# In real time: 1000 rounds, in each of which 200 paths go, with one number of processors take about a
# quarter of an hour.
SMP_ROUNDS ?= 1000
SMP_CPUS ?= 2 4
# modules that come and go, under so many flows
LOAD_ROUNDS ?= 100
LOAD_FLOWS ?= 1000
test-smp: setup
	@VM_KERNELS='$(VM_KERNELS)' SMP_ROUNDS='$(SMP_ROUNDS)' SMP_CPUS='$(SMP_CPUS)' LOAD_ROUNDS='$(LOAD_ROUNDS)' LOAD_FLOWS='$(LOAD_FLOWS)' \
		$(PYTHON) -m pytest -v -rs -p no:cacheprovider sctp_jitter/tests/test_smp.py tcp_veno_jitter/tests/test_load.py

# Where KVM does not work an hour or two; the first time each Debian is made.
PACKAGES_ON ?= bookworm sid
test-packages: setup
	@PACKAGES_ON='$(PACKAGES_ON)' $(PYTHON) -m pytest -v -rs -p no:cacheprovider testbed/tests/test_packages.py

# One line for each kernel, compiler and check.
matrix: setup-test
	@$(PYTHON) -m pytest -v -rs -p no:cacheprovider tcp_veno_jitter/tests/test_{build,compat}.py \
		sctp_jitter/tests/matrix_sctp.py

# On a kernel that checks itself; not in `make test`, as that kernel takes as long to build
# as all of it takes to run.
# packets, associations, runs: about half an hour of one core
SCTP_FUZZ ?= 1000000
SCTP_ENDS ?= 10000
SCTP_FAILOVER ?= 100
# segments
WCCP_FUZZ ?= 1000000
test-debug: setup
	@TEST_KERNEL=debug WCCP_FUZZ=$(WCCP_FUZZ) SCTP_FUZZ=$(SCTP_FUZZ) SCTP_ENDS=$(SCTP_ENDS) SCTP_FAILOVER=$(SCTP_FAILOVER) \
		$(PYTHON) -m pytest -q -rs -p no:cacheprovider tcp_veno_jitter/tests/test_{modules,wccp}.py sctp_jitter/tests/test_sctp.py
	@testbed/run demo --kernel debug --algorithms veno_jitter,jtcp,veno03,tabe --seed 1 --out '$(DEMO_OUT)-debug' --resume

check: setup
	@$(VENV)/bin/ruff check --no-cache .
	@$(VENV)/bin/ruff format --no-cache --check .
	@if command -v shellcheck >/dev/null; then \
		shellcheck -x testbed/setup testbed/run testbed/veno-lab testbed/in-venv testbed/traces testbed/lab/run/guest/init testbed/kernels/initrd-init \
			testbed/kernels/in-sysroot testbed/kernels/gcc-precompiled .ci/run tcp_veno_jitter/packaging/{check-host,apt-repo,make-deb,postinst,prerm} testbed/packaging/wrapper \
			sctp_jitter/patches/series sctp_jitter/packaging/prepare-source \
			tfrc_uddj_user/examples/stream-video tfrc_uddj_user/tests/guest_times.sh; \
	else echo "shellcheck: skipped, not installed"; fi

fmt: setup
	@$(VENV)/bin/ruff check -q --no-cache --fix . ; $(VENV)/bin/ruff format --no-cache .

modules:
	@$(MAKE) --no-print-directory -C tcp_veno_jitter all

sctp:
	@$(MAKE) --no-print-directory -C sctp_jitter all

sctp-install sctp-uninstall sctp-dkms sctp-undkms sctp-deb:
	@$(MAKE) --no-print-directory -C sctp_jitter $(@:sctp-%=%)

sctp-series:
	@$(MAKE) --no-print-directory -C sctp_jitter series OUT='$(CURDIR)/build/sctp/series'

sctp-netdev:
	@$(MAKE) --no-print-directory -C sctp_jitter netdev OUT='$(CURDIR)/build/sctp/netdev'

tfrc:
	@$(MAKE) --no-print-directory -C tfrc_uddj_user all

install uninstall dkms undkms deb install-tools uninstall-tools tools-deb:
	@$(MAKE) --no-print-directory -C tcp_veno_jitter $@

tfrc-deb:
	@$(MAKE) --no-print-directory -C tfrc_uddj_user deb

lab-deb:
	@$(MAKE) --no-print-directory -C testbed/packaging deb

debs: deb sctp-deb tools-deb tfrc-deb lab-deb

# prints the line for /etc/apt/sources.list.d
apt-repo: debs
	@tcp_veno_jitter/packaging/apt-repo build/apt $$(ls build/*_*.deb)

lab: setup
	@$(PYTHON) -c 'from lab.run.backends.virtual import VirtualBackend; print("lab:", VirtualBackend().build.stage)'

bench-lab: setup
	@testbed/veno-lab bench

bench-report: setup-test
	@PYTHONPATH=testbed/tests testbed/in-venv bench_report

bench-cost: setup
	@testbed/setup cost
	@$(VENV)/bin/python tcp_veno_jitter/tests/cost/cost.py $(ALGORITHMS) \
		$(if $(LINES),--lines $(LINES)) $(if $(DOCS),--docs)

bench-law: setup
	@$(VENV)/bin/python tcp_veno_jitter/tests/sensitivity.py $(if $(PLACES),--places $(PLACES)) \
		$(if $(OUT),--out '$(OUT)') $(if $(DOCS),--docs)

clean:
	rm -rf build
	@git worktree prune 2>/dev/null || true

distclean: clean
	cache="$$(testbed/setup paths | sed -n 's/^cache=//p')"; \
	cache="$${cache:?is not known}"; \
	rm -rf $(if $(RESULTS),results) "$$cache"/{kernels,trees,unstable,vm,debian,cpus} "$$cache"/venv-* "$$cache"/{packages,python,python-test}.log
