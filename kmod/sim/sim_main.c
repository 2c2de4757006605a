// SPDX-License-Identifier: GPL-2.0
/*
 * sim_main.c - qgpu_sim.ko: simulated cards behind a simulated driver, for machines without a
 * GPU. Loads only when asked for by name, and only where no real driver has the device numbers.
 * With pci=1 it drives cards on the PCI bus whose chip is the model (pci_card.c) instead of
 * cards in this kernel. Each card is also a device on the auxiliary bus, for qgpu.ko.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cdev.h>
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/module.h>

#include "compat.h"
#include "front/faults.h"
#include "front/host.h"
#include "front/procfs.h"
#include "chip_card.h"
#include "pci_card.h"

static unsigned int cards = 1;
module_param(cards, uint, 0444);
MODULE_PARM_DESC(cards, "number of simulated cards, 1 to 8 (default 1)");

static bool pci;
module_param(pci, bool, 0444);
MODULE_PARM_DESC(pci, "drive the cards on the PCI bus whose chip is the model, instead of cards in "
		      "this kernel (default 0); a real card is never taken");

static char *version = RM_VERSION;
module_param(version, charp, 0444);
MODULE_PARM_DESC(version,
		 "driver version that is told; the interface is that of its branch, 525, 535, "
		 "550 or 580, and of another one 550's (default " RM_VERSION ")");
const char *front_version = RM_VERSION;

static char *firmware = "N/A";
module_param(firmware, charp, 0444);
MODULE_PARM_DESC(firmware, "firmware that is told to run the cards (default N/A: none)");
const char *front_firmware = "N/A";

#define NODES (RM_MINOR_CTL + 1)

static const dev_t first_node = MKDEV(RM_MAJOR, 0);
static struct cdev node;
static struct class *node_class;
static struct device *root_device;
static struct dentry *debug_root;
static DEFINE_MUTEX(hosts_lock);
static struct front_host *hosts[SIM_CARDS_MAX]; /* [hosts_lock] */

/* The last reference on a card's device may be somebody's who looks at it in sysfs. */
static atomic_t devices_left;
static DECLARE_COMPLETION(devices_gone);

static void device_gone(void)
{
	if (atomic_dec_and_test(&devices_left))
		complete(&devices_gone);
}

static void host_release(struct device *dev)
{
	struct auxiliary_device *adev = to_auxiliary_dev(dev);

	kvfree(container_of(to_qgpu_sim_device(adev), struct front_host, device));
	device_gone();
}

/* From here on the host is freed by its device's last reference. */
static int init_device(struct front_host *host)
{
	struct auxiliary_device *adev = &host->device.adev;
	struct sim_card *card = host->card;
	int err;

	adev->name = "card";
	adev->id = card->index;
	adev->dev.parent = card->pdev ? &card->pdev->dev : root_device;
	adev->dev.release = host_release;
	host->device.ops = &front_sim_ops;
	host->device.pdev = card->pdev;
	host->device.index = card->index;
	snprintf(host->device.name, sizeof(host->device.name), "Simulated T4");
	snprintf(host->device.uuid, sizeof(host->device.uuid), "GPU-71677075-5349-4d54-8034-%012x",
		 card->index);
	err = auxiliary_device_init(adev);
	if (!err)
		atomic_inc(&devices_left);
	return err;
}

/* Takes @card over, also when it fails. */
static struct front_host *host_create(struct sim_card *card)
{
	struct front_host *host = kvzalloc(sizeof(*host), GFP_KERNEL);
	int err = -ENOMEM;

	if (!host)
		goto err_card;
	err = front_host_init(host, card);
	if (err)
		goto err_free;
	err = init_device(host);
	if (err)
		goto err_host;
	front_debugfs_init(host, debug_root);
	return host;

err_host:
	front_host_fini(host);
	kvfree(host);
	return ERR_PTR(err);
err_free:
	kvfree(host);
err_card:
	card->ops->stop(card);
	card->ops->destroy(card);
	return ERR_PTR(err);
}

/* What others see of a card: its node, its entry below /proc, and then qgpu.ko. */
static int publish(struct front_host *host)
{
	u32 index = host->card->index;
	struct device *dev;
	int err;

	dev = device_create(node_class, root_device, first_node + index, NULL, "nvidia%u", index);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	err = front_procfs_add(host);
	if (err)
		goto err_node;
	/* A driver's refusal to bind is its own affair: it is not an error here. */
	err = auxiliary_device_add(&host->device.adev);
	if (err)
		goto err_procfs;
	host->published = true;
	return 0;

err_procfs:
	front_procfs_remove(host);
err_node:
	device_destroy(node_class, first_node + index);
	return err;
}

/* As the real driver: a card that is taken away is waited for until nobody uses it. */
static void destroy_host_locked(u32 i)
{
	struct front_host *host = hosts[i];

	if (!host)
		return;
	front_host_retire(host);
	if (host->published) {
		auxiliary_device_delete(&host->device.adev);
		front_procfs_remove(host);
		device_destroy(node_class, first_node + i);
	}
	debugfs_remove_recursive(host->debug_dir);
	front_host_fini(host);
	auxiliary_device_uninit(&host->device.adev);
	hosts[i] = NULL;
}

static void destroy_hosts(void)
{
	u32 i;

	mutex_lock(&hosts_lock);
	for (i = 0; i < SIM_CARDS_MAX; i++)
		destroy_host_locked(i);
	mutex_unlock(&hosts_lock);
}

/* It may have been let go with its host, and there may never have been one: the load failed. */
static void card_gone(struct pci_dev *pdev)
{
	struct sim_card *card;
	u32 i;

	mutex_lock(&hosts_lock);
	for (i = 0; i < SIM_CARDS_MAX; i++)
		if (hosts[i] && hosts[i]->card->pdev == pdev)
			destroy_host_locked(i);
	card = pci_card_of(pdev);
	if (card) {
		card->ops->stop(card);
		card->ops->destroy(card);
	}
	mutex_unlock(&hosts_lock);
}

static void for_host(struct pci_dev *pdev, void (*what)(struct front_host *host))
{
	u32 i;

	mutex_lock(&hosts_lock);
	for (i = 0; i < SIM_CARDS_MAX; i++)
		if (hosts[i] && hosts[i]->card->pdev == pdev)
			what(hosts[i]);
	mutex_unlock(&hosts_lock);
}

static void card_sleeps(struct pci_dev *pdev)
{
	for_host(pdev, front_host_sleep);
}

static void card_wakes(struct pci_dev *pdev)
{
	for_host(pdev, front_host_wake);
}

static const struct pci_card_events pci_events = {
	.gone = card_gone,
	.sleeps = card_sleeps,
	.wakes = card_wakes,
};

/* The card of that number; NULL: there are no more. */
static struct sim_card *next_card(u32 index)
{
	if (pci)
		return pci_card_find(index);
	return index < cards ? chip_card_create(index) : NULL;
}

static int create_hosts(void)
{
	struct sim_card *card;
	int err = 0;
	u32 i;

	mutex_lock(&hosts_lock);
	for (i = 0; !err && i < SIM_CARDS_MAX; i++) {
		card = next_card(i);
		if (!card)
			break;
		hosts[i] = IS_ERR(card) ? ERR_CAST(card) : host_create(card);
		if (IS_ERR(hosts[i])) {
			err = PTR_ERR(hosts[i]);
			hosts[i] = NULL;
		}
	}
	for (i = 0; !err && i < SIM_CARDS_MAX && hosts[i]; i++)
		err = publish(hosts[i]);
	mutex_unlock(&hosts_lock);
	return err;
}

/* The real nodes may be opened by everybody; so may these. */
static char *node_mode(QGPU_DEVNODE_CONST struct device *dev, umode_t *mode)
{
	if (mode)
		*mode = 0666;
	return NULL;
}

static int create_control_node(void)
{
	return PTR_ERR_OR_ZERO(device_create(node_class, root_device, first_node + RM_MINOR_CTL,
					     NULL, "nvidiactl"));
}

static int check_parameters(void)
{
	if (cards < 1 || cards > SIM_CARDS_MAX) {
		pr_err("cards=%u is not between 1 and %d\n", cards, SIM_CARDS_MAX);
		return -EINVAL;
	}
	if (strlen(version) >= sizeof_field(struct rm_version, text)) {
		pr_err("version is too long\n");
		return -EINVAL;
	}
	front_version = version;
	front_release_choose(version);
	front_firmware = firmware;
	return 0;
}

/* Cards on the bus are claimed. */
static int claim_cards(void)
{
	int count;

	if (!pci)
		return 0;
	count = pci_cards_register(&pci_events);
	if (count > 0) {
		cards = count;
		return 0;
	}
	pr_err("pci=1: no card of ours on the bus\n");
	if (!count)
		pci_cards_unregister();
	return count ? count : -ENODEV;
}

static int __init sim_init(void)
{
	int err = check_parameters();

	if (err)
		return err;
	err = register_chrdev_region(first_node, NODES, KBUILD_MODNAME);
	if (err) {
		pr_err("a driver already has device numbers %d:*; simulated cards stay away from "
		       "it\n",
		       RM_MAJOR);
		return -EBUSY;
	}
	err = front_doorbell_module_init();
	if (err)
		goto err_region;
	root_device = root_device_register(KBUILD_MODNAME);
	err = PTR_ERR_OR_ZERO(root_device);
	if (err)
		goto err_doorbell;
	node_class = qgpu_class_create(KBUILD_MODNAME);
	err = PTR_ERR_OR_ZERO(node_class);
	if (err)
		goto err_root;
	node_class->devnode = node_mode;
	debug_root = debugfs_create_dir(KBUILD_MODNAME, NULL);
	front_faults_init(debug_root);
	atomic_set(&devices_left, 1);

	err = front_procfs_init();
	if (err)
		goto err_debug;
	err = create_control_node();
	if (err)
		goto err_procfs;
	err = claim_cards();
	if (err)
		goto err_node;
	err = create_hosts();
	if (err)
		goto err_hosts;
	/* Last, as from here on somebody may have a card open. */
	cdev_init(&node, &front_fops);
	node.owner = THIS_MODULE;
	err = cdev_add(&node, first_node, NODES);
	if (err)
		goto err_hosts;
	pr_info("%u simulated card%s%s, driver interface %s\n", cards, cards == 1 ? "" : "s",
		pci ? " on the PCI bus" : "", front_version);
	return 0;

err_hosts:
	destroy_hosts();
	if (pci)
		pci_cards_unregister();
err_node:
	device_destroy(node_class, first_node + RM_MINOR_CTL);
err_procfs:
	front_procfs_exit();
err_debug:
	debugfs_remove_recursive(debug_root);
	device_gone();
	wait_for_completion(&devices_gone);
	class_destroy(node_class);
err_root:
	root_device_unregister(root_device);
err_doorbell:
	front_doorbell_module_exit();
err_region:
	unregister_chrdev_region(first_node, NODES);
	return err;
}

static void __exit sim_exit(void)
{
	device_destroy(node_class, first_node + RM_MINOR_CTL);
	cdev_del(&node);
	destroy_hosts();
	if (pci)
		pci_cards_unregister();
	front_procfs_exit();
	debugfs_remove_recursive(debug_root);
	device_gone();
	wait_for_completion(&devices_gone);
	class_destroy(node_class);
	root_device_unregister(root_device);
	front_doorbell_module_exit();
	front_clients_exit();
	unregister_chrdev_region(first_node, NODES);
}

module_init(sim_init);
module_exit(sim_exit);

MODULE_DESCRIPTION("Simulated NVIDIA T4 cards and driver interface for testing qgpu");
MODULE_LICENSE("GPL");
