# SPDX-License-Identifier: GPL-2.0-only
# Part of ../Makefile: DKMS and the Debian package.

PACKAGING := $(HERE)/packaging
PACKAGE	:= veno-jitter
VERSION	:= $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' $(HERE)/dkms.conf)
# tests give DKMS folders of its own
DKMS	?= dkms
DKMS_SRC ?= /usr/src
DEBDIR	?= $(HERE)/../build
DEB	= $(DEBDIR)/$(PACKAGE)-dkms_$(VERSION)_all.deb
export MAINTAINER ?= $(or $(and $(DEBEMAIL),$(DEBFULLNAME) <$(DEBEMAIL)>),$(shell \
	git -C $(HERE) log -1 --format='%an <%ae>' 2>/dev/null),unknown <root@localhost>)
# the same sources make the same package
export SOURCE_DATE_EPOCH ?= $(shell git -C $(HERE) log -1 --format=%ct 2>/dev/null || date +%s)

# all that DKMS needs, as it wants it
define copy_sources
	rm -rf $(1)/$(PACKAGE)-$(VERSION)
	mkdir -p $(1)/$(PACKAGE)-$(VERSION)
	cd $(HERE) && cp -rL $(LINKS) dkms.conf $(1)/$(PACKAGE)-$(VERSION)
endef

.PHONY: dkms undkms deb check-dkms

check-dkms: check-build
	@command -v $(firstword $(DKMS)) >/dev/null || { \
		echo "veno_jitter: no DKMS: apt install dkms" >&2; exit 2; }

dkms: check-root check-dkms
	$(DKMS) remove $(PACKAGE)/$(VERSION) --all >/dev/null 2>&1 || true
	$(call copy_sources,$(DKMS_SRC))
	$(DKMS) install $(PACKAGE)/$(VERSION) -k $(RELEASE) --kernelsourcedir $(KDIR)

undkms: check-root
	$(DKMS) remove $(PACKAGE)/$(VERSION) --all
	rm -rf $(DKMS_SRC)/$(PACKAGE)-$(VERSION)

deb: ROOT := $(abspath $(DEBDIR))/deb
deb: DOC := $(ROOT)/usr/share/doc/$(PACKAGE)-dkms
deb:
	rm -rf $(ROOT)
	mkdir -p $(DOC)/examples $(ROOT)/usr/share/man/man7 $(ROOT)/usr/share/man/man8
	$(call copy_sources,$(ROOT)/usr/src)
	cp $(PACKAGING)/examples/* $(DOC)/examples
	install -D -m 755 $(HERE)/tools/wccp-survey $(ROOT)/usr/sbin/wccp-survey
	cp $(HERE)/man/tcp_veno_jitter.7 $(ROOT)/usr/share/man/man7
	cp $(HERE)/man/wccp-survey.8 $(ROOT)/usr/share/man/man8
	SUBSTITUTE='s|@DKMS@|$(PACKAGE)|' $(PACKAGING)/make-deb $(ROOT) $(DEB) $(PACKAGE)-dkms $(VERSION) \
		$(addprefix $(PACKAGING)/,control postinst prerm)
