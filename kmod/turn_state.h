/* SPDX-License-Identifier: GPL-2.0 */
/*
 * turn_state.h - the state of one turn, and what its three files give each other: turn.c looks and
 * goes round, turn_image.c writes the image and puts it in the slot, turn_edge.c makes the engine
 * follow it and finds out when it did.
 */
#ifndef QGPU_TURN_STATE_H
#define QGPU_TURN_STATE_H

#include "turn.h"

#define TSG_IDS 4096u

/**
 * struct turn - the scheduler of one runlist
 * @tsgs: in list order unless @unsorted; @by_id: who an id in a status register is
 * @list: the image being built
 * @slot: which of the two buffers the chip reads
 * @unsure_entries: the other buffer was submitted with so many entries and not acknowledged: both
 *                  stay untouched until it is; 0 = no such submit; an empty image is 0 + @unsure
 * @probe_at, @probe_channel, @probe_work: where the round robin of channels goes on
 * @crowded, @taken_ns: somebody who is admitted found no room in the image in the slot; since when
 *                      it is there
 * @draining_id: who the engine is leaving and still computes for; HW_NO_ID
 * @refusals, @refused: times that work was not cut in time, and whose it was last
 * @on_after_ns: learned: from a submit's return to the owner on the engine; [1] = when somebody
 *               else's context had to be saved
 */
struct turn {
	struct turn_config cfg;
	struct core core;
	struct turn_counters counters;
	struct turn_tsg **tsgs;
	u32 tsg_count;
	bool unsorted, started;
	struct turn_tsg *by_id[TSG_IDS];
	struct hw_image_tsg *list;
	u32 slot;
	bool unsure;
	u32 unsure_entries;
	bool crowded;
	u64 taken_ns;
	u32 probe_at, probe_channel;
	bool probe_work;
	u16 draining_id;
	u64 refusals;
	struct core_tenant *refused;
	u64 on_after_ns[2];
};

static inline u64 turn_now_ns(const struct turn *turn)
{
	return hw_now_ns(&turn->cfg.hw->io);
}

static inline struct turn_tsg *turn_tsg_of(const struct turn *turn, u16 tsg_id)
{
	return tsg_id < TSG_IDS ? turn->by_id[tsg_id] : NULL;
}

/**
 * turn_look() - who is on the engine, for the ledger
 * Return: 0, or an error of hw_ops.
 */
int turn_look(struct turn *turn, struct hw_status *status);

/**
 * turn_image_put() - the image of the window that is on, in the slot
 * Return: 0; an error of hw_ops: then the slot has the former one, or turn->unsure is set.
 */
int turn_image_put(struct turn *turn);

/**
 * turn_image_old_ns() - when the image in the slot has to make room for those that found none in
 *                       it; U64_MAX = everybody is in it
 */
u64 turn_image_old_ns(const struct turn *turn);

/**
 * turn_carry_out() - bring what pick decided to the chip
 * Return: 0, or an error of hw_ops.
 */
int turn_carry_out(struct turn *turn);

#endif
