// SPDX-License-Identifier: GPL-2.0
/*
 * pci_space.c - GPU address spaces of a PCI card: page tables in memory in the format that a TU104
 * walks (MMU version 2: five levels, 49 bits of address, pages of 4 KiB), and pages made reachable
 * for the card.
 *
 *   PD3 48:47 -> PD2 46:38 -> PD1 37:29 -> PD0 28:21 -> page table 20:12
 *
 * An entry of PD0 is two: one for a table of big pages, which is never there, and one for ours.
 * The caller serialises changes of a space (client->lock); the card reads at any time. A table is
 * freed with the last that is in it.
 */
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "pci_card.h"

#define LEVELS 5u

/* By level: where its index begins in a page number, how many bits it has, which 64-bit word of an
 * entry is ours and how many words an entry has. */
static const struct {
	u8 shift, bits, word, words;
} levels[LEVELS] = {
	{ 35, 2, 0, 1 }, { 26, 9, 0, 1 }, { 17, 9, 0, 1 }, { 9, 8, 1, 2 }, { 0, 9, 0, 1 },
};

/* Entries: address bits 53:8 are those of a bus address from bit 12 on. */
#define ENTRY_APERTURE_SYSMEM (2ull << 1) /* coherent */
#define ENTRY_VALID BIT_ULL(0)		  /* of a page; tables have only the aperture */
#define ENTRY_ADDRESS_SHIFT 4

/**
 * struct table - a page of entries
 * @page: set once
 * @addr: the same for the card, set once
 * @used: how many of them are valid
 * @node: in a list of those that are being freed
 */
struct table {
	struct page *page;
	dma_addr_t addr;
	u32 used;
	struct list_head node;
};

/**
 * struct pci_space - see above
 * @space: what the driver knows of it
 * @root: PD3
 * @tables: all others: by level and what is above their index
 */
struct pci_space {
	struct sim_space space;
	struct table root;
	struct xarray tables;
};

static struct pci_space *to_pci_space(struct sim_space *space)
{
	return container_of(space, struct pci_space, space);
}

static unsigned long table_key(u32 level, u64 page)
{
	return (unsigned long)level << 56 |
	       (unsigned long)(page >> (levels[level].shift + levels[level].bits));
}

static __le64 *entry_of(const struct table *table, u32 level, u64 page)
{
	u64 index = page >> levels[level].shift & (BIT_ULL(levels[level].bits) - 1);

	return (__le64 *)page_address(table->page) + index * levels[level].words +
	       levels[level].word;
}

/* Whole or not at all, as far as the card can see. */
static void set_entry(__le64 *entry, u64 value)
{
	WRITE_ONCE(*entry, cpu_to_le64(value));
}

static int make_table(struct pci_card *card, struct table *table)
{
	table->page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!table->page)
		return -ENOMEM;
	if (!pci_page_share(card, table->page, &table->addr))
		return 0;
	__free_page(table->page);
	return -ENOMEM;
}

static void free_table(struct pci_card *card, struct table *table)
{
	pci_page_unshare(card, table->page);
	__free_page(table->page);
}

/* A table below @above; it is reachable from then on. NULL when out of memory. */
static struct table *add_table(struct pci_card *card, struct pci_space *space, struct table *above,
			       u32 level, u64 page)
{
	struct table *table = kzalloc(sizeof(*table), GFP_KERNEL_ACCOUNT);

	if (!table)
		return NULL;
	if (make_table(card, table))
		goto err_table;
	if (xa_err(xa_store(&space->tables, table_key(level, page), table, GFP_KERNEL_ACCOUNT)))
		goto err_page;
	dma_wmb(); /* its zeroes are there before it can be found */
	set_entry(entry_of(above, level - 1, page),
		  ENTRY_APERTURE_SYSMEM | (u64)table->addr >> ENTRY_ADDRESS_SHIFT);
	above->used++;
	return table;

err_page:
	free_table(card, table);
err_table:
	kfree(table);
	return NULL;
}

/* The table that has a page's entry; NULL: there is none, and with @card none could be made. */
static struct table *find_table(struct pci_card *card, struct pci_space *space, u64 page)
{
	struct table *table = &space->root, *below;
	u32 level;

	for (level = 1; level < LEVELS; level++) {
		below = xa_load(&space->tables, table_key(level, page));
		if (!below && card)
			below = add_table(card, space, table, level, page);
		if (!below)
			return NULL;
		table = below;
	}
	return table;
}

static int map_page(struct pci_card *card, struct pci_space *space, u64 number, struct page *page)
{
	struct table *table = find_table(card, space, number);
	dma_addr_t addr;

	if (!table)
		return -ENOMEM;
	if (pci_page_share(card, page, &addr))
		return -ENOMEM;
	set_entry(entry_of(table, LEVELS - 1, number),
		  ENTRY_VALID | ENTRY_APERTURE_SYSMEM | (u64)addr >> ENTRY_ADDRESS_SHIFT);
	table->used++;
	return 0;
}

/* The model keeps no translations: what it does now it looks up now. Having it answer a read, which
 * nothing overtakes, is all the invalidation there is. */
static void invalidate(struct sim_card *card)
{
	sim_card_read32(card, 0);
}

/* Out of the way to @page is taken, from the bottom up, what has nothing in it. */
static void unlink_empty(struct pci_space *space, u64 page, struct list_head *empty)
{
	struct table *table, *above;
	u32 level;

	for (level = LEVELS - 1; level; level--) {
		table = xa_load(&space->tables, table_key(level, page));
		if (!table)
			continue; /* none was made so far down */
		if (table->used)
			return;
		above = level > 1 ? xa_load(&space->tables, table_key(level - 1, page)) :
				    &space->root;
		set_entry(entry_of(above, level - 1, page), 0);
		above->used--;
		xa_erase(&space->tables, table_key(level, page));
		list_add(&table->node, empty);
	}
}

/* What is left without an entry where @count pages from @first were. */
static void free_empty(struct sim_card *card, struct pci_space *space, u64 first, u64 count)
{
	const u64 pages = BIT_ULL(levels[LEVELS - 1].bits);
	struct table *table, *next;
	LIST_HEAD(empty);
	u64 at;

	for (at = round_down(first, pages); at < first + count; at += pages)
		unlink_empty(space, at, &empty);
	if (list_empty(&empty))
		return;
	invalidate(card);
	list_for_each_entry_safe(table, next, &empty, node) {
		free_table(to_pci_card(card), table);
		kfree(table);
	}
}

static void unmap(struct sim_card *card, struct pci_space *space, u64 first,
		  struct page *const *pages, u64 count)
{
	struct table *table;
	u64 i;

	for (i = first; i < first + count; i++) {
		table = find_table(NULL, space, i);
		set_entry(entry_of(table, LEVELS - 1, i), 0);
		table->used--;
	}
	invalidate(card);
	for (i = 0; i < count; i++)
		pci_page_unshare(to_pci_card(card), pages[i]);
}

int pci_space_map(struct sim_card *card, struct sim_space *base, u64 first,
		  struct page *const *pages, u64 count)
{
	struct pci_space *space = to_pci_space(base);
	int err;
	u64 i;

	for (i = 0; i < count; i++) {
		err = map_page(to_pci_card(card), space, first + i, pages[i]);
		if (err) {
			unmap(card, space, first, pages, i);
			/* Tables may have been made for the one that failed, too. */
			free_empty(card, space, first, i + 1);
			return err;
		}
	}
	return 0;
}

void pci_space_unmap(struct sim_card *card, struct sim_space *base, u64 first,
		     struct page *const *pages, u64 count)
{
	struct pci_space *space = to_pci_space(base);

	unmap(card, space, first, pages, count);
	free_empty(card, space, first, count);
}

struct sim_space *pci_space_create(struct sim_card *card)
{
	struct pci_space *space = kzalloc(sizeof(*space), GFP_KERNEL_ACCOUNT);

	if (!space)
		return NULL;
	if (make_table(to_pci_card(card), &space->root)) {
		kfree(space);
		return NULL;
	}
	xa_init_flags(&space->tables, XA_FLAGS_ACCOUNT);
	space->space.pdb = space->root.addr;
	return &space->space;
}

/* No channel is left in it, and every page was unmapped. */
void pci_space_destroy(struct sim_card *card, struct sim_space *base)
{
	struct pci_space *space = to_pci_space(base);

	WARN_ON_ONCE(!xa_empty(&space->tables));
	xa_destroy(&space->tables);
	free_table(to_pci_card(card), &space->root);
	kfree(space);
}
