// SPDX-License-Identifier: GPL-2.0
/*
 * main.c - load and unload of qgpu.ko. A machine without a card is no error: the module waits for
 * one.
 */
#include <linux/module.h>
#include "compat.h"
#include "qgpu.h"

static int __init qgpu_init(void)
{
	int err;

	err = qgpu_netlink_register();
	if (err) {
		pr_err("qgpu: cannot register the netlink family (error %d)\n", err);
		return err;
	}
	/* Before the first card: one that came in between would not be given back. */
	err = qgpu_hold_register();
	if (err) {
		pr_err("qgpu: cannot hear of sleep and reboot (error %d)\n", err);
		goto err_netlink;
	}
	err = qgpu_cards_register();
	if (err) {
		pr_err("qgpu: cannot register with the auxiliary bus (error %d)\n", err);
		goto err_hold;
	}
	err = qgpu_pci_register();
	if (err) {
		pr_err("qgpu: cannot list the cards on the PCI bus (error %d)\n", err);
		goto err_cards;
	}
	if (!qgpu_cards_count())
		pr_info("qgpu: loaded; no card found yet\n");
	return 0;

err_cards:
	qgpu_cards_unregister();
err_hold:
	qgpu_hold_unregister();
err_netlink:
	qgpu_netlink_unregister();
	return err;
}

static void __exit qgpu_exit(void)
{
	qgpu_pci_unregister();
	/* Cards before the family: they go with events that it sends. */
	qgpu_cards_unregister();
	qgpu_hold_unregister();
	qgpu_netlink_unregister();
	WARN(atomic_read(&qgpu_live), "qgpu: %d objects leaked\n", atomic_read(&qgpu_live));
}

module_init(qgpu_init);
module_exit(qgpu_exit);
MODULE_DESCRIPTION("Shares a GPU between tenants through its hardware scheduler");
MODULE_LICENSE("GPL");
