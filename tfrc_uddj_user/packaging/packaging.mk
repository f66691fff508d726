# SPDX-License-Identifier: GPL-2.0-only
# Part of ../Makefile: the Debian packages: library, what developers need, tools.

MAKE_DEB := $(HERE)/../tcp_veno_jitter/packaging/make-deb
PACKAGING := $(HERE)/packaging
DEBDIR	?= $(HERE)/../build
MULTIARCH = $(shell dpkg-architecture -qDEB_HOST_MULTIARCH)
ARCHITECTURE = $(shell dpkg --print-architecture)
DEBOUT	= $(abspath $(DEBDIR))/tfrc-deb
# all of it, then a part for each package
ALL	= $(DEBOUT)/all/usr
PARTS	= $(DEBOUT)/lib/usr $(DEBOUT)/dev/usr $(DEBOUT)/tools/usr
AT	= usr/lib/$(MULTIARCH)

.PHONY: deb

deb: export MAINTAINER ?= $(or $(and $(DEBEMAIL),$(DEBFULLNAME) <$(DEBEMAIL)>),$(shell \
	git -C $(HERE) log -1 --format='%an <%ae>' 2>/dev/null),unknown <root@localhost>)
# the same sources make the same packages
deb: export SOURCE_DATE_EPOCH ?= $(shell git -C $(HERE) log -1 --format=%ct 2>/dev/null || date +%s)
deb:
	@command -v dpkg-shlibdeps >/dev/null || { echo "libtfrc: no dpkg-shlibdeps: apt install dpkg-dev" >&2; exit 2; }
	rm -rf $(DEBOUT)
	+$(MAKE) --no-print-directory OUT=$(DEBOUT)/build DESTDIR=$(DEBOUT)/all PREFIX=/usr LIBDIR=/$(AT) \
		CFLAGS='$(shell dpkg-buildflags --get CFLAGS) -ffile-prefix-map=$(DEBOUT)=.' \
		CPPFLAGS='$(shell dpkg-buildflags --get CPPFLAGS)' LDFLAGS='$(shell dpkg-buildflags --get LDFLAGS)' install
	strip --strip-unneeded $(ALL)/bin/* $(ALL)/lib/$(MULTIARCH)/libtfrc.so.$(VERSION)
	chmod 644 $(ALL)/lib/$(MULTIARCH)/libtfrc.so.$(VERSION)
	strip --strip-debug --enable-deterministic-archives $(ALL)/lib/$(MULTIARCH)/libtfrc.a
	mkdir -p $(PARTS) $(DEBOUT)/lib/$(AT) $(DEBOUT)/dev/usr/share/man $(DEBOUT)/dev/$(AT) $(DEBOUT)/tools/usr/share/man
	mv $(ALL)/lib/$(MULTIARCH)/libtfrc.so.* $(DEBOUT)/lib/$(AT)
	mv $(ALL)/lib/$(MULTIARCH)/* $(DEBOUT)/dev/$(AT)
	mv $(ALL)/include $(DEBOUT)/dev/usr
	mv $(ALL)/share/man/man3 $(DEBOUT)/dev/usr/share/man
	mv $(ALL)/bin $(DEBOUT)/tools/usr
	mv $(ALL)/share/man/man1 $(DEBOUT)/tools/usr/share/man
	set -e; mkdir $(DEBOUT)/debian; cd $(DEBOUT); printf 'Source: libtfrc\n\nPackage: tfrc\nArchitecture: any\n' >debian/control; \
	for part in lib:libtfrc$(MAJOR) dev:libtfrc-dev tools:tfrc-tools; do \
		name=$${part#*:}; part=$${part%:*}; \
		needs=; \
		if [ $$part != dev ]; then \
			needs=$$(dpkg-shlibdeps -O -S$$part $$(find $$part -path '*/bin/*' -o -type f -name '*.so.*')); \
		fi; \
		SUBSTITUTE="s|@MAJOR@|$(MAJOR)|; s|@ARCHITECTURE@|$(ARCHITECTURE)|; s#@DEPENDS@#$${needs#shlibs:Depends=}#" \
			$(MAKE_DEB) $(DEBOUT)/$$part $(abspath $(DEBDIR))/$${name}_$(VERSION)_$(ARCHITECTURE).deb $$name $(VERSION) \
			$(PACKAGING)/$$part/*; \
	done
	rm -rf $(DEBOUT)
