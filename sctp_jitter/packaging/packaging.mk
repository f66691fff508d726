# SPDX-License-Identifier: GPL-2.0-only
# Part of ../Makefile: DKMS and the Debian package. The templates are the TCP modules'.

TEMPLATES := $(SHARED)/packaging
PACKAGE	:= sctp-jitter
PACKAGE_VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' $(HERE)/dkms.conf)
# tests give DKMS folders of its own
DKMS	?= dkms
DKMS_SRC ?= /usr/src
DEBDIR	?= $(HERE)/../build
DEB	= $(DEBDIR)/$(PACKAGE)-dkms_$(PACKAGE_VERSION)_all.deb
export MAINTAINER ?= $(or $(and $(DEBEMAIL),$(DEBFULLNAME) <$(DEBEMAIL)>),$(shell \
	git -C $(HERE) log -1 --format='%an <%ae>' 2>/dev/null),unknown <root@localhost>)
# the same sources make the same package
export SOURCE_DATE_EPOCH ?= $(shell git -C $(HERE) log -1 --format=%ct 2>/dev/null || date +%s)

# all that a build needs: this folder, and in shared/ what the TCP modules bring
define copy_sources
	rm -rf $(1)/$(PACKAGE)-$(PACKAGE_VERSION)
	mkdir -p $(1)/$(PACKAGE)-$(PACKAGE_VERSION)/shared/packaging
	cd $(HERE) && cp -r $(notdir $(wildcard $(HERE)/*.[ch])) Kbuild Makefile dkms.conf patches packaging \
		$(1)/$(PACKAGE)-$(PACKAGE_VERSION)
	cp -r $(SHARED)/estimators $(SHARED)/tcp_param.h $(1)/$(PACKAGE)-$(PACKAGE_VERSION)/shared
	cp $(TEMPLATES)/check-host $(1)/$(PACKAGE)-$(PACKAGE_VERSION)/shared/packaging
endef

.PHONY: dkms undkms deb check-dkms

check-dkms: check-build
	@command -v $(firstword $(DKMS)) >/dev/null || { \
		echo "sctp_jitter: no DKMS: apt install dkms" >&2; exit 2; }
	@[ -n '$(SOURCE)' ] || $(PREPARE) find '$(LINE)' $(KDIR) >/dev/null

dkms: check-root check-dkms
	$(DKMS) remove $(PACKAGE)/$(PACKAGE_VERSION) --all >/dev/null 2>&1 || true
	$(call copy_sources,$(DKMS_SRC))
	$(DKMS) install $(PACKAGE)/$(PACKAGE_VERSION) -k $(RELEASE) --kernelsourcedir $(KDIR)

undkms: check-root
	$(DKMS) remove $(PACKAGE)/$(PACKAGE_VERSION) --all
	rm -rf $(DKMS_SRC)/$(PACKAGE)-$(PACKAGE_VERSION)

deb: ROOT := $(abspath $(DEBDIR))/sctp-deb
deb:
	rm -rf $(ROOT)
	$(call copy_sources,$(ROOT)/usr/src)
	SUBSTITUTE='s|@DKMS@|$(PACKAGE)|' $(TEMPLATES)/make-deb $(ROOT) $(DEB) $(PACKAGE)-dkms $(PACKAGE_VERSION) \
		$(HERE)/packaging/control $(addprefix $(TEMPLATES)/,postinst prerm)
