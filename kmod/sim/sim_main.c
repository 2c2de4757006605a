// SPDX-License-Identifier: GPL-2.0
/*
 * sim_main.c - qgpu_sim.ko: simulated cards behind a simulated driver, for machines without a
 * GPU. Loads only when asked for by name, and only where no real driver has the device numbers.
 * Each card is also a device on the auxiliary bus, for qgpu.ko.
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

static unsigned int cards = 1;
module_param(cards, uint, 0444);
MODULE_PARM_DESC(cards, "number of simulated cards, 1 to 8 (default 1)");

static char *version = RM_VERSION;
module_param(version, charp, 0444);
MODULE_PARM_DESC(version,
		 "driver version that is told (the interface stays that of " RM_VERSION ")");
const char *front_version = RM_VERSION;

#define NODES (RM_MINOR_CTL + 1)

static const dev_t first_node = MKDEV(RM_MAJOR, 0);
static struct cdev node;
static struct class *node_class;
static struct device *root_device;
static struct dentry *debug_root;
static struct front_host *hosts[SIM_CARDS_MAX];

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
	int err;

	adev->name = "card";
	adev->id = host->card.index;
	adev->dev.parent = root_device;
	adev->dev.release = host_release;
	host->device.ops = &front_sim_ops;
	host->device.index = host->card.index;
	snprintf(host->device.name, sizeof(host->device.name), "Simulated T4");
	snprintf(host->device.uuid, sizeof(host->device.uuid), "GPU-71677075-5349-4d54-8034-%012x",
		 host->card.index);
	err = auxiliary_device_init(adev);
	if (!err)
		atomic_inc(&devices_left);
	return err;
}

static struct front_host *host_create(u32 index)
{
	struct front_host *host = kvzalloc(sizeof(*host), GFP_KERNEL);
	int err;

	if (!host)
		return ERR_PTR(-ENOMEM);
	err = front_host_init(host, index);
	if (err)
		goto err_free;
	err = init_device(host);
	if (err)
		goto err_host;
	front_debugfs_init(host, debug_root);
	return host;

err_host:
	front_host_fini(host);
err_free:
	kvfree(host);
	return ERR_PTR(err);
}

static void destroy_hosts(void)
{
	u32 i;

	for (i = 0; i < SIM_CARDS_MAX; i++) {
		if (hosts[i] && hosts[i]->published)
			auxiliary_device_delete(&hosts[i]->device.adev);
	}
	debugfs_remove_recursive(debug_root);
	for (i = 0; i < SIM_CARDS_MAX; i++) {
		if (!hosts[i])
			continue;
		front_host_fini(hosts[i]);
		auxiliary_device_uninit(&hosts[i]->device.adev);
		hosts[i] = NULL;
	}
}

static int create_hosts(void)
{
	int err;
	u32 i;

	for (i = 0; i < cards; i++) {
		hosts[i] = host_create(i);
		if (IS_ERR(hosts[i])) {
			err = PTR_ERR(hosts[i]);
			hosts[i] = NULL;
			return err;
		}
	}
	for (i = 0; i < cards; i++) {
		/* A driver's refusal to bind is its own affair: it is not an error here. */
		err = auxiliary_device_add(&hosts[i]->device.adev);
		if (err)
			return err;
		hosts[i]->published = true;
	}
	return 0;
}

/* The real nodes may be opened by everybody; so may these. */
static char *node_mode(QGPU_DEVNODE_CONST struct device *dev, umode_t *mode)
{
	if (mode)
		*mode = 0666;
	return NULL;
}

static int create_nodes(void)
{
	struct device *dev;
	u32 i;

	for (i = 0; i < cards; i++) {
		dev = device_create(node_class, root_device, first_node + i, NULL, "nvidia%u", i);
		if (IS_ERR(dev))
			return PTR_ERR(dev);
	}
	dev = device_create(node_class, root_device, first_node + RM_MINOR_CTL, NULL, "nvidiactl");
	return PTR_ERR_OR_ZERO(dev);
}

static void destroy_nodes(void)
{
	u32 i;

	for (i = 0; i < cards; i++)
		device_destroy(node_class, first_node + i);
	device_destroy(node_class, first_node + RM_MINOR_CTL);
}

static int __init sim_init(void)
{
	int err;

	if (cards < 1 || cards > SIM_CARDS_MAX) {
		pr_err("cards=%u is not between 1 and %d\n", cards, SIM_CARDS_MAX);
		return -EINVAL;
	}
	if (strlen(version) >= sizeof_field(struct rm_version, text)) {
		pr_err("version is too long\n");
		return -EINVAL;
	}
	front_version = version;
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

	err = create_hosts();
	if (err)
		goto err_hosts;
	err = create_nodes();
	if (err)
		goto err_nodes;
	err = front_procfs_init();
	if (err)
		goto err_nodes;
	/* Last, as from here on somebody may have a card open. */
	cdev_init(&node, &front_fops);
	node.owner = THIS_MODULE;
	err = cdev_add(&node, first_node, NODES);
	if (err)
		goto err_procfs;
	pr_info("%u simulated card%s, driver interface %s\n", cards, cards == 1 ? "" : "s",
		front_version);
	return 0;

err_procfs:
	front_procfs_exit();
err_nodes:
	destroy_nodes();
err_hosts:
	destroy_hosts();
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
	front_procfs_exit();
	destroy_nodes();
	cdev_del(&node);
	destroy_hosts();
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
