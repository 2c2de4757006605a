// SPDX-License-Identifier: GPL-2.0
/*
 * bus.c - memory as the chip model sees it: bus addresses and GPU virtual addresses, both looked
 * up a page at a time without locks. Removal: out of the lookup, chip_card_quiesce(), then free.
 */
#include "bus.h"

#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "hw/hw_io.h"

/**
 * struct chip_space - what the card sees of a GPU address space
 * @space: what the driver knows of it
 * @directory: where a page directory would be
 * @pages: GPU virtual page number -> struct page
 */
struct chip_space {
	struct sim_space space;
	struct sim_mem directory;
	struct xarray pages;
};

static u64 page_number(u64 addr)
{
	return addr >> PAGE_SHIFT;
}

/* ---- access, under chip_lock ---- */

/* One access, cut at page ends; @find gives a page's address or NULL. */
static int walk(void *(*find)(const void *where, u64 page), const void *where, u64 addr, void *buf,
		u32 bytes, bool write)
{
	u8 *cursor = buf;

	while (bytes) {
		u32 offset = offset_in_page(addr);
		u32 part = min_t(u32, bytes, PAGE_SIZE - offset);
		u8 *page = find(where, page_number(addr));

		if (!page)
			return -EFAULT;
		if (write)
			memcpy(page + offset, cursor, part);
		else
			memcpy(cursor, page + offset, part);
		addr += part;
		cursor += part;
		bytes -= part;
	}
	return 0;
}

static void *find_bus(const void *where, u64 page)
{
	const struct chip_card *card = where;

	return xa_load((struct xarray *)&card->bus, page);
}

static void *find_va(const void *where, u64 page)
{
	const struct chip_space *space = where;
	struct page *found = xa_load((struct xarray *)&space->pages, page);

	return found ? page_address(found) : NULL;
}

int sim_bus_read(void *ctx, u32 target, u64 addr, void *buf, u32 bytes)
{
	if (target != HW_TARGET_SYSMEM_COHERENT)
		return -EFAULT;
	return walk(find_bus, ctx, addr, buf, bytes, false);
}

int sim_bus_write(void *ctx, u32 target, u64 addr, const void *buf, u32 bytes)
{
	if (target != HW_TARGET_SYSMEM_COHERENT)
		return -EFAULT;
	return walk(find_bus, ctx, addr, (void *)buf, bytes, true);
}

int sim_va_read(void *ctx, u64 pdb, u64 va, void *buf, u32 bytes)
{
	struct chip_card *card = ctx;
	struct chip_space *space = xa_load(&card->spaces, page_number(pdb));

	return space ? walk(find_va, space, va, buf, bytes, false) : -EFAULT;
}

int sim_va_write(void *ctx, u64 pdb, u64 va, const void *buf, u32 bytes)
{
	struct chip_card *card = ctx;
	struct chip_space *space = xa_load(&card->spaces, page_number(pdb));
	const u32 first = min_t(u32, bytes, sizeof(u64));
	int err;

	if (!space)
		return -EFAULT;
	/* A tenant on another CPU waits for the first word of a completion: it comes last. */
	err = walk(find_va, space, va + first, (u8 *)buf + first, bytes - first, true);
	smp_wmb();
	return err ? err : walk(find_va, space, va, (void *)buf, first, true);
}

/* ---- addresses ---- */

static void unmap(struct chip_card *card, u64 addr, u32 count)
{
	u64 first = page_number(addr);
	u32 i;

	for (i = 0; i < count; i++)
		xa_erase(&card->bus, first + i);
	chip_card_quiesce(card);
	mutex_lock(&card->bus_lock);
	bitmap_clear(card->bus_used, first - SIM_BUS_BASE_PAGE, count);
	mutex_unlock(&card->bus_lock);
}

/* Give @pages consecutive bus addresses. Return: 0, -ENOSPC, -ENOMEM. */
static int map(struct chip_card *card, struct page **pages, u32 count, u64 *addr)
{
	unsigned long at;
	u64 first;
	u32 i;
	int err = -ENOSPC;

	mutex_lock(&card->bus_lock);
	at = bitmap_find_next_zero_area(card->bus_used, SIM_BUS_PAGES, card->bus_hint, count, 0);
	if (at >= SIM_BUS_PAGES)
		at = bitmap_find_next_zero_area(card->bus_used, SIM_BUS_PAGES, 0, count, 0);
	if (at < SIM_BUS_PAGES) {
		bitmap_set(card->bus_used, at, count);
		card->bus_hint = at + count;
		err = 0;
	}
	mutex_unlock(&card->bus_lock);
	if (err)
		return err;

	first = SIM_BUS_BASE_PAGE + at;
	for (i = 0; i < count; i++) {
		err = xa_err(xa_store(&card->bus, first + i, page_address(pages[i]),
				      GFP_KERNEL_ACCOUNT));
		if (err) {
			unmap(card, first << PAGE_SHIFT, count);
			return err;
		}
	}
	*addr = first << PAGE_SHIFT;
	return 0;
}

int sim_bus_mem_alloc(struct sim_card *card, u32 bytes, struct sim_mem *mem)
{
	u32 count = DIV_ROUND_UP(bytes, PAGE_SIZE), i;
	struct page **pages;
	int err = -ENOMEM;

	if (!count)
		return -EINVAL;
	pages = kvmalloc_array(count, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	mem->bytes = count << PAGE_SHIFT;
	mem->cpu = __vmalloc(mem->bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!mem->cpu)
		goto out;
	for (i = 0; i < count; i++)
		pages[i] = vmalloc_to_page((u8 *)mem->cpu + ((size_t)i << PAGE_SHIFT));
	err = map(to_chip_card(card), pages, count, &mem->addr);
	if (err) {
		vfree(mem->cpu);
		mem->cpu = NULL;
	}
out:
	kvfree(pages);
	return err;
}

void sim_bus_mem_free(struct sim_card *card, struct sim_mem *mem)
{
	unmap(to_chip_card(card), mem->addr, mem->bytes >> PAGE_SHIFT);
	vfree(mem->cpu);
}

int sim_bus_page_map(struct sim_card *card, struct page *page, u64 *addr)
{
	return map(to_chip_card(card), &page, 1, addr);
}

void sim_bus_page_unmap(struct sim_card *card, struct page *page, u64 addr)
{
	unmap(to_chip_card(card), addr, 1);
}

/* ---- address spaces ---- */

static struct chip_space *to_chip_space(struct sim_space *space)
{
	return container_of(space, struct chip_space, space);
}

struct sim_space *sim_bus_space_create(struct sim_card *base)
{
	struct chip_space *space = kzalloc(sizeof(*space), GFP_KERNEL_ACCOUNT);
	struct chip_card *card = to_chip_card(base);

	if (!space)
		return NULL;
	xa_init_flags(&space->pages, XA_FLAGS_ACCOUNT);
	if (sim_mem_alloc(base, PAGE_SIZE, &space->directory))
		goto err_space;
	space->space.pdb = space->directory.addr;
	if (xa_err(xa_store(&card->spaces, page_number(space->space.pdb), space,
			    GFP_KERNEL_ACCOUNT)))
		goto err_directory;
	return &space->space;

err_directory:
	sim_mem_free(base, &space->directory);
err_space:
	kfree(space);
	return NULL;
}

void sim_bus_space_destroy(struct sim_card *base, struct sim_space *gone)
{
	struct chip_space *space = to_chip_space(gone);
	struct chip_card *card = to_chip_card(base);

	xa_erase(&card->spaces, page_number(gone->pdb));
	chip_card_quiesce(card);
	xa_destroy(&space->pages);
	sim_mem_free(base, &space->directory);
	kfree(space);
}

void sim_bus_space_unmap(struct sim_card *card, struct sim_space *space, u64 first,
			 struct page *const *pages, u64 count)
{
	u64 i;

	for (i = 0; i < count; i++)
		xa_erase(&to_chip_space(space)->pages, first + i);
	chip_card_quiesce(to_chip_card(card));
}

int sim_bus_space_map(struct sim_card *card, struct sim_space *space, u64 first,
		      struct page *const *pages, u64 count)
{
	int err;
	u64 i;

	for (i = 0; i < count; i++) {
		err = xa_err(xa_store(&to_chip_space(space)->pages, first + i, pages[i],
				      GFP_KERNEL_ACCOUNT));
		if (err) {
			sim_bus_space_unmap(card, space, first, pages, count);
			return err;
		}
	}
	return 0;
}

int sim_bus_init(struct chip_card *card)
{
	mutex_init(&card->bus_lock);
	/* Charged to who asks: the flag in the calls reaches only some of the nodes. */
	xa_init_flags(&card->bus, XA_FLAGS_ACCOUNT);
	xa_init_flags(&card->spaces, XA_FLAGS_ACCOUNT);
	card->bus_hint = 0;
	card->bus_used = vzalloc(BITS_TO_LONGS(SIM_BUS_PAGES) * sizeof(long));
	return card->bus_used ? 0 : -ENOMEM;
}

void sim_bus_fini(struct chip_card *card)
{
	WARN_ON_ONCE(!xa_empty(&card->bus) || !xa_empty(&card->spaces));
	xa_destroy(&card->bus);
	xa_destroy(&card->spaces);
	vfree(card->bus_used);
}
