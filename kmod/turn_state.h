/* SPDX-License-Identifier: GPL-2.0 */
/*
 * turn_state.h - the state of one turn, and what its files give each other: turn.c looks and goes
 * round, turn_image.c writes the image, turn_slot.c puts it in the slot and keeps an eye on that,
 * turn_edge.c makes the engine follow it and finds out when it did; turn_gate.c is there instead of
 * image and slot where the driver keeps those.
 */
#ifndef QGPU_TURN_STATE_H
#define QGPU_TURN_STATE_H

#include "turn.h"

#define TSG_IDS 4096u

/**
 * struct turn - the scheduler of one runlist
 * @tsgs: in list order unless @unsorted; @by_id: who an id in a status register is
 * @list: the image being built
 * @slot, @slot_entries: which of the two buffers the chip reads, and how much of it
 * @submitted: that was done, or tried, at some time
 * @lost: the slot is somebody else's, or the card is gone
 * @owned: that was submitted since turn_start(); @slot_checked_ns: and was last seen in the slot
 * @unsure_entries: the other buffer was submitted with so many entries and not acknowledged: both
 *                  stay untouched until it is; 0 = no such submit; an empty image is 0 + @unsure
 * @probe_at, @probe_channel, @probe_work: where the round robin of channels goes on
 * @crowded, @taken_ns: somebody who is admitted found no room in the image in the slot; since when
 *                      it is there
 * @engine_idle: at the last look
 * @unserved: has work and is in the slot beside an engine that is idle; NULL = nobody; in
 *            @unserved_looks looks since @unserved_from_ns
 * @again_ns, @again_gap_ns: from when on the image may be submitted again for that, and how long
 *                           after the last time that is
 * @loss_from_ns, @loss_count: losses of late
 * @gates: by gates, not by images; @lists: the driver's list is not empty then
 * @air_at_ns: when somebody has been held for too long, or was let go for long enough
 * @remind: whoever is admitted and waits is to be rung
 * @unheard: so may be some channel
 * @resume: where the rotation was cut when somebody else submitted; .tsg NULL = it was not
 * @former: whose a TSG was that is gone, by id, until the id is another's: its work may go on;
 *          @former_count of them
 * @ghost: it was found on the engine; .core.tenant NULL = there is none
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
	struct core_tenant *former[TSG_IDS];
	u32 former_count;
	struct turn_tsg ghost;
	struct hw_image_tsg *list;
	u32 slot, slot_entries;
	bool submitted, owned, lost;
	u64 slot_checked_ns;
	bool unsure;
	u32 unsure_entries;
	bool crowded;
	u64 taken_ns;
	u64 loss_from_ns;
	u32 loss_count;
	bool gates, lists, remind, unheard;
	u64 air_at_ns;
	struct core_phase resume;
	bool engine_idle;
	const struct turn_tsg *unserved;
	u32 unserved_looks;
	u64 unserved_from_ns, again_ns, again_gap_ns;
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

/* One thing that fails keeps nothing else from being done; of several errors the first is told, but
 * one that means that nothing here is ours any more counts most. */
static inline bool turn_is_loss(int err)
{
	return err == -ESTALE || err == -ENODEV;
}

static inline void turn_note_error(int *first, int err)
{
	if (!*first || (turn_is_loss(err) && !turn_is_loss(*first)))
		*first = err;
}

/**
 * turn_look() - who is on the engine, for the ledger
 *
 * Where that is refused the owner of the window is charged, as if it ran: no limit is passed then.
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
 * turn_slot_submit() - so many entries of the spare buffer are the image in the slot
 * Return: 0; an error of hw_ops: then the slot has the former one, or turn->unsure is set.
 */
int turn_slot_submit(struct turn *turn, u32 entries);

/**
 * turn_slot_check() - is it still in the slot, or by gates: is there any list of the driver's?
 *                     turn_slot_watch(): if that was not asked lately
 * Return: 0; -ESTALE: somebody else's is; -ENODEV: also after a reset; an error of hw_ops.
 */
int turn_slot_check(struct turn *turn);
int turn_slot_watch(struct turn *turn, u64 now_ns);

/* It is there, as after a reset: -ENODEV may also be a card that does not answer. */
bool turn_slot_is_bare(struct turn *turn);

/* What a look found: the engine, then the TSGs whose channels were read. Due: the chip does not see
 * who waits, the image is to be submitted once more; asking counts it. */
void turn_unserved_engine(struct turn *turn, const struct hw_status *status);
void turn_unserved_tsg(struct turn *turn, const struct turn_tsg *tsg, bool work);
bool turn_unserved_due(struct turn *turn, u64 now_ns);

/**
 * turn_gates_put() - who the window that is on admits is open, others with work are closed
 * turn_gates_air() - let go for a moment whoever was held for too long
 * turn_gates_open() - everybody, for good
 * Return: 0, an error of hw_ops.
 */
int turn_gates_put(struct turn *turn);
int turn_gates_air(struct turn *turn, u64 now_ns);
int turn_gates_open(struct turn *turn);
/* It is closed, and what a channel of its says of work means nothing: it waits to be let on. */
bool turn_gates_waits(const struct turn_tsg *tsg);
/* Channels came or went. */
void turn_gates_recount(struct turn *turn);
/* Rings were lost: every channel that is not closed is rung, whether it seems to have work or not;
 * one that refuses is again each time that ring() is called, and no other. Return: 0, an error of
 * hw_ops. */
void turn_gates_unheard(struct turn *turn);
int turn_gates_ring(struct turn *turn);
/* Whatever was closed is gone with the rest of the card's state. */
void turn_gates_forget(struct turn *turn);
/* A look found work of @tsg. */
void turn_gates_saw_work(struct turn *turn, const struct turn_tsg *tsg);
/* A look found it computing: if it is closed, that is its tail, or somebody enabled it again, or
 * the card drops our stores (-EIO). NULL = nobody that is known. Return: 0, an error of hw_ops. */
int turn_gates_saw_running(struct turn *turn, struct turn_tsg *tsg);

/**
 * turn_carry_out() - bring what pick decided to the chip
 * Return: 0, or an error of hw_ops.
 */
int turn_carry_out(struct turn *turn);

#endif
