/* SPDX-License-Identifier: GPL-2.0 */
/*
 * chip_card.h - the chip model in this kernel as a card: its lock, clock and timer, and the memory
 * that it can reach (bus.c).
 *
 * Bus memory: pages with addresses of the card's own making (hw_target coherent sysmem), so
 * that only what was given to the card can be read or written through a register or a list.
 *
 * Locks. chip_lock is a leaf, taken with interrupts off: every call on the model, from processes
 * and from the timer. What the model reaches (bus pages, address spaces, their pages) is looked
 * up without other locks; whoever takes such a thing away removes it from the lookup, then calls
 * chip_card_quiesce(), then frees it.
 */
#ifndef SIM_CHIP_CARD_H
#define SIM_CHIP_CARD_H

#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include "sim/card.h"

#define SIM_BUS_BASE_PAGE 0x100000ull /* 4 GiB: address 0 is nobody's */
#define SIM_BUS_PAGES (1u << 20)      /* 4 GiB a card */

/**
 * struct chip_card - see above
 * @chip_lock: see above
 * @chip: [chip_lock] NULL when the card is gone: reads give all ones
 * @now_ns: [chip_lock] the last time given to the model
 * @resume_ns: [chip_lock] the timer stays off until then: the model is behind
 * @timer_ns: [chip_lock] when the timer fires; U64_MAX when it is off
 * @ptimer_offset_ns: what the card's timer shows more than CLOCK_MONOTONIC; set once
 * @protocol_error: [chip_lock] last sentence of the model about its driver, NULL if none
 * @bus_lock: @bus_used, @bus_hint
 * @bus: bus page number -> page's address
 * @spaces: page directory's bus page number -> struct chip_space
 */
struct chip_card {
	struct sim_card card;

	spinlock_t chip_lock;
	struct chip *chip;
	u64 now_ns;
	u64 resume_ns;
	u64 timer_ns;
	struct hrtimer timer;
	u64 ptimer_offset_ns;
	const char *protocol_error;

	struct mutex bus_lock;
	unsigned long *bus_used;
	u32 bus_hint;
	struct xarray bus;
	struct xarray spaces;
};

static inline struct chip_card *to_chip_card(struct sim_card *card)
{
	return container_of(card, struct chip_card, card);
}

/**
 * chip_card_create() - make a chip and find its graphics engine
 * Return: the card, or ERR_PTR(): -ENOMEM, or -ENODEV when its table has no graphics engine.
 */
struct sim_card *chip_card_create(u32 index);

/**
 * chip_card_quiesce() - returns when no call on the model that began earlier is running
 */
void chip_card_quiesce(struct chip_card *card);

#endif
