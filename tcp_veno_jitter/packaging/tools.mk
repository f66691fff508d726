# SPDX-License-Identifier: GPL-2.0-only
# Part of ../Makefile: cc-compare and cc-watch, which need no kernel headers, and their package.

PREFIX	?= /usr/local
TOOLS	:= cc-compare cc-watch
# a person's prefix; the package has one of its own
TOOLS_AT = $(DESTDIR)$(PREFIX)
TOOLS_DEB = $(DEBDIR)/cc-tools_$(VERSION)_all.deb

# Python finds cctools beside the program that a link leads to
define install_tools
	install -d $(1)/bin $(1)/share/cc-tools/cctools $(1)/share/man/man1
	install -m 755 $(addprefix $(HERE)/tools/,$(TOOLS)) $(1)/share/cc-tools
	install -m 644 $(HERE)/tools/cctools/*.py $(1)/share/cc-tools/cctools
	install -m 644 $(TOOLS:%=$(HERE)/man/%.1) $(1)/share/man/man1
	for tool in $(TOOLS); do ln -sfn ../share/cc-tools/$$tool $(1)/bin/$$tool; done
endef

.PHONY: install-tools uninstall-tools tools-deb check-tools-root

check-tools-root:
	@$(if $(DESTDIR),,$(CHECK_HOST) root)

install-tools: check-tools-root
	$(call install_tools,$(TOOLS_AT))

uninstall-tools: check-tools-root
	rm -rf $(TOOLS_AT)/share/cc-tools
	rm -f $(TOOLS:%=$(TOOLS_AT)/bin/%) $(TOOLS:%=$(TOOLS_AT)/share/man/man1/%.1)

tools-deb: ROOT := $(abspath $(DEBDIR))/tools-deb
tools-deb:
	rm -rf $(ROOT)
	$(call install_tools,$(ROOT)/usr)
	$(PACKAGING)/make-deb $(ROOT) $(TOOLS_DEB) cc-tools $(VERSION) $(PACKAGING)/tools/control
