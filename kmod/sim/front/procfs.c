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

	seq_printf(out, "Model: \t\t %s\n", host->device.name);
	seq_printf(out, "IRQ:   \t\t 0\n");
	seq_printf(out, "GPU UUID: \t %s\n", host->device.uuid);
	seq_printf(out, "Bus Type: \t PCIe\n");
	seq_printf(out, "Bus Location: \t 0000:%02x:00.0\n", host->card.index + 1);
	seq_printf(out, "Device Minor: \t %u\n", host->card.index);
	seq_printf(out, "GPU Firmware: \t N/A\n");
	seq_printf(out, "GPU Excluded:\t No\n");
	return 0;
}

static int create_card(struct proc_dir_entry *gpus, struct front_host *host)
{
	struct proc_dir_entry *dir;
	char name[16];

	snprintf(name, sizeof(name), "0000:%02x:00.0", host->card.index + 1);
	dir = proc_mkdir(name, gpus);
	if (!dir || !proc_create_single_data("information", 0444, dir, information_show, host))
		return -ENOMEM;
	return 0;
}

int front_procfs_init(void)
{
	struct proc_dir_entry *root = proc_mkdir(ROOT, NULL);
	struct proc_dir_entry *gpus;
	int err = -ENOMEM;
	u32 i;

	if (!root)
		return -ENOMEM;
	gpus = proc_mkdir("gpus", root);
	if (!gpus || !proc_create_single("version", 0444, root, version_show))
		goto err_root;
	for (i = 0; i < front_host_count(); i++) {
		err = create_card(gpus, front_host_find(i));
		if (err)
			goto err_root;
	}
	return 0;

err_root:
	front_procfs_exit();
	return err;
}

void front_procfs_exit(void)
{
	remove_proc_subtree(ROOT, NULL);
}
