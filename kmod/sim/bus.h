/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bus.h - how the chip model in this kernel reaches memory; for chip_card.c.
 */
#ifndef SIM_BUS_H
#define SIM_BUS_H

#include "chip_card.h"

int sim_bus_init(struct chip_card *card);
void sim_bus_fini(struct chip_card *card);

/* struct chip_host_ops, under chip_lock; @ctx is the card. Return 0, or -EFAULT: nothing there. */
int sim_bus_read(void *ctx, u32 target, u64 addr, void *buf, u32 bytes);
int sim_bus_write(void *ctx, u32 target, u64 addr, const void *buf, u32 bytes);
int sim_va_read(void *ctx, u64 pdb, u64 va, void *buf, u32 bytes);
int sim_va_write(void *ctx, u64 pdb, u64 va, const void *buf, u32 bytes);

/* struct sim_card_ops; contracts there. */
int sim_bus_mem_alloc(struct sim_card *card, u32 bytes, struct sim_mem *mem);
void sim_bus_mem_free(struct sim_card *card, struct sim_mem *mem);
int sim_bus_page_map(struct sim_card *card, struct page *page, u64 *addr);
void sim_bus_page_unmap(struct sim_card *card, struct page *page, u64 addr);
struct sim_space *sim_bus_space_create(struct sim_card *card);
void sim_bus_space_destroy(struct sim_card *card, struct sim_space *space);
int sim_bus_space_map(struct sim_card *card, struct sim_space *space, u64 first,
		      struct page *const *pages, u64 count);
void sim_bus_space_unmap(struct sim_card *card, struct sim_space *space, u64 first,
			 struct page *const *pages, u64 count);

#endif
