// SPDX-License-Identifier: GPL-2.0
/*
 * bus.c - memory as the chip model sees it: bus addresses and GPU virtual addresses, both looked
 * up a page at a time without locks. Removal: out of the lookup, sim_card_quiesce(), then free.
 */
#include "bus.h"

#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "hw/hw_io.h"

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
	const struct sim_card *card = where;

	return xa_load((struct xarray *)&card->bus, page);
}

static void *find_va(const void *where, u64 page)
{
	const struct sim_va_space *space = where;
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
	struct sim_card *card = ctx;
	struct sim_va_space *space = xa_load(&card->spaces, page_number(pdb));

	return space ? walk(find_va, space, va, buf, bytes, false) : -EFAULT;
}

int sim_va_write(void *ctx, u64 pdb, u64 va, const void *buf, u32 bytes)
{
	struct sim_card *card = ctx;
	struct sim_va_space *space = xa_load(&card->spaces, page_number(pdb));
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

int sim_bus_map(struct sim_card *card, struct page **pages, u32 count, u64 *addr)
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
			sim_bus_unmap(card, first << PAGE_SHIFT, count);
			return err;
		}
	}
	*addr = first << PAGE_SHIFT;
	return 0;
}

void sim_bus_unmap(struct sim_card *card, u64 addr, u32 count)
{
	u64 first = page_number(addr);
	u32 i;

	for (i = 0; i < count; i++)
		xa_erase(&card->bus, first + i);
	sim_card_quiesce(card);
	mutex_lock(&card->bus_lock);
	bitmap_clear(card->bus_used, first - SIM_BUS_BASE_PAGE, count);
	mutex_unlock(&card->bus_lock);
}

int sim_mem_alloc(struct sim_card *card, u32 bytes, struct sim_mem *mem)
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
	err = sim_bus_map(card, pages, count, &mem->addr);
	if (err) {
		vfree(mem->cpu);
		mem->cpu = NULL;
	}
out:
	kvfree(pages);
	return err;
}

void sim_mem_free(struct sim_card *card, struct sim_mem *mem)
{
	if (!mem->cpu)
		return;
	sim_bus_unmap(card, mem->addr, mem->bytes >> PAGE_SHIFT);
	vfree(mem->cpu);
	mem->cpu = NULL;
}

int sim_space_publish(struct sim_card *card, struct sim_va_space *space)
{
	return xa_err(xa_store(&card->spaces, page_number(space->pdb), space, GFP_KERNEL_ACCOUNT));
}

void sim_space_withdraw(struct sim_card *card, struct sim_va_space *space)
{
	xa_erase(&card->spaces, page_number(space->pdb));
	sim_card_quiesce(card);
}

int sim_bus_init(struct sim_card *card)
{
	mutex_init(&card->bus_lock);
	/* Charged to who asks: the flag in the calls reaches only some of the nodes. */
	xa_init_flags(&card->bus, XA_FLAGS_ACCOUNT);
	xa_init_flags(&card->spaces, XA_FLAGS_ACCOUNT);
	card->bus_hint = 0;
	card->bus_used = vzalloc(BITS_TO_LONGS(SIM_BUS_PAGES) * sizeof(long));
	return card->bus_used ? 0 : -ENOMEM;
}

void sim_bus_fini(struct sim_card *card)
{
	WARN_ON_ONCE(!xa_empty(&card->bus) || !xa_empty(&card->spaces));
	xa_destroy(&card->bus);
	xa_destroy(&card->spaces);
	vfree(card->bus_used);
}
