// SPDX-License-Identifier: GPL-2.0
/*
 * turn_slot.c - the runlist's slot: an image is put in it, and what happened to it since, or to the
 * driver's own list, is noticed. Somebody else submitted, the card was reset, or a list that the
 * chip took without a word is not the one that was written: then the engine idles beside channels
 * that wait. turn.c asks, turn_image.c fills the buffers.
 */
#include "turn_state.h"

/* Least time between two looks at the slot while nothing is to be submitted: a foreign list is in
 * force for as long, and costs whoever it cuts the rest of its slice. */
#define CHECK_NS 400000ull
/* Idle beside waiting channels in so many looks in a row, and for so long: it does not hear. */
#define UNSERVED_LOOKS 4u
#define UNSERVED_NS 2000000ull
/* Who waits for a semaphore looks the same, and a list costs nothing then: from one to the next. */
#define AGAIN_FIRST_NS 10000000ull
#define AGAIN_MOST_NS 1000000000ull

int turn_slot_submit(struct turn *turn, u32 entries)
{
	const struct hw_ops *ops = turn->cfg.hw->ops;
	u32 spare = !turn->slot;
	int err;

	turn->submitted = true;
	err = ops->submit(turn->cfg.hw, turn->cfg.runlist, &turn->cfg.images[spare], entries);
	/* Only what is refused before it is written cannot have been taken. */
	turn->unsure = err && (turn->unsure || err != -EBUSY);
	turn->unsure_entries = entries;
	if (err)
		return err;
	turn->slot = spare;
	turn->slot_entries = entries;
	turn->owned = true;
	turn->counters.submits++;
	return 0;
}

bool turn_slot_is_bare(struct turn *turn)
{
	static const struct hw_mem nowhere;
	const struct hw_ops *ops = turn->cfg.hw->ops;
	struct hw_status status;

	return ops->slot_check(turn->cfg.hw, turn->cfg.runlist, &nowhere, 1) == -ENODEV &&
	       !ops->status(turn->cfg.hw, turn->cfg.engine_index, &status);
}

/*
 * By gates, the driver's list is not ours to know, only that there is one: a card that was reset
 * has none, and nothing that was closed is there any more.
 */
static int check_drivers_list(struct turn *turn)
{
	static const struct hw_mem nowhere;
	const struct hw_ops *ops = turn->cfg.hw->ops;
	int err;

	if (!turn->lists)
		return 0;
	err = ops->slot_check(turn->cfg.hw, turn->cfg.runlist, &nowhere, 1);
	if (err == -ENODEV && turn_slot_is_bare(turn))
		turn_gates_forget(turn);
	if (err && err != -ESTALE)
		return err;
	turn->slot_checked_ns = turn_now_ns(turn);
	return 0;
}

int turn_slot_check(struct turn *turn)
{
	const struct hw_ops *ops = turn->cfg.hw->ops;
	int err;

	if (turn->gates)
		return check_drivers_list(turn);
	if (!turn->owned)
		return 0;
	err = ops->slot_check(turn->cfg.hw, turn->cfg.runlist, &turn->cfg.images[turn->slot],
			      turn->slot_entries);
	if (err == -ESTALE && turn->unsure)
		err = ops->slot_check(turn->cfg.hw, turn->cfg.runlist,
				      &turn->cfg.images[!turn->slot], turn->unsure_entries);
	if (err)
		return err;
	turn->slot_checked_ns = turn_now_ns(turn);
	return 0;
}

int turn_slot_watch(struct turn *turn, u64 now_ns)
{
	int err = now_ns < turn->slot_checked_ns + CHECK_NS ? 0 : turn_slot_check(turn);

	/* What runs by the other's list says nothing about where ours was cut. */
	if (err == -ESTALE && !turn->lost && turn->core.window.kind == CORE_WINDOW_ROTATION)
		core_cut(&turn->core, now_ns, &turn->resume);
	return err;
}

void turn_unserved_engine(struct turn *turn, const struct hw_status *status)
{
	turn->engine_idle = status->state == HW_ENGINE_IDLE || status->state == HW_ENGINE_EMPTY;
	if (!turn->engine_idle)
		turn->unserved = NULL;
	if (status->state == HW_ENGINE_RUNNING)
		turn->again_gap_ns = 0;
}

void turn_unserved_tsg(struct turn *turn, const struct turn_tsg *tsg, bool work)
{
	bool waits = work && tsg->in_slot && turn->engine_idle;

	if (turn->unserved == tsg && !waits)
		turn->unserved = NULL;
	if (!waits)
		return;
	if (!turn->unserved) {
		turn->unserved = tsg;
		turn->unserved_from_ns = turn_now_ns(turn);
		turn->unserved_looks = 0;
	}
	turn->unserved_looks += turn->unserved == tsg;
}

bool turn_unserved_due(struct turn *turn, u64 now_ns)
{
	if (!turn->unserved || turn->unserved_looks < UNSERVED_LOOKS ||
	    now_ns < turn->unserved_from_ns + UNSERVED_NS || now_ns < turn->again_ns)
		return false;
	turn->again_gap_ns =
		turn->again_gap_ns ? min(2 * turn->again_gap_ns, AGAIN_MOST_NS) : AGAIN_FIRST_NS;
	turn->again_ns = now_ns + turn->again_gap_ns;
	turn->unserved = NULL;
	turn->counters.reminders++;
	turn->remind = turn->gates;
	return true;
}
