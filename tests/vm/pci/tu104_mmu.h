/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tu104_mmu.h - GPU virtual addresses by the page tables in the guest's memory.
 */
#ifndef QGPU_TESTS_VM_PCI_TU104_MMU_H
#define QGPU_TESTS_VM_PCI_TU104_MMU_H

#include "tu104_chip.h"

struct tu104_memory {
	tu104_dma dma;
	void *ctx;
};

/* @pdb is where the top directory lies. Return: 0, -EFAULT: no such page. */
int tu104_mmu_read(const struct tu104_memory *memory, uint64_t pdb, uint64_t va, void *buf,
		   uint32_t bytes);
int tu104_mmu_write(const struct tu104_memory *memory, uint64_t pdb, uint64_t va, const void *buf,
		    uint32_t bytes);

#endif
