/* SPDX-License-Identifier: GPL-2.0 */
/*
 * card.h - one simulated card in the kernel: the chip model with its lock, clock and timer, and
 * the memory that the model can reach.
 *
 * Bus memory: pages with addresses of the card's own making (hw_target coherent sysmem), so
 * that only what was given to the card can be read or written through a register or a list.
 *
 * Locks. chip_lock is a leaf, taken with interrupts off: every call on the model, from processes
 * and from the timer. What the model reaches (bus pages, address spaces, their pages) is looked
 * up without other locks; whoever takes such a thing away removes it from the lookup, then calls
 * sim_card_quiesce(), then frees it.
 */
#ifndef SIM_CARD_H
#define SIM_CARD_H

#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include "qgpu_env.h"
#include "sim/chip/chip.h"

#define SIM_CARDS_MAX 8
#define SIM_BUS_BASE_PAGE 0x100000ull /* 4 GiB: address 0 is nobody's */
#define SIM_BUS_PAGES (1u << 20)      /* 4 GiB a card */

struct page;

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
 * struct sim_va_space - what the card sees of a GPU address space
 * @pdb: its page directory's bus address, by which an instance block names it
 * @pages: GPU virtual page number -> struct page
 */
struct sim_va_space {
	u64 pdb;
	struct xarray pages;
};

/**
 * struct sim_card - see above
 * @index: 0 ... 7, and the minor of its device node
 * @gr_engine, @gr_runlist: graphics/compute, from the chip's own table; set once
 * @chip_lock: see above
 * @chip: [chip_lock] NULL when the card is gone: reads give all ones
 * @now_ns: [chip_lock] the last time given to the model
 * @resume_ns: [chip_lock] the timer stays off until then: the model is behind
 * @timer_ns: [chip_lock] when the timer fires; U64_MAX when it is off
 * @bus_lock: @bus_used, @bus_hint
 * @bus: bus page number -> page's address
 * @spaces: page directory's bus page number -> struct sim_va_space
 * @ptimer_offset_ns: what the card's timer shows more than CLOCK_MONOTONIC; set once
 * @switched: told of each switch of the graphics engine, by the card's timer; under chip_lock. Set
 *            once, before any TSG exists; NULL: nobody is told
 * @protocol_error: [chip_lock] last sentence of the model about its driver, NULL if none
 */
struct sim_card {
	u32 index;
	u32 gr_engine, gr_runlist;

	spinlock_t chip_lock;
	struct chip *chip;
	u64 now_ns;
	u64 resume_ns;
	u64 timer_ns;
	struct hrtimer timer;
	u64 ptimer_offset_ns;
	void (*switched)(struct sim_card *card, u16 tsg_id, u64 time_ns, bool on);
	const char *protocol_error;

	struct mutex bus_lock;
	unsigned long *bus_used;
	u32 bus_hint;
	struct xarray bus;
	struct xarray spaces;
};

/**
 * sim_card_init() - make the chip and find its graphics engine
 * Return: 0, -ENOMEM, or -ENODEV when the chip's table has no graphics engine.
 */
int sim_card_init(struct sim_card *card, u32 index);

/**
 * sim_card_stop() - the chip is gone from here on; registers read all ones
 */
void sim_card_stop(struct sim_card *card);

/**
 * sim_card_fini() - after sim_card_stop(); all bus memory must have been given back
 */
void sim_card_fini(struct sim_card *card);

/* Registers; never sleep. */
u32 sim_card_read32(struct sim_card *card, u32 offset);
void sim_card_write32(struct sim_card *card, u32 offset, u32 value);

/**
 * sim_card_time_ns() - what the card's timer shows, both its words at one instant; never sleeps
 */
u64 sim_card_time_ns(struct sim_card *card);

/**
 * sim_card_with_chip() - call @fn with the model brought up to now, under chip_lock
 */
void sim_card_with_chip(struct sim_card *card, void (*fn)(struct chip *chip, void *arg), void *arg);

/**
 * sim_card_quiesce() - returns when no call on the model that began earlier is running
 */
void sim_card_quiesce(struct sim_card *card);

/**
 * sim_bus_map() - give @pages consecutive bus addresses
 * Return: 0, -ENOSPC, -ENOMEM.
 */
int sim_bus_map(struct sim_card *card, struct page **pages, u32 count, u64 *addr);
void sim_bus_unmap(struct sim_card *card, u64 addr, u32 count);

/**
 * sim_mem_alloc() - memory of the driver's own
 * Return: 0, -ENOSPC, -ENOMEM.
 */
int sim_mem_alloc(struct sim_card *card, u32 bytes, struct sim_mem *mem);
void sim_mem_free(struct sim_card *card, struct sim_mem *mem);

/**
 * sim_space_publish() / sim_space_withdraw() - let the card find an address space by its pdb
 */
int sim_space_publish(struct sim_card *card, struct sim_va_space *space);
void sim_space_withdraw(struct sim_card *card, struct sim_va_space *space);

#endif
