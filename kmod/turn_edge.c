// SPDX-License-Identifier: GPL-2.0
/*
 * turn_edge.c - the edges of windows: who is on the engine and not in the image goes, and when the
 * owner begins. Waits for the engine in short bounded steps, and never for work that cannot be cut.
 */
#include "turn_state.h"

/* Steps and patience at the edges of exclusive windows (architecture, "Ledger"). */
#define EDGE_STEP_NS 2000ull
#define EDGE_PATIENCE_NS 100000ull

static void count_preempt(struct turn *turn, const struct turn_tsg *tsg)
{
	turn->counters.preempts++;
	if (tsg && tsg->core.tenant)
		tsg->core.tenant->preempts++;
}

/* It is off: it stopped computing when the save began, p before. */
static void note_off(struct turn *turn)
{
	u64 off_ns = turn_now_ns(turn) - turn->cfg.params.takeoff_ns;

	if (off_ns > turn->core.looked_ns)
		core_look(&turn->core, off_ns, CORE_SEEN_SWITCH, NULL);
}

/*
 * Whoever is on the engine and not in the image goes. Work that cannot be cut stays until it
 * ends: counted, charged by the looks that follow, and waited for by nobody here.
 */
static int evict(struct turn *turn)
{
	const struct hw_ops *ops = turn->cfg.hw->ops;
	const struct core_params *params = &turn->cfg.params;
	u64 patience_ns = turn_now_ns(turn) + 2 * params->takeoff_ns;
	u64 deadline_ns = patience_ns + 2 * params->switch_ns;
	struct hw_status status;
	struct turn_tsg *tsg;
	int err;

	/* TIMEOUT: 2 * (s + p), because cuttable work is off after p and a switch takes s; 2 * p
	 * for what still computes, so that nobody's tail is waited for with the lock held. */
	for (;;) {
		err = turn_look(turn, &status);
		if (err)
			return err;
		tsg = turn_tsg_of(turn, status.tsg_id);
		/* In the driver's list there may be some that nobody told of. */
		if (status.tsg_id == HW_NO_ID || (tsg ? tsg->in_slot : turn->gates) ||
		    status.state == HW_ENGINE_EMPTY)
			return 0;
		/* Idle between two kernels: the next would begin, whatever the list says. */
		if (status.state == HW_ENGINE_RUNNING || status.state == HW_ENGINE_IDLE) {
			count_preempt(turn, tsg);
			err = ops->preempt(turn->cfg.hw, turn->cfg.engine_index, status.tsg_id,
					   patience_ns);
			if (!err) {
				note_off(turn);
				return turn_look(turn, &status);
			}
			if (err != -EBUSY)
				return err;
			break;
		}
		if (status.next_tsg_id == HW_NO_ID)
			return 0; /* saving: it computes no more */
		if (turn_now_ns(turn) >=
		    (turn->draining_id == HW_NO_ID ? deadline_ns : patience_ns))
			break;
		hw_wait_ns(&turn->cfg.hw->io, EDGE_STEP_NS);
	}
	turn->refusals++;
	turn->refused = tsg ? tsg->core.tenant : NULL;
	if (turn->refused)
		core_fit_overran(turn->refused);
	/* It has been computing all the time: no need to tell. */
	turn->draining_id = status.tsg_id;
	turn->core.tail = true;
	return turn_look(turn, &status);
}

/* Is whom the engine is waited for on it: the owner of a window, or whoever was let go? Beside
 * online anybody may be first. */
static bool is_on(const struct turn *turn)
{
	const struct core *core = &turn->core;

	if (core->seen != CORE_SEEN_TSG)
		return false;
	return !core->window.owner || core->window.kind == CORE_WINDOW_ONLINE ||
	       (core->seen_tenant && core_owns_window(core, core->seen_tenant));
}

/* What is in the budget whose use begins now? Steps are a thousandth of it. */
static u64 watch_step(const struct turn *turn)
{
	u64 budget_ns =
		turn->core.window.owner ? (u64)turn->core.window.budget_ns : CORE_CAP_BUDGET_MAX_NS;

	return clamp(env_div(budget_ns, 1000), EDGE_STEP_NS, EDGE_PATIENCE_NS / 4);
}

/* When does the owner of the window that was just opened begin, or who was let go? */
static int watch_on(struct turn *turn, u64 submitted_ns, bool other_loaded)
{
	u64 *on_after_ns = &turn->on_after_ns[other_loaded];
	u64 step_ns = watch_step(turn);
	u64 first_ns = submitted_ns + *on_after_ns - min(*on_after_ns, 2 * step_ns);
	u64 now_ns = turn_now_ns(turn), before_ns = now_ns;
	struct hw_status status;
	bool first = true;
	int err;

	if (is_on(turn))
		return 0;
	if (first_ns > now_ns)
		hw_wait_ns(&turn->cfg.hw->io, first_ns - now_ns);
	/* TIMEOUT: 100 us after the expected instant; then the timer looks. */
	for (;;) {
		err = turn_look(turn, &status);
		if (err)
			return err;
		now_ns = turn_now_ns(turn);
		if (is_on(turn))
			break;
		if (now_ns >= first_ns + EDGE_PATIENCE_NS)
			return 0;
		first = false;
		before_ns = now_ns;
		hw_wait_ns(&turn->cfg.hw->io, step_ns);
	}
	if (first)
		*on_after_ns -= *on_after_ns >> 2; /* it was on already: look earlier next time */
	else
		*on_after_ns = min(before_ns + ((now_ns - before_ns) >> 1) - submitted_ns,
				   2 * EDGE_PATIENCE_NS);
	return 0;
}

int turn_carry_out(struct turn *turn)
{
	struct hw_status status = { .state = HW_ENGINE_SWITCHING, .tsg_id = HW_NO_ID };
	bool other_loaded, let_go = turn->core.let_go;
	struct turn_tsg *tsg;
	u64 submitted_ns;
	int err, put;

	/* Who was on it only tells when the next is expected on it. */
	err = turn->cfg.hw->ops->status(turn->cfg.hw, turn->cfg.engine_index, &status);
	if (err == -ENODEV)
		return err;
	tsg = turn_tsg_of(turn, status.tsg_id);
	put = turn->gates ? turn_gates_put(turn) : turn_image_put(turn);
	turn_note_error(&err, put);
	if (turn_is_loss(err) || (put && !turn->gates))
		return err;
	turn->core.let_go = false;
	submitted_ns = turn_now_ns(turn);
	other_loaded = status.tsg_id != HW_NO_ID && !(tsg && tsg->in_slot);
	turn_note_error(&err, evict(turn));
	/* Beside work that goes on nobody begins at once. */
	let_go &= status.state == HW_ENGINE_IDLE || status.state == HW_ENGINE_EMPTY;
	if (err || !(let_go || turn->core.window.owner))
		return err;
	return watch_on(turn, submitted_ns, other_loaded);
}
