// SPDX-License-Identifier: GPL-2.0
/*
 * pci_card.c - cards on the PCI bus whose chip is the model: claimed, reset, and driven through
 * BAR 0 with 32-bit accesses; what the card reads of memory lies where it reaches it by DMA. A
 * tenant's doorbell page is the card's own.
 *
 * Only a device with the judge's BAR is taken (judge.h): a real T4 has none. There is no video
 * memory, and no interrupt is asked for: what the driver waits for it polls, as its runlists.
 */
#include "pci_card.h"

#include <linux/delay.h>
#include <linux/io.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "judge.h"

#define VENDOR_NVIDIA 0x10de
#define DEVICE_T4 0x1eb8
#define BAR0_BYTES (16u << 20)
/* An instance block's address has 28 bits of pages. */
#define ADDRESS_BITS 40

#define PMC_ENABLE 0x000200u
#define PMC_ENABLE_PFIFO BIT(8)
#define PTIMER_TIME_0 0x009400u
#define PTIMER_TIME_1 0x009410u
#define USERMODE 0xbb0000u
#define USERMODE_BYTES 0x10000u
#define DOORBELL 0xbb0090u

/* Filled while the driver is registered, in the order of the bus; fixed from then on. */
static struct pci_card *cards[SIM_CARDS_MAX];
static u32 card_count;
static bool probing;
static const struct pci_card_events *events;

struct sim_card *pci_card_find(u32 index)
{
	return index < card_count && cards[index] ? &cards[index]->card : NULL;
}

struct sim_card *pci_card_of(struct pci_dev *pdev)
{
	struct pci_card *card = pci_get_drvdata(pdev);

	return card ? &card->card : NULL;
}

/* ---- struct sim_card_ops ---- */

static u32 read32(struct sim_card *base, u32 offset)
{
	struct pci_card *card = to_pci_card(base);

	return READ_ONCE(card->stopped) ? ~0u : readl(card->registers + offset);
}

static void write32(struct sim_card *base, u32 offset, u32 value)
{
	struct pci_card *card = to_pci_card(base);

	if (!READ_ONCE(card->stopped))
		writel(value, card->registers + offset);
}

static void ring(struct sim_card *card, const u32 *tokens, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++)
		write32(card, DOORBELL, tokens[i]);
}

/* TIME_1 changes every 4.3 s: one repetition. */
static u64 time_ns(struct sim_card *card)
{
	u32 high = read32(card, PTIMER_TIME_1), low = read32(card, PTIMER_TIME_0);
	u32 again = read32(card, PTIMER_TIME_1);

	if (again != high)
		low = read32(card, PTIMER_TIME_0);
	return (u64)again << 32 | low;
}

/* A register read brings the model up to now, and there is nobody else to tell. */
static void sync(struct sim_card *card)
{
}

static int mem_alloc(struct sim_card *card, u32 bytes, struct sim_mem *mem)
{
	dma_addr_t addr;

	mem->bytes = PAGE_ALIGN(bytes);
	mem->cpu = dma_alloc_coherent(&card->pdev->dev, mem->bytes, &addr, GFP_KERNEL_ACCOUNT);
	if (!mem->cpu)
		return -ENOMEM;
	mem->addr = addr;
	return 0;
}

static void mem_free(struct sim_card *card, struct sim_mem *mem)
{
	dma_free_coherent(&card->pdev->dev, mem->bytes, mem->cpu, mem->addr);
}

static int page_map(struct sim_card *card, struct page *page, u64 *addr)
{
	dma_addr_t at;
	int err = pci_page_share(to_pci_card(card), page, &at);

	if (!err)
		*addr = at;
	return err;
}

static void page_unmap(struct sim_card *card, struct page *page, u64 addr)
{
	pci_page_unshare(to_pci_card(card), page);
}

static int map_bell(struct sim_card *card, struct vm_area_struct *vma)
{
	u64 at = pci_resource_start(card->pdev, 0) + USERMODE;
	u64 bytes = vma->vm_end - vma->vm_start;

	/* A private mapping would be copied on the first store. */
	if (!(vma->vm_flags & VM_SHARED) || bytes > USERMODE_BYTES)
		return -EINVAL;
	vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	return io_remap_pfn_range(vma, vma->vm_start, at >> PAGE_SHIFT, bytes, vma->vm_page_prot);
}

static u64 judge_number(const struct pci_card *card, enum judge_number number)
{
	u32 low = readl(card->judge + JUDGE_NUMBER(number));

	return low | (u64)readl(card->judge + JUDGE_NUMBER(number) + 4) << 32;
}

static void record(struct sim_card *base, struct sim_record *out)
{
	struct pci_card *card = to_pci_card(base);

	spin_lock(&card->judge_lock);
	*out = (struct sim_record){
		.time_ns = judge_number(card, JUDGE_TIME_NS),
		.totals = {
			.run_ns = judge_number(card, JUDGE_RUN_NS),
			.switch_ns = judge_number(card, JUDGE_SWITCH_NS),
			.idle_ns = judge_number(card, JUDGE_IDLE_NS),
			.switches = judge_number(card, JUDGE_SWITCHES),
			.kernels = judge_number(card, JUDGE_KERNELS),
			.submits = judge_number(card, JUDGE_SUBMITS),
			.preempts = judge_number(card, JUDGE_PREEMPTS),
			.doorbells = judge_number(card, JUDGE_DOORBELLS),
			.protocol_errors = judge_number(card, JUDGE_PROTOCOL_ERRORS),
		},
	};
	spin_unlock(&card->judge_lock);
}

static u64 tsg_run_ns(struct sim_card *base, u16 id)
{
	struct pci_card *card = to_pci_card(base);
	u64 run_ns;

	spin_lock(&card->judge_lock);
	writel(id, card->judge + JUDGE_TSG);
	run_ns = judge_number(card, JUDGE_TSG_RUN_NS);
	spin_unlock(&card->judge_lock);
	return run_ns;
}

static void tsg_forget(struct sim_card *card, u16 id)
{
	writel(id, to_pci_card(card)->judge + JUDGE_FORGET);
}

/* All of the host engine: channels, lists, what is on the engines. */
static void reset_host(struct sim_card *card)
{
	u32 enabled = read32(card, PMC_ENABLE);

	write32(card, PMC_ENABLE, enabled & ~PMC_ENABLE_PFIFO);
	read32(card, PMC_ENABLE);
	write32(card, PMC_ENABLE, enabled | PMC_ENABLE_PFIFO);
	read32(card, PMC_ENABLE);
}

static void stop(struct sim_card *base)
{
	struct pci_card *card = to_pci_card(base);

	reset_host(base);
	WRITE_ONCE(card->stopped, true);
	pci_clear_master(base->pdev);
}

static void destroy(struct sim_card *base)
{
	struct pci_card *card = to_pci_card(base);
	struct pci_dev *pdev = base->pdev;

	pci_iounmap(pdev, card->judge);
	pci_iounmap(pdev, card->registers);
	pci_release_region(pdev, 0);
	pci_disable_device(pdev);
	pci_set_drvdata(pdev, NULL);
	cards[base->index] = NULL;
	pci_pages_fini(card);
	kfree(card);
}

static const struct sim_card_ops pci_card_ops = {
	.read32 = read32,
	.write32 = write32,
	.ring = ring,
	.time_ns = time_ns,
	.sync = sync,
	.mem_alloc = mem_alloc,
	.mem_free = mem_free,
	.page_map = page_map,
	.page_unmap = page_unmap,
	.space_create = pci_space_create,
	.space_destroy = pci_space_destroy,
	.space_map = pci_space_map,
	.space_unmap = pci_space_unmap,
	.map_bell = map_bell,
	.record = record,
	.tsg_run_ns = tsg_run_ns,
	.tsg_forget = tsg_forget,
	.stop = stop,
	.destroy = destroy,
};

/* ---- the PCI driver ---- */

/* Looked at before anything of the device is touched. */
static bool may_be_model(struct pci_dev *pdev)
{
	return pci_resource_len(pdev, 0) == BAR0_BYTES &&
	       pci_resource_len(pdev, JUDGE_BAR) == JUDGE_BYTES &&
	       pci_resource_flags(pdev, JUDGE_BAR) & IORESOURCE_MEM;
}

static bool is_model(struct pci_dev *pdev)
{
	void __iomem *judge;
	bool is;

	judge = pci_iomap(pdev, JUDGE_BAR, 0);
	if (!judge)
		return false;
	is = readl(judge + JUDGE_MAGIC) == JUDGE_MAGIC_VALUE;
	pci_iounmap(pdev, judge);
	return is;
}

static int map_bars(struct pci_card *card)
{
	struct pci_dev *pdev = card->card.pdev;
	int err = pci_request_region(pdev, 0, KBUILD_MODNAME);

	if (err)
		return err;
	card->registers = pci_iomap(pdev, 0, 0);
	card->judge = pci_iomap(pdev, JUDGE_BAR, 0);
	if (card->registers && card->judge)
		return 0;
	if (card->registers)
		pci_iounmap(pdev, card->registers);
	pci_release_region(pdev, 0);
	return -ENOMEM;
}

/* From here on the card is as after power-on, and may reach memory. */
static int start(struct pci_card *card)
{
	struct pci_dev *pdev = card->card.pdev;
	int err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(ADDRESS_BITS));

	if (err)
		return err;
	reset_host(&card->card);
	err = sim_card_find_graphics(&card->card);
	if (!err)
		pci_set_master(pdev);
	return err;
}

static int enable(struct pci_card *card)
{
	struct pci_dev *pdev = card->card.pdev;
	int err = pci_enable_device(pdev);

	if (err)
		return err;
	if (!is_model(pdev)) {
		err = -ENODEV;
		goto err_disable;
	}
	err = map_bars(card);
	if (err)
		goto err_disable;
	err = start(card);
	if (!err)
		return 0;
	pci_iounmap(pdev, card->judge);
	pci_iounmap(pdev, card->registers);
	pci_release_region(pdev, 0);
err_disable:
	pci_disable_device(pdev);
	return err;
}

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct pci_card *card;
	int err;

	/* Device nodes are made at load: a card that comes later is left alone. */
	if (!probing || card_count == SIM_CARDS_MAX || !may_be_model(pdev))
		return -ENODEV;
	card = kzalloc(sizeof(*card), GFP_KERNEL);
	if (!card)
		return -ENOMEM;
	card->card.ops = &pci_card_ops;
	card->card.index = card_count;
	card->card.pdev = pdev;
	spin_lock_init(&card->judge_lock);
	pci_pages_init(card);
	err = enable(card);
	if (err) {
		kfree(card);
		return err;
	}
	cards[card_count++] = card;
	pci_set_drvdata(pdev, card);
	return 0;
}

static void remove(struct pci_dev *pdev)
{
	events->gone(pdev);
}

static int sleeps(struct device *dev)
{
	events->sleeps(to_pci_dev(dev));
	return 0;
}

static int wakes(struct device *dev)
{
	events->wakes(to_pci_dev(dev));
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(sleep_ops, sleeps, wakes);

static const struct pci_device_id ids[] = { { PCI_DEVICE(VENDOR_NVIDIA, DEVICE_T4) }, {} };

static struct pci_driver driver = {
	.name = KBUILD_MODNAME,
	.id_table = ids,
	.probe = probe,
	.remove = remove,
	.driver.pm = pm_sleep_ptr(&sleep_ops),
};

int pci_cards_register(const struct pci_card_events *told)
{
	int err;

	events = told;
	probing = true;
	err = pci_register_driver(&driver);
	probing = false;
	return err ? err : (int)card_count;
}

void pci_cards_unregister(void)
{
	pci_unregister_driver(&driver);
}
