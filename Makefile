# SPDX-License-Identifier: GPL-2.0
# Makefile - the kernel modules: make modules | modules_install | clean | sparse.
# KVER selects the kernel (default: the running one), KDIR its build tree. Everything in user
# space is built by CMake.

KVER ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVER)/build

no_headers = no headers for kernel $(KVER) in $(KDIR): install linux-headers-$(KVER), reboot into a \
	kernel that has them, or name one that has by KVER=
kbuild = $(if $(wildcard $(KDIR)/Makefile),,$(error $(no_headers)))$(MAKE) -C $(KDIR) M=$(CURDIR)

.PHONY: modules modules_install clean sparse

modules:
	+$(kbuild) W=1 modules

modules_install:
	+$(kbuild) modules_install

clean:
	+$(kbuild) clean

# Checks every file again, also those that are up to date.
sparse:
	+$(kbuild) W=1 C=2 modules
