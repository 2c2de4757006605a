// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tu104_mmu.c - walks page tables as a TU104 does (MMU version 2), from memory each time: it keeps no
 * translations, so that nothing has to be invalidated. Written apart from the driver's side
 * (kmod/sim/pci_space.c), so that a slip of either shows. Pages of 4 KiB in system memory alone.
 */
#include "tu104_mmu.h"

#include <errno.h>
#include <string.h>

#define PAGE 4096u
/* Entries: a table's has an aperture that is not 0; a page's is valid, with aperture 2 as well. */
#define APERTURE(entry) ((entry) >> 1 & 3)
#define APERTURE_SYSTEM_COHERENT 2
#define VALID 1u
#define ADDRESS(entry) (((entry) >> 8 & ((1ull << 46) - 1)) << 12)

static int read_entry(const struct tu104_memory *memory, uint64_t table, uint64_t index,
		      uint32_t entry_bytes, uint64_t *entry)
{
	/* Of an entry of 16 bytes the second half is for tables of small pages. */
	uint64_t at = table + index * entry_bytes + (entry_bytes - 8);

	return memory->dma(memory->ctx, at, entry, 8, false);
}

/* Return: 0, -EFAULT. */
static int translate(const struct tu104_memory *memory, uint64_t pdb, uint64_t va, uint64_t *addr)
{
	static const struct {
		uint8_t high, low, entry_bytes;
	} levels[] = { { 48, 47, 8 }, { 46, 38, 8 }, { 37, 29, 8 }, { 28, 21, 16 }, { 20, 12, 8 } };
	const unsigned last = sizeof(levels) / sizeof(levels[0]) - 1;
	uint64_t table = pdb, entry = 0, index;

	if (va >> 49)
		return -EFAULT;
	for (unsigned i = 0; i <= last; i++) {
		index = va >> levels[i].low & ((1ull << (levels[i].high - levels[i].low + 1)) - 1);
		if (read_entry(memory, table, index, levels[i].entry_bytes, &entry))
			return -EFAULT;
		if (APERTURE(entry) != APERTURE_SYSTEM_COHERENT)
			return -EFAULT;
		table = ADDRESS(entry);
	}
	if (!(entry & VALID))
		return -EFAULT;
	*addr = table | (va & (PAGE - 1));
	return 0;
}

static int access_pages(const struct tu104_memory *memory, uint64_t pdb, uint64_t va, uint8_t *buf,
			uint32_t bytes, bool to_guest)
{
	while (bytes) {
		uint32_t part = PAGE - (va & (PAGE - 1));
		uint64_t addr;

		if (part > bytes)
			part = bytes;
		if (translate(memory, pdb, va, &addr) ||
		    memory->dma(memory->ctx, addr, buf, part, to_guest))
			return -EFAULT;
		va += part;
		buf += part;
		bytes -= part;
	}
	return 0;
}

int tu104_mmu_read(const struct tu104_memory *memory, uint64_t pdb, uint64_t va, void *buf,
		   uint32_t bytes)
{
	return access_pages(memory, pdb, va, buf, bytes, false);
}

/* Who waits for the first word may read the others as soon as it is there: it comes last. */
int tu104_mmu_write(const struct tu104_memory *memory, uint64_t pdb, uint64_t va, const void *buf,
		    uint32_t bytes)
{
	const uint32_t first = bytes < 8 ? bytes : 8;
	uint8_t *from = (uint8_t *)buf;
	int err = access_pages(memory, pdb, va + first, from + first, bytes - first, true);

	__atomic_thread_fence(__ATOMIC_RELEASE);
	return err ? err : access_pages(memory, pdb, va, from, first, true);
}
