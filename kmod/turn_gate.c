// SPDX-License-Identifier: GPL-2.0
/*
 * turn_gate.c - windows without a list of our own: the driver's stays in the slot, and whoever is
 * not admitted has its channels disabled. Used where somebody else submits. turn.c and turn_edge.c
 * call it.
 *
 * Slices are the driver's then, so nothing is left to the rotation: all who compete take turns by
 * windows (core.h, the servers of MISFITS). Only who has work is closed: rings of a closed channel
 * may be lost, so a sleeper could not be seen to wake. It wakes into somebody else's window, for as
 * long as a look takes. A closed TSG counts as having work: that is why it was closed, and when its
 * window comes it is rung.
 *
 * The driver believes its channels enabled. So nobody is held for longer than hold_max_ns, what is
 * about to be freed is let go first (turn_tsg_release()), and turn_stop() opens whatever is closed.
 */
#include "turn_state.h"

/* For how long a held TSG is let run, beside what it takes to get there. */
#define AIR_NS 200000ull
/* Found open so many looks in a row after it was closed each time: the card does not obey. */
#define REOPENED_MAX 3u

static int set_gate(struct turn *turn, struct hw_channel *channel, enum hw_gate gate)
{
	bool changed;
	int err;

	err = turn->cfg.hw->ops->gate(turn->cfg.hw, turn->cfg.runlist, channel, gate, &changed);
	if (err == -ESTALE) {
		channel->closed = false; /* it is gone, and nothing of ours is on who has its id */
		return 0;
	}
	if (gate == HW_GATE_CLOSE)
		channel->closed |= changed;
	else if (gate == HW_GATE_OPEN && !err)
		channel->closed = false;
	return err;
}

static u16 count_closed(const struct turn_tsg *tsg)
{
	u16 count = 0, i;

	for (i = 0; i < tsg->channel_count; i++)
		count += tsg->channels[i].closed;
	return count;
}

static int open_tsg(struct turn *turn, struct turn_tsg *tsg)
{
	int err = 0;
	u32 i;

	for (i = 0; i < tsg->channel_count; i++)
		if (tsg->channels[i].closed)
			turn_note_error(&err, set_gate(turn, &tsg->channels[i], HW_GATE_OPEN));
	tsg->closed_count = count_closed(tsg);
	tsg->ajar = false;
	tsg->stuck = err != 0;
	return err;
}

static int close_tsg(struct turn *turn, struct turn_tsg *tsg)
{
	int err = 0;
	u32 i;

	if (!tsg->closed_count)
		tsg->closed_from_ns = turn_now_ns(turn);
	for (i = 0; i < tsg->channel_count; i++)
		if (!tsg->channels[i].closed)
			turn_note_error(&err, set_gate(turn, &tsg->channels[i], HW_GATE_CLOSE));
	tsg->closed_count = count_closed(tsg);
	tsg->ajar = err != 0;
	turn->air_at_ns = min(turn->air_at_ns, tsg->closed_from_ns + turn->cfg.hold_max_ns);
	return err;
}

static int ring_tsg(struct turn *turn, struct turn_tsg *tsg)
{
	int err = 0;
	u32 i;

	for (i = 0; i < tsg->channel_count; i++)
		turn_note_error(&err, set_gate(turn, &tsg->channels[i], HW_GATE_RING));
	return err;
}

/* Nobody fits a rotation whose slices are somebody else's. */
static void force_windows(struct turn *turn)
{
	struct core_tenant *tenant;
	u32 i;

	for (i = 0; i < turn->core.tenant_count; i++) {
		tenant = turn->core.tenants[i];
		tenant->stay_ns = U64_MAX / 2;
		turn->core.dirty |= !tenant->misfit;
		tenant->misfit = true;
	}
}

static bool may_run(const struct turn *turn, const struct turn_tsg *tsg)
{
	return tsg->released || tsg->air_until_ns || !tsg->core.tenant ||
	       core_admits(&turn->core, &tsg->core);
}

static bool has_work(const struct turn_tsg *tsg)
{
	return tsg->core.has_work || tsg->core.loud;
}

/* Not closed, or not all of it. */
static bool is_open(const struct turn_tsg *tsg)
{
	return !tsg->closed_count || tsg->ajar;
}

/* Who comes is let in before who goes is shut out: killed in between, more is open than should. */
static int open_admitted(struct turn *turn)
{
	struct turn_tsg *tsg;
	int err = 0;
	u32 i;

	for (i = 0; i < turn->tsg_count; i++) {
		tsg = turn->tsgs[i];
		if (!may_run(turn, tsg))
			continue;
		if (tsg->closed_count)
			turn_note_error(&err, open_tsg(turn, tsg));
		else if (turn->remind && has_work(tsg))
			turn_note_error(&err, ring_tsg(turn, tsg));
	}
	turn->remind = false;
	return err;
}

static int close_others(struct turn *turn)
{
	struct turn_tsg *tsg;
	int err = 0;
	u32 i;

	for (i = 0; i < turn->tsg_count; i++) {
		tsg = turn->tsgs[i];
		if (!may_run(turn, tsg) && is_open(tsg) && has_work(tsg))
			turn_note_error(&err, close_tsg(turn, tsg));
	}
	return err;
}

int turn_gates_put(struct turn *turn)
{
	struct turn_tsg *tsg;
	int err;
	u32 i;

	force_windows(turn);
	err = open_admitted(turn);
	turn_note_error(&err, close_others(turn));
	/* What could not be done to one is tried again; the window is on for the others. */
	for (i = 0; i < turn->tsg_count; i++) {
		tsg = turn->tsgs[i];
		tsg->in_slot = core_admits(&turn->core, &tsg->core);
		tsg->core.slice_ns =
			tsg->in_slot ? max(tsg->driver_slice_ns, turn->cfg.params.slice_min_ns) : 0;
	}
	core_taken(&turn->core, turn_now_ns(turn), NULL, 0);
	return err;
}

void turn_gates_saw_work(struct turn *turn, const struct turn_tsg *tsg)
{
	/* One without channels is what is left of a TSG that was freed. */
	if (turn->gates && tsg->channel_count && !tsg->in_slot && is_open(tsg) &&
	    !may_run(turn, tsg))
		turn->core.stale = true;
}

int turn_gates_saw_running(struct turn *turn, struct turn_tsg *tsg)
{
	bool changed, reopened = false, any = false;
	int err;
	u32 i;

	if (!turn->gates || !tsg || !tsg->closed_count || may_run(turn, tsg))
		return 0;
	for (i = 0; i < tsg->channel_count; i++) {
		err = turn->cfg.hw->ops->gate(turn->cfg.hw, turn->cfg.runlist, &tsg->channels[i],
					      HW_GATE_CLOSE, &changed);
		if (err)
			return err == -ESTALE ? 0 : err;
		reopened |= changed && tsg->channels[i].closed;
		tsg->channels[i].closed |= changed;
		any |= changed;
	}
	tsg->closed_count = count_closed(tsg);
	turn->core.stale |= any;
	tsg->reopened = reopened ? tsg->reopened + 1 : 0;
	return tsg->reopened > REOPENED_MAX ? -EIO : 0;
}

/* It is on its way to the engine or on it: for a moment nobody else is. */
static int let_breathe(struct turn *turn, struct turn_tsg *tsg, u64 now_ns)
{
	const struct core_params *params = &turn->cfg.params;
	const struct hw_ops *ops = turn->cfg.hw->ops;
	u64 on_ns = params->switch_ns + params->takeoff_ns;
	struct hw_status status;
	int err;

	tsg->air_until_ns = now_ns + AIR_NS + 2 * on_ns;
	err = open_tsg(turn, tsg);
	if (!err)
		err = ops->status(turn->cfg.hw, turn->cfg.engine_index, &status);
	if (err || status.state != HW_ENGINE_RUNNING || status.tsg_id == tsg->tsg_id)
		return err;
	err = ops->preempt(turn->cfg.hw, turn->cfg.engine_index, status.tsg_id, now_ns + on_ns);
	return err == -EBUSY ? 0 : err;
}

static int end_breath(struct turn *turn, struct turn_tsg *tsg)
{
	tsg->air_until_ns = 0;
	if (may_run(turn, tsg) || !has_work(tsg))
		return 0;
	turn->core.stale = true; /* what follows takes it off the engine, too */
	return close_tsg(turn, tsg);
}

int turn_gates_air(struct turn *turn, u64 now_ns)
{
	struct turn_tsg *tsg;
	int err = 0;
	u32 i;

	if (!turn->gates || now_ns < turn->air_at_ns)
		return 0;
	turn->air_at_ns = U64_MAX;
	for (i = 0; i < turn->tsg_count; i++) {
		tsg = turn->tsgs[i];
		if (tsg->air_until_ns && now_ns >= tsg->air_until_ns)
			turn_note_error(&err, end_breath(turn, tsg));
		else if (tsg->closed_count && now_ns >= tsg->closed_from_ns + turn->cfg.hold_max_ns)
			turn_note_error(&err, let_breathe(turn, tsg, now_ns));
		if (tsg->air_until_ns)
			turn->air_at_ns = min(turn->air_at_ns, tsg->air_until_ns);
		else if (tsg->closed_count)
			turn->air_at_ns =
				min(turn->air_at_ns, tsg->closed_from_ns + turn->cfg.hold_max_ns);
	}
	return err;
}

int turn_gates_open(struct turn *turn)
{
	int err = 0;
	u32 i;

	for (i = 0; i < turn->tsg_count; i++) {
		turn->tsgs[i]->air_until_ns = 0;
		turn_note_error(&err, open_tsg(turn, turn->tsgs[i]));
	}
	return err;
}

void turn_gates_recount(struct turn *turn)
{
	struct turn_tsg *tsg;
	u32 i;

	for (i = 0; i < turn->tsg_count && turn->gates; i++) {
		tsg = turn->tsgs[i];
		tsg->closed_count = count_closed(tsg);
		tsg->ajar = tsg->closed_count && tsg->closed_count < tsg->channel_count;
	}
}

void turn_gates_unheard(struct turn *turn)
{
	struct turn_tsg *tsg;
	u32 i, c;

	for (i = 0; i < turn->tsg_count && turn->gates; i++) {
		tsg = turn->tsgs[i];
		for (c = 0; c < tsg->channel_count; c++)
			tsg->channels[c].unheard = is_open(tsg);
	}
	turn->unheard = turn->gates;
}

static int ring_unheard(struct turn *turn, struct turn_tsg *tsg)
{
	int err, first = 0;
	u32 i;

	for (i = 0; i < tsg->channel_count; i++) {
		if (!tsg->channels[i].unheard)
			continue;
		err = set_gate(turn, &tsg->channels[i], HW_GATE_RING);
		if (err == -ENODEV)
			return err;
		tsg->channels[i].unheard = err != 0;
		turn_note_error(&first, err);
	}
	return first;
}

int turn_gates_ring(struct turn *turn)
{
	int err = 0;
	u32 i;

	for (i = 0; i < turn->tsg_count && turn->unheard && err != -ENODEV; i++)
		turn_note_error(&err, ring_unheard(turn, turn->tsgs[i]));
	turn->unheard = turn->unheard && err;
	return err;
}

void turn_gates_forget(struct turn *turn)
{
	struct turn_tsg *tsg;
	u32 i, c;

	for (i = 0; i < turn->tsg_count; i++) {
		tsg = turn->tsgs[i];
		for (c = 0; c < tsg->channel_count; c++)
			tsg->channels[c].closed = false;
		tsg->closed_count = 0;
		tsg->ajar = false;
		tsg->stuck = false;
		tsg->air_until_ns = 0;
	}
}

bool turn_gates_waits(const struct turn_tsg *tsg)
{
	return tsg->closed_count && !tsg->stuck;
}

int turn_tsg_release(struct turn *turn, struct turn_tsg *tsg)
{
	tsg->released = true;
	return open_tsg(turn, tsg);
}

int turn_tsg_retain(struct turn *turn, struct turn_tsg *tsg)
{
	tsg->released = false;
	if (!turn->gates || !turn->started)
		return 0;
	turn->core.stale = true; /* what follows takes it off the engine, too */
	return may_run(turn, tsg) || !has_work(tsg) ? 0 : close_tsg(turn, tsg);
}
