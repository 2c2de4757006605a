/* SPDX-License-Identifier: GPL-2.0 */
/*
 * card.h - a card as the simulated driver drives it: registers, a clock, memory that the card
 * reads, address spaces, and the card's own record of who ran.
 *
 *   chip_card.c   the chip model in this kernel, for machines without a card on the bus
 *   pci_card.c    the chip model behind a PCI device: BAR 0, DMA, page tables as a TU104 walks them
 *
 * What the driver does to the one it does to the other; only the doorbell page differs (.map_bell).
 */
#ifndef SIM_CARD_H
#define SIM_CARD_H

#include <linux/types.h>

#include "qgpu_env.h"
#include "sim/chip/chip.h"

#define SIM_CARDS_MAX 8

struct page;
struct pci_dev;
struct sim_card;
struct vm_area_struct;

/**
 * struct sim_mem - memory of the driver itself that the card can read
 * @cpu: zeroed at allocation
 * @addr: bus address, 4 KiB aligned
 */
struct sim_mem {
	void *cpu;
	u64 addr;
	u32 bytes;
};

/**
 * struct sim_space - a GPU address space; the card's kind embeds it
 * @pdb: its page directory's bus address, by which an instance block names it
 */
struct sim_space {
	u64 pdb;
};

/**
 * struct sim_record - what the card itself knows of the graphics engine, at one instant
 * @time_ns: of the card's clock as the record has it
 * @error: last sentence about a protocol error, NULL if none or not told
 */
struct sim_record {
	u64 time_ns;
	struct chip_totals totals;
	const char *error;
};

/**
 * struct sim_card_ops - a kind of card
 * @read32, @write32: registers; never sleep
 * @ring: doorbells at one instant; never sleeps
 * @time_ns: what the card's timer shows, both its words at one instant; never sleeps
 * @sync: the record, and who listens to @switched, know all up to now; never sleeps
 * @mem_alloc: 0, -ENOSPC, -ENOMEM
 * @page_map: let the card reach @page; 0, -ENOSPC, -ENOMEM
 * @page_unmap: once for each @page_map, with what it was given and gave
 * @space_create: NULL when out of memory
 * @space_map: virtual pages from @first on; 0 or -ENOMEM with nothing mapped
 * @space_unmap: with the same pages as they were mapped; on return the card touches them no more
 * @map_bell: map the card's own usermode page; NULL: there is none, stores have to be noticed
 * @tsg_forget: @id is used for another TSG from here on
 * @stop: the card is gone from here on: registers read all ones, nothing in memory is touched
 * @destroy: after @stop; all memory was given back
 */
struct sim_card_ops {
	u32 (*read32)(struct sim_card *card, u32 offset);
	void (*write32)(struct sim_card *card, u32 offset, u32 value);
	void (*ring)(struct sim_card *card, const u32 *tokens, u32 count);
	u64 (*time_ns)(struct sim_card *card);
	void (*sync)(struct sim_card *card);
	int (*mem_alloc)(struct sim_card *card, u32 bytes, struct sim_mem *mem);
	void (*mem_free)(struct sim_card *card, struct sim_mem *mem);
	int (*page_map)(struct sim_card *card, struct page *page, u64 *addr);
	void (*page_unmap)(struct sim_card *card, struct page *page, u64 addr);
	struct sim_space *(*space_create)(struct sim_card *card);
	void (*space_destroy)(struct sim_card *card, struct sim_space *space);
	int (*space_map)(struct sim_card *card, struct sim_space *space, u64 first,
			 struct page *const *pages, u64 count);
	void (*space_unmap)(struct sim_card *card, struct sim_space *space, u64 first,
			    struct page *const *pages, u64 count);
	int (*map_bell)(struct sim_card *card, struct vm_area_struct *vma);
	void (*record)(struct sim_card *card, struct sim_record *out);
	u64 (*tsg_run_ns)(struct sim_card *card, u16 id);
	void (*tsg_forget)(struct sim_card *card, u16 id);
	void (*stop)(struct sim_card *card);
	void (*destroy)(struct sim_card *card);
};

/**
 * struct sim_card - a card; all set once
 * @index: 0 ... 7, and the minor of its device node
 * @gr_engine, @gr_runlist: graphics/compute, from the chip's own table
 * @pdev: its PCI device; NULL for the model in this kernel
 * @switched: told of each switch of the graphics engine, by the card's timer; must not sleep. Set
 *            before any TSG exists; NULL: nobody is told
 * @tells_switches: the card can do that
 * @owner: for @switched
 */
struct sim_card {
	const struct sim_card_ops *ops;
	u32 index;
	u32 gr_engine, gr_runlist;
	struct pci_dev *pdev;
	bool tells_switches;
	void (*switched)(struct sim_card *card, u16 tsg_id, u64 time_ns, bool on);
	void *owner;
};

static inline u32 sim_card_read32(struct sim_card *card, u32 offset)
{
	return card->ops->read32(card, offset);
}

static inline void sim_card_write32(struct sim_card *card, u32 offset, u32 value)
{
	card->ops->write32(card, offset, value);
}

static inline int sim_mem_alloc(struct sim_card *card, u32 bytes, struct sim_mem *mem)
{
	return card->ops->mem_alloc(card, bytes, mem);
}

static inline void sim_mem_free(struct sim_card *card, struct sim_mem *mem)
{
	if (mem->cpu)
		card->ops->mem_free(card, mem);
	mem->cpu = NULL;
}

/**
 * sim_card_find_graphics() - fill @gr_engine and @gr_runlist
 * Return: 0, or -ENODEV when the chip's table has no graphics engine.
 */
int sim_card_find_graphics(struct sim_card *card);

#endif
