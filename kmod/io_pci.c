// SPDX-License-Identifier: GPL-2.0
/*
 * io_pci.c - a card on the PCI bus beside the driver that has it. Nothing is claimed: a reference
 * keeps the device, and one on its runtime power state keeps it awake. The pages of BAR 0 that are
 * needed are mapped and no others, a store goes to three of them, and every access is 32 bits wide.
 *
 * A card is left alone when its memory decoding is off, when it sleeps, when it is another chip,
 * and when firmware on it runs its scheduler: that firmware knows of no other writer, and what the
 * CPU may write under it is not known (hardware page 12, 14).
 */
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/iommu.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/pm_runtime.h>
#include <linux/slab.h>

#include "compat.h"
#include "hw/tu104/regs.h"
#include "io.h"
#include "sim_device.h"

#define INFORMATION_BYTES 2048

/* What is mapped of BAR 0 (hardware page 12), and where a store may go. */
static const struct {
	u32 offset, bytes;
	bool writable;
} windows[] = {
	{ 0x002000, 0x2000, true },  /* PFIFO: lists, preemption, status */
	{ 0x800000, 0x8000, true },  /* PCCSR: channels */
	{ 0xbb0000, 0x1000, true },  /* usermode: doorbells */
	{ 0x000000, 0x1000, false }, /* PMC: identity */
	{ 0x009000, 0x1000, false }, /* PTIMER */
	{ 0x022000, 0x1000, false }, /* PTOP: engines */
};

struct qgpu_bar {
	struct pci_dev *pdev;
	bool awake; /* a reference on its power state is held */
	void __iomem *at[ARRAY_SIZE(windows)];
};

/* ---- hw_io_ops ---- */

static void __iomem *find(const struct qgpu_bar *bar, u32 offset, bool write)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(windows); i++) {
		if (offset - windows[i].offset >= windows[i].bytes)
			continue;
		return write && !windows[i].writable ? NULL :
						       bar->at[i] + (offset - windows[i].offset);
	}
	return NULL;
}

static u32 read32(void *ctx, u32 offset)
{
	void __iomem *at = find(ctx, offset, false);

	return WARN_ON_ONCE(!at) ? ~0u : readl(at);
}

static void write32(void *ctx, u32 offset, u32 value)
{
	void __iomem *at = find(ctx, offset, true);

	if (!WARN_ON_ONCE(!at))
		writel(value, at);
}

static const struct hw_io_ops pci_ops = {
	.read32 = read32,
	.write32 = write32,
	.now_ns = qgpu_io_now_ns,
	.wait_ns = qgpu_io_wait_ns,
	.flush = qgpu_io_flush,
};

/* ---- may it be touched at all ---- */

/* A register that is read once, outside the windows. Return: 0 or -ENOMEM. */
static int peek(struct pci_dev *pdev, u32 offset, u32 *value)
{
	void __iomem *page = ioremap(pci_resource_start(pdev, 0) + (offset & PAGE_MASK), PAGE_SIZE);

	if (!page)
		return -ENOMEM;
	*value = readl(page + (offset & ~PAGE_MASK));
	iounmap(page);
	return 0;
}

/* What its driver says of it; NULL: it does not, or not to the kernel. To be freed. */
static char *read_information(struct pci_dev *pdev)
{
	char *text = kzalloc(INFORMATION_BYTES, GFP_KERNEL), path[64];
	struct file *file;
	ssize_t count = -ENOMEM;
	loff_t pos = 0;

	snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", pci_name(pdev));
	file = filp_open(path, O_RDONLY, 0);
	if (!IS_ERR(file)) {
		/* An entry without read_iter, as of some releases, cannot be read from here. */
		if (text && file->f_op->read_iter && !file->f_op->read)
			count = kernel_read(file, text, INFORMATION_BYTES - 1, &pos);
		filp_close(file, NULL);
	}
	if (count > 0)
		return text;
	kfree(text);
	return NULL;
}

static bool driver_says_firmware(struct pci_dev *pdev)
{
	char *text = read_information(pdev), *at;
	bool says = false;

	at = text ? strstr(text, "GPU Firmware:") : NULL;
	if (at) {
		at = skip_spaces(at + strlen("GPU Firmware:"));
		says = *at && strncmp(at, "N/A", 3);
	}
	kfree(text);
	return says;
}

/* Return: 0; -ENODEV with the reason in @why; -ENOMEM. */
static int check_identity(struct pci_dev *pdev, const char **why)
{
	u32 boot0, riscv;
	int err = peek(pdev, TU104_PMC_BOOT_0, &boot0);

	if (err)
		return err;
	*why = "it does not answer";
	if (hw_io_bad(boot0))
		return -ENODEV;
	*why = "it is another chip: its identity is read, and nothing else";
	if (tu104_get(boot0, TU104_PMC_BOOT_0_CHIP_ID) != TU104_CHIP_ID)
		return -ENODEV;
	err = peek(pdev, TU104_GSP_RISCV_STATUS, &riscv);
	if (err)
		return err;
	*why = "firmware on the card runs its scheduler: no register is written under it";
	if (driver_says_firmware(pdev) || riscv & TU104_GSP_RISCV_STATUS_ACTIVE)
		return -ENODEV;
	*why = "whether firmware runs it cannot be read";
	return hw_io_bad(riscv) ? -ENODEV : 0;
}

static bool is_decoding(struct pci_dev *pdev)
{
	u16 command = 0;

	pci_read_config_word(pdev, PCI_COMMAND, &command);
	return command != 0xffff && command & PCI_COMMAND_MEMORY;
}

static int check(struct qgpu_bar *bar, const char **why)
{
	struct pci_dev *pdev = bar->pdev;

	*why = "it sleeps";
	if (pm_runtime_enabled(&pdev->dev)) {
		if (qgpu_pm_get_if_active(&pdev->dev) <= 0)
			return -ENODEV;
		bar->awake = true;
	}
	*why = "its memory decoding is off";
	if (!is_decoding(pdev))
		return -ENODEV;
	*why = "its BAR 0 is too small for a TU104's";
	if (pci_resource_len(pdev, 0) < TU104_BAR0_BYTES)
		return -ENODEV;
	return check_identity(pdev, why);
}

/* ---- qgpu_io_kind ---- */

static void close(struct qgpu_io *io)
{
	struct qgpu_bar *bar = io->bar;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(windows); i++)
		if (bar->at[i])
			iounmap(bar->at[i]);
	if (bar->awake)
		pm_runtime_put(&bar->pdev->dev);
	pci_dev_put(bar->pdev);
	kfree(bar);
	io->bar = NULL;
}

static int map_windows(struct qgpu_bar *bar)
{
	resource_size_t start = pci_resource_start(bar->pdev, 0);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(windows); i++) {
		/* Not cached, as its driver maps it: another type is refused. */
		bar->at[i] = ioremap(start + windows[i].offset, windows[i].bytes);
		if (!bar->at[i])
			return -ENOMEM;
	}
	return 0;
}

static int open(struct qgpu_io *io)
{
	const char *why = NULL;
	int err;

	io->bar = kzalloc(sizeof(*io->bar), GFP_KERNEL);
	if (!io->bar)
		return -ENOMEM;
	io->bar->pdev = pci_dev_get(io->sim->pdev);
	err = check(io->bar, &why);
	if (err == -ENODEV)
		pr_info("qgpu: %s is left alone: %s\n", pci_name(io->bar->pdev), why);
	if (!err)
		err = map_windows(io->bar);
	if (err) {
		close(io);
		return err;
	}
	io->hw = (struct hw_io){ &pci_ops, io->bar };
	return 0;
}

static void mem_free(struct qgpu_io *io, struct hw_mem *mem)
{
	dma_free_coherent(&io->bar->pdev->dev, mem->bytes, mem->cpu, mem->bus_addr);
	mem->cpu = NULL;
}

/* By the mask that the card's driver set for it, and gone before that driver is. That mask may be
 * wider than the address of a list. */
static int mem_alloc(struct qgpu_io *io, u32 bytes, struct hw_mem *out)
{
	dma_addr_t addr;

	out->bytes = PAGE_ALIGN(bytes);
	out->cpu = dma_alloc_coherent(&io->bar->pdev->dev, out->bytes, &addr, GFP_KERNEL);
	if (!out->cpu)
		return -ENOMEM;
	out->bus_addr = addr;
	out->target = HW_TARGET_SYSMEM_COHERENT;
	if ((addr + out->bytes - 1) >> TU104_ADDRESS_BITS) {
		mem_free(io, out);
		return -ENOMEM;
	}
	return 0;
}

/* What the card calls @addr is a bus address; behind an IOMMU that is not where it lies. */
static phys_addr_t physical(struct pci_dev *pdev, u64 addr)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&pdev->dev);

	return domain ? iommu_iova_to_phys(domain, addr) : addr;
}

static const void *map_page(struct qgpu_io *io, enum hw_target target, u64 addr)
{
	phys_addr_t at = physical(io->bar->pdev, addr);
	void *page;

	if (target == HW_TARGET_VIDMEM || !at || !page_is_ram(PHYS_PFN(at)))
		return ERR_PTR(-EOPNOTSUPP);
	page = memremap(at & PAGE_MASK, PAGE_SIZE, MEMREMAP_WB);
	return page ? page : ERR_PTR(-ENOMEM);
}

static void unmap_page(struct qgpu_io *io, const void *page)
{
	memunmap((void *)page);
}

const struct qgpu_io_kind qgpu_io_pci = {
	.open = open,
	.close = close,
	.mem_map = map_page,
	.mem_unmap = unmap_page,
	.mem_alloc = mem_alloc,
	.mem_free = mem_free,
};
