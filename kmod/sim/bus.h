/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bus.h - how the chip model reaches memory; for card.c. Callbacks run under chip_lock.
 */
#ifndef SIM_BUS_H
#define SIM_BUS_H

#include "card.h"

int sim_bus_init(struct sim_card *card);
void sim_bus_fini(struct sim_card *card);

/* struct chip_host_ops; @ctx is the card. Return 0, or -EFAULT: nothing there. */
int sim_bus_read(void *ctx, u32 target, u64 addr, void *buf, u32 bytes);
int sim_bus_write(void *ctx, u32 target, u64 addr, const void *buf, u32 bytes);
int sim_va_read(void *ctx, u64 pdb, u64 va, void *buf, u32 bytes);
int sim_va_write(void *ctx, u64 pdb, u64 va, const void *buf, u32 bytes);

#endif
