// SPDX-License-Identifier: GPL-2.0
/*
 * pci.c - NVIDIA cards on the PCI bus, read and never written. Each has a file below debugfs/qgpu
 * whose reading is a survey: identity, and of a TU104 the registers of survey.h. Nothing is
 * claimed, enabled or woken, and a page of registers is mapped only while it is read: the card is
 * its driver's.
 *
 * Registers are read when the administrator reads the file, never at load. A card whose memory
 * decoding is off or that sleeps is left alone: a read would be lost, or wake it.
 */
#include <linux/debugfs.h>
#include <linux/io.h>
#include <linux/list.h>
#include <linux/pci.h>
#include <linux/pm_runtime.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include "compat.h"
#include "hw/hw_io.h"
#include "hw/tu104/survey.h"
#include "qgpu.h"

struct pci_card {
	struct list_head node;
	struct pci_dev *pdev; /* a reference is held */
};

static LIST_HEAD(pci_cards); /* made at load, emptied at unload, read by nobody else */
static struct dentry *folder;

/* A mapped page; registers are read in order, so few are mapped in turn. */
struct window {
	struct pci_dev *pdev;
	u32 page;
	void __iomem *base;
};

static void close_window(struct window *window)
{
	if (window->base)
		iounmap(window->base);
	window->base = NULL;
}

/* Return: 0, -ENOMEM, or -ERANGE: it lies outside BAR 0. */
static int read_register(struct window *window, u32 offset, u32 *value)
{
	u32 page = offset & PAGE_MASK;

	if ((u64)page + PAGE_SIZE > pci_resource_len(window->pdev, 0))
		return -ERANGE;
	if (!window->base || window->page != page) {
		close_window(window);
		/* Not cached, as its driver maps it: another type is refused. */
		window->base = ioremap(pci_resource_start(window->pdev, 0) + page, PAGE_SIZE);
		window->page = page;
	}
	if (!window->base)
		return -ENOMEM;
	*value = readl(window->base + (offset & ~PAGE_MASK));
	return 0;
}

static int put_register(struct seq_file *out, struct window *window, u32 offset)
{
	u32 value;
	int err = read_register(window, offset, &value);

	if (!err)
		seq_printf(out, "%06x %08x\n", offset, value);
	return err;
}

static int put_ranges(struct seq_file *out, struct window *window)
{
	const struct tu104_survey_range *range;
	u32 i, k;
	int err;

	for (i = 0; i < ARRAY_SIZE(tu104_survey_ranges); i++) {
		range = &tu104_survey_ranges[i];
		for (k = 0; k < range->count; k++) {
			err = put_register(out, window, range->offset + k * range->stride);
			if (err)
				return err;
		}
	}
	return 0;
}

static int put_registers(struct seq_file *out, struct pci_dev *pdev)
{
	struct window window = { .pdev = pdev };
	u32 boot0;
	int err;

	err = read_register(&window, TU104_PMC_BOOT_0, &boot0);
	if (!err && hw_io_bad(boot0)) {
		seq_printf(out, "state does not answer: PMC_BOOT_0 reads %08x\n", boot0);
		goto out;
	}
	if (!err)
		err = put_register(out, &window, TU104_PMC_BOOT_0);
	if (!err)
		err = put_register(out, &window, TU104_PMC_BOOT_42);
	/* Of other chips it is not known what is where. */
	if (!err && tu104_get(boot0, TU104_PMC_BOOT_0_CHIP_ID) == TU104_CHIP_ID)
		err = put_ranges(out, &window);
	if (!err)
		seq_puts(out, "state read\n");
out:
	close_window(&window);
	return err;
}

static int put_state(struct seq_file *out, struct pci_dev *pdev)
{
	u16 command = 0;
	bool managed;
	int err = 0;

	if (!device_is_registered(&pdev->dev)) {
		seq_puts(out, "state taken out\n");
		return 0;
	}
	managed = pm_runtime_enabled(&pdev->dev);
	if (managed && qgpu_pm_get_if_active(&pdev->dev) <= 0) {
		seq_puts(out, "state asleep: left alone\n");
		return 0;
	}
	pci_read_config_word(pdev, PCI_COMMAND, &command);
	if (command == 0xffff)
		seq_puts(out, "state off the bus\n");
	else if (!(command & PCI_COMMAND_MEMORY))
		seq_puts(out, "state not enabled: no driver has it\n");
	else
		err = put_registers(out, pdev);
	if (managed)
		pm_runtime_put(&pdev->dev);
	return err;
}

static int survey_show(struct seq_file *out, void *unused)
{
	struct pci_dev *pdev = out->private;
	int err;

	seq_printf(out, "address %s\n", pci_name(pdev));
	seq_printf(out, "id %04x:%04x %04x:%04x\n", pdev->vendor, pdev->device,
		   pdev->subsystem_vendor, pdev->subsystem_device);
	/* Its driver stays with it, and it on its bus, for so long. Whoever has the lock may wait
	 * for programs: nobody waits for that here. */
	if (!device_trylock(&pdev->dev)) {
		seq_puts(out, "driver ?\nstate its driver comes or goes: left alone\n");
		return 0;
	}
	seq_printf(out, "driver %s\n", pdev->dev.driver ? pdev->dev.driver->name : "-");
	err = put_state(out, pdev);
	device_unlock(&pdev->dev);
	return err;
}
DEFINE_SHOW_ATTRIBUTE(survey);

static bool is_gpu(const struct pci_dev *pdev)
{
	u32 class = pdev->class >> 8;

	return (class == PCI_CLASS_DISPLAY_3D || class == PCI_CLASS_DISPLAY_VGA) &&
	       pci_resource_flags(pdev, 0) & IORESOURCE_MEM;
}

static int add_card(struct pci_dev *pdev)
{
	struct pci_card *card = kzalloc(sizeof(*card), GFP_KERNEL);

	if (!card)
		return -ENOMEM;
	card->pdev = pci_dev_get(pdev);
	list_add_tail(&card->node, &pci_cards);
	debugfs_create_file(pci_name(pdev), 0400, folder, pdev, &survey_fops);
	return 0;
}

int qgpu_pci_register(void)
{
	struct pci_dev *pdev = NULL;
	int err;

	folder = debugfs_create_dir("qgpu", NULL);
	while ((pdev = pci_get_device(PCI_VENDOR_ID_NVIDIA, PCI_ANY_ID, pdev))) {
		if (!is_gpu(pdev))
			continue;
		err = add_card(pdev);
		if (err) {
			pci_dev_put(pdev);
			qgpu_pci_unregister();
			return err;
		}
	}
	return 0;
}

void qgpu_pci_unregister(void)
{
	struct pci_card *card, *next;

	debugfs_remove_recursive(folder); /* nobody reads any more */
	list_for_each_entry_safe(card, next, &pci_cards, node) {
		list_del(&card->node);
		pci_dev_put(card->pdev);
		kfree(card);
	}
}
