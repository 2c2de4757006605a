// SPDX-License-Identifier: GPL-2.0
/*
 * procfs.c - see procfs.h. Lines and their spacing are the driver's.
 */
#include "procfs.h"

#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#include "host.h"

#define ROOT "driver/nvidia"

static int version_show(struct seq_file *out, void *unused)
{
	seq_printf(out, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  %s  (simulated)\n",
		   front_version);
	return 0;
}

static int information_show(struct seq_file *out, void *unused)
{
	const struct front_host *host = out->private;
	char location[16];

	front_host_location(host, location, sizeof(location));
	seq_printf(out, "Model: \t\t %s\n", host->device.name);
	seq_printf(out, "IRQ:   \t\t 0\n");
	seq_printf(out, "GPU UUID: \t %s\n", host->device.uuid);
	seq_printf(out, "Bus Type: \t PCIe\n");
	seq_printf(out, "Bus Location: \t %s\n", location);
	seq_printf(out, "Device Minor: \t %u\n", host->card->index);
	seq_printf(out, "GPU Firmware: \t %s\n", front_firmware);
	seq_printf(out, "GPU Excluded:\t No\n");
	return 0;
}

static struct proc_dir_entry *gpus;

int front_procfs_add(struct front_host *host)
{
	struct proc_dir_entry *dir;
	char name[16];

	front_host_location(host, name, sizeof(name));
	dir = proc_mkdir(name, gpus);
	if (!dir || !proc_create_single_data("information", 0444, dir, information_show, host))
		return -ENOMEM;
	return 0;
}

int front_procfs_init(void)
{
	struct proc_dir_entry *root = proc_mkdir(ROOT, NULL);

	if (!root)
		return -ENOMEM;
	gpus = proc_mkdir("gpus", root);
	if (gpus && proc_create_single("version", 0444, root, version_show))
		return 0;
	front_procfs_exit();
	return -ENOMEM;
}

void front_procfs_remove(struct front_host *host)
{
	char name[16];

	front_host_location(host, name, sizeof(name));
	remove_proc_subtree(name, gpus);
}

void front_procfs_exit(void)
{
	remove_proc_subtree(ROOT, NULL);
}
