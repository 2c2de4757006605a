// SPDX-License-Identifier: GPL-2.0
/*
 * engine.c - one runlist's PBDMA and engine: who is on them, and every way to change that.
 *
 *            scan finds a TSG                                    slice over, work over, preempt
 *   REST ───────────────────► ENGINE_LOAD ► PBDMA_LOAD ► RUN ───────────────► PBDMA_SAVE
 *    ▲ ▲                           ▲            ▲                                 │
 *    │ └── nobody wants the engine │            └── same TSG again ───────────────┤
 *    │                             │                                              ▼
 *    └── nothing to load ──────────┴──── ENGINE_SAVE ◄─────────── DRAIN (work that cannot be cut)
 *
 * - Work that can be cut (CILP) stops at the moment of the decision, so all of PBDMA save, GR
 *   save, GR load and PBDMA load is lost to everybody. Work that cannot runs on through the
 *   PBDMA save and to its end; only then does the engine save.
 * - A slice starts when the loads are over. It is paused within RUN only for a copy engine's load.
 * - Out of work: the PBDMA is saved, the rest of the slice is dropped. The context stays on the
 *   engine until another TSG wants it or a preempt comes.
 * - Slice over with nobody else to serve: a new slice, no save, even for a disabled channel.
 * - A fault or a trouble (fault.c, trouble.c) holds a stage at its end, until it is released.
 * - A new list: a TSG that is not served from it leaves the PBDMA. Its work on the engine is cut
 *   when another TSG wants the engine, and otherwise runs to its end: only a preempt stops it.
 */
#include "chip_state.h"

bool chip_engine_preempting(const struct chip *chip, const struct chip_unit *unit)
{
	return (unit->preempt_tsg || unit->preempt_runlist) &&
	       !(chip->trouble.preempt_stuck & (1u << unit->runlist));
}

/* Work out when the unit has to be looked at next. Call after any change. */
void chip_engine_arm(struct chip *chip, struct chip_unit *unit)
{
	u64 next = chip->runlists[unit->runlist].fetch_end_ns;

	next = min(next, unit->stage_end_ns);
	next = min(next, unit->slice_end_ns);
	next = min(next, unit->kernel_end_ns);
	next = min(next, unit->userd_due_ns);
	next = min(next, unit->timeout_ns);
	unit->next_ns = next;
}

static void enter_stage(struct chip *chip, struct chip_unit *unit, enum chip_stage stage, u32 ns)
{
	unit->stage = stage;
	unit->held = false;
	unit->stage_end_ns = chip_later(chip->now_ns, ns);
}

static void set_target(struct chip *chip, struct chip_unit *unit, u32 visit)
{
	unit->target = visit;
	unit->target_tsg =
		visit == CHIP_NONE ? CHIP_NO_TSG : chip->runlists[unit->runlist].visits[visit].tsg;
}

/* The successor chosen so far, if it still can be had; else whose turn it is now. */
static void refresh_target(struct chip *chip, struct chip_unit *unit)
{
	if (chip_runlist_blocked(chip, unit))
		set_target(chip, unit, CHIP_NONE);
	else if (unit->target == CHIP_NONE || !chip_rotation_serviceable(chip, unit, unit->target))
		set_target(chip, unit, chip_rotation_scan(chip, unit));
}

/* From RUN off the PBDMA, towards the target if one is set. */
void chip_engine_leave(struct chip *chip, struct chip_unit *unit)
{
	if (!unit->running)
		chip_work_record(chip, unit);
	unit->slice_end_ns = CHIP_NEVER;
	unit->expired = false;
	enter_stage(chip, unit, CHIP_PBDMA_SAVE, chip->cfg.lat.pbdma_save_ns);
}

static void leave_out_of_work(struct chip *chip, struct chip_unit *unit)
{
	chip_engine_leave(chip, unit);
	set_target(chip, unit, CHIP_NONE);
	refresh_target(chip, unit);
}

/* Slice over or preempted: NEXT stays set even if the work ended in the same moment, as
 * hardware can miss clearing it. */
static void leave_cut(struct chip *chip, struct chip_unit *unit)
{
	if (unit->on_pbdma)
		chip_channel_change(chip, unit->channel, CHIP_NEXT, 0);
	chip_work_cut(chip, unit);
	chip_engine_leave(chip, unit);
}

static void preempt_running(struct chip *chip, struct chip_unit *unit)
{
	leave_cut(chip, unit);
	set_target(chip, unit, CHIP_NONE);
	refresh_target(chip, unit);
}

static u32 slot_in_visit(const struct chip *chip, const struct chip_unit *unit)
{
	const struct chip_runlist *rl = &chip->runlists[unit->runlist];
	const struct chip_visit *visit;
	u32 i;

	if (unit->visit == CHIP_NONE)
		return 0;
	visit = &rl->visits[unit->visit];
	for (i = 0; i < visit->channels; i++)
		if (chip_rotation_channel(rl, visit->entry + 1 + i) == unit->channel)
			return i;
	return 0;
}

static void start_slice(struct chip *chip, struct chip_unit *unit, u32 visit)
{
	const struct chip_runlist *rl = &chip->runlists[unit->runlist];

	unit->visit = visit;
	unit->slot = slot_in_visit(chip, unit);
	unit->scan_from = visit + 1;
	unit->list_is_new = false;
	unit->expired = false;
	unit->slice_end_ns =
		chip_later(chip->now_ns, chip_runlist_slice_ns(chip, &rl->visits[visit]));
}

/* The slice goes on as a new one; the record gets its piece. */
static void renew_slice(struct chip *chip, struct chip_unit *unit, u32 visit)
{
	chip_work_record(chip, unit);
	if (unit->running)
		unit->record_from_ns = chip->now_ns;
	start_slice(chip, unit, visit);
}

/* The slice is over and the list may be used: who is next? */
static void decide(struct chip *chip, struct chip_unit *unit)
{
	const u32 next = chip_rotation_scan(chip, unit);

	unit->expired = false;
	if (next == CHIP_NONE) {
		if (unit->list_is_new || unit->visit == CHIP_NONE)
			chip_engine_leave(chip, unit);
		else
			renew_slice(chip, unit, unit->visit);
	} else if (chip->runlists[unit->runlist].visits[next].tsg == unit->tsg) {
		renew_slice(chip, unit, next);
	} else {
		set_target(chip, unit, next);
		leave_cut(chip, unit);
	}
}

/* It runs, will run, or stands still with a fault: nothing is to be picked. */
static bool is_occupied(const struct chip *chip, const struct chip_unit *unit)
{
	return unit->running || unit->engine_fault || chip_work_loading(unit) ||
	       chip_fault_frozen(chip, unit);
}

static void run(struct chip *chip, struct chip_unit *unit)
{
	if (unit->slice_end_ns <= chip->now_ns) {
		unit->expired = true;
		unit->slice_end_ns = CHIP_NEVER;
	}
	if (unit->expired && !chip_runlist_blocked(chip, unit))
		decide(chip, unit);
	if (unit->stage != CHIP_RUN)
		return;
	if (!is_occupied(chip, unit)) {
		if (chip_rotation_pick_next(chip, unit))
			chip_work_start(chip, unit);
		else if (!chip_fault_frozen(chip, unit))
			leave_out_of_work(chip, unit);
	}
	if (!unit->running)
		chip_work_record(chip, unit);
}

/* The context is on the engine and the PBDMA is the target's. */
static void enter_run(struct chip *chip, struct chip_unit *unit)
{
	const u32 visit = unit->target;

	unit->stage = CHIP_RUN;
	unit->stage_end_ns = CHIP_NEVER;
	set_target(chip, unit, CHIP_NONE);
	unit->visit = visit;
	if (visit == CHIP_NONE) {
		/* a new list came during the load and does not have it */
		leave_out_of_work(chip, unit);
		return;
	}
	start_slice(chip, unit, visit);
	if (unit->running) {
		chip_pbdma_load(chip, unit, unit->channel);
		unit->slot = slot_in_visit(chip, unit);
	} else if (chip_rotation_pick_first(chip, unit)) {
		chip_work_start(chip, unit);
	}
	if (chip->runlists[unit->runlist].fetching && !chip->cfg.sw.submit_keeps_running) {
		unit->expired = true;
		unit->slice_end_ns = CHIP_NEVER;
	}
	if (chip_engine_preempting(chip, unit))
		preempt_running(chip, unit);
	else if (!is_occupied(chip, unit))
		leave_out_of_work(chip, unit);
}

/* The target's channel that still runs on the engine can simply be taken back on the PBDMA. */
static bool can_rejoin(const struct chip *chip, const struct chip_unit *unit)
{
	const struct chip_channel *channel = &chip->channels[unit->channel];

	return chip_channel_ready(channel) && channel->runlist == unit->runlist &&
	       channel->tsg == unit->tsg;
}

static void begin_engine_save(struct chip *chip, struct chip_unit *unit)
{
	const struct chip_latency *lat = &chip->cfg.lat;

	chip_ctxsw_begin(chip, unit);
	chip_work_cut(chip, unit);
	if (unit->running || unit->engine_fault)
		unit->stage = CHIP_DRAIN;
	else
		enter_stage(chip, unit, CHIP_ENGINE_SAVE,
			    unit->runlist ? lat->ce_save_ns : lat->gr_save_ns);
}

static void begin_engine_load(struct chip *chip, struct chip_unit *unit)
{
	const struct chip_latency *lat = &chip->cfg.lat;

	chip_ctxsw_begin(chip, unit);
	enter_stage(chip, unit, CHIP_ENGINE_LOAD,
		    unit->runlist ? lat->ce_load_ns : lat->gr_load_ns);
}

static void tell_switch(const struct chip *chip, const struct chip_unit *unit, bool on)
{
	if (chip->ops.switched)
		chip->ops.switched(chip->ctx, unit->engine, unit->tsg, chip->now_ns, on);
}

/* No context is on the engine any more: requests to preempt it are done. */
void chip_engine_drop_context(struct chip *chip, struct chip_unit *unit)
{
	unit->context_lost = false;
	if (unit->tsg != CHIP_NO_TSG)
		tell_switch(chip, unit, false);
	if (chip_engine_preempting(chip, unit)) {
		if (unit->preempt_tsg)
			chip_intr_tsg_preempted(chip);
		unit->preempt_tsg = false;
		unit->preempt_runlist = false;
	}
	unit->last_tsg = unit->tsg;
	unit->tsg = CHIP_NO_TSG;
	unit->visit = CHIP_NONE;
}

/* The PBDMA is empty: go on towards whoever is next, or rest. */
void chip_engine_proceed(struct chip *chip, struct chip_unit *unit)
{
	const struct chip_latency *lat = &chip->cfg.lat;
	const bool drop =
		chip->cfg.sw.empty_list_drops_context && !chip->runlists[unit->runlist].visit_count;

	if (unit->context_lost)
		chip_engine_drop_context(chip, unit);
	refresh_target(chip, unit);
	unit->stage = CHIP_REST;
	unit->stage_end_ns = CHIP_NEVER;
	if (unit->tsg == CHIP_NO_TSG) {
		if (unit->target != CHIP_NONE && !unit->engine_off)
			begin_engine_load(chip, unit);
	} else if (chip_engine_preempting(chip, unit) || drop ||
		   (unit->target != CHIP_NONE && unit->target_tsg != unit->tsg)) {
		begin_engine_save(chip, unit);
	} else if (unit->target != CHIP_NONE && !unit->engine_fault) {
		chip_ctxsw_end(unit, CHIP_CTXSW_INFO_DROPPED);
		if (!unit->running)
			enter_stage(chip, unit, CHIP_PBDMA_LOAD, lat->pbdma_load_ns);
		else if (can_rejoin(chip, unit))
			enter_run(chip, unit);
	}
	if (unit->stage == CHIP_REST)
		chip_ctxsw_end(unit, CHIP_CTXSW_INFO_DROPPED);
}

static void engine_saved(struct chip *chip, struct chip_unit *unit)
{
	chip_context_saved(chip, unit);
	chip_ctxsw_end(unit, CHIP_CTXSW_INFO_ACK);
	chip_engine_drop_context(chip, unit);
	chip_engine_proceed(chip, unit);
}

static void engine_loaded(struct chip *chip, struct chip_unit *unit)
{
	chip_ctxsw_end(unit, CHIP_CTXSW_INFO_ACK);
	unit->tsg = unit->target_tsg;
	unit->generation = ++chip->generation;
	unit->totals.switches++;
	tell_switch(chip, unit, true);
	enter_stage(chip, unit, CHIP_PBDMA_LOAD, chip->cfg.lat.pbdma_load_ns);
}

static void stage_over(struct chip *chip, struct chip_unit *unit)
{
	unit->stage_end_ns = CHIP_NEVER;
	unit->held = chip_trouble_holds(chip, unit);
	if (unit->held)
		return;
	switch (unit->stage) {
	case CHIP_PBDMA_SAVE:
		chip_pbdma_save(chip, unit);
		chip_engine_proceed(chip, unit);
		break;
	case CHIP_ENGINE_SAVE:
		engine_saved(chip, unit);
		break;
	case CHIP_ENGINE_LOAD:
		engine_loaded(chip, unit);
		break;
	case CHIP_PBDMA_LOAD:
		enter_run(chip, unit);
		break;
	case CHIP_RUN:
		chip_work_loaded(chip, unit);
		break;
	case CHIP_REST:
	case CHIP_DRAIN:
		break;
	}
}

/* Everything that is due at chip->now_ns, in a fixed order. */
void chip_engine_step(struct chip *chip, struct chip_unit *unit)
{
	const u64 now = chip->now_ns;

	chip_work_account(chip, unit);
	if (unit->running && unit->kernel_end_ns <= now) {
		chip_work_over(chip, unit);
		if (unit->stage != CHIP_RUN)
			chip_work_record(chip, unit);
		if (unit->stage == CHIP_DRAIN || unit->stage == CHIP_REST)
			chip_engine_proceed(chip, unit);
	}
	if (chip->runlists[unit->runlist].fetch_end_ns <= now)
		chip_runlist_finish_fetch(chip, unit->runlist);
	if (unit->stage_end_ns <= now)
		stage_over(chip, unit);
	if (unit->stage == CHIP_RUN)
		run(chip, unit);
	if (unit->userd_due_ns <= now)
		chip_pbdma_write_back(chip, unit);
	if (unit->timeout_ns <= now)
		chip_ctxsw_due(chip, unit);
	chip_engine_arm(chip, unit);
}

/* Something may have become serviceable, or may be scheduled again. */
void chip_engine_kick(struct chip *chip, struct chip_unit *unit)
{
	if (chip_runlist_blocked(chip, unit))
		return;
	chip_work_account(chip, unit);
	if (unit->stage == CHIP_REST)
		chip_engine_proceed(chip, unit);
	else if (unit->stage == CHIP_RUN)
		run(chip, unit);
	chip_engine_arm(chip, unit);
}

/* A fault or a trouble is over: what waited for that goes on. */
void chip_engine_release(struct chip *chip, struct chip_unit *unit)
{
	if (unit->held) {
		unit->held = chip_trouble_holds(chip, unit);
		unit->stage_end_ns = unit->held ? CHIP_NEVER : chip->now_ns;
	} else if (unit->stage == CHIP_RUN) {
		run(chip, unit);
	} else if (unit->stage == CHIP_REST || unit->stage == CHIP_DRAIN) {
		chip_engine_proceed(chip, unit);
	}
	chip_engine_arm(chip, unit);
}

/* A submit ends the slice; the decision waits for the fetch. */
void chip_engine_expire(struct chip *chip, struct chip_unit *unit)
{
	chip_work_account(chip, unit);
	if (unit->stage == CHIP_RUN) {
		unit->expired = true;
		unit->slice_end_ns = CHIP_NEVER;
	} else {
		chip_engine_cancel_target(unit);
	}
}

/* A successor that is not being loaded yet is no longer one. */
void chip_engine_cancel_target(struct chip_unit *unit)
{
	if (unit->stage == CHIP_ENGINE_LOAD || unit->stage == CHIP_PBDMA_LOAD)
		return;
	unit->target = CHIP_NONE;
	unit->target_tsg = CHIP_NO_TSG;
}

/* The list in force is another one; visit numbers of the old one mean nothing any more. */
void chip_engine_new_list(struct chip *chip, struct chip_unit *unit, u32 start)
{
	const struct chip_runlist *rl = &chip->runlists[unit->runlist];

	unit->scan_from = start;
	unit->visit = CHIP_NONE;
	switch (unit->stage) {
	case CHIP_RUN:
		unit->visit = chip_runlist_find_tsg(rl, unit->tsg);
		unit->slot = slot_in_visit(chip, unit);
		unit->list_is_new = true;
		break;
	case CHIP_ENGINE_LOAD:
	case CHIP_PBDMA_LOAD:
		unit->target = chip_runlist_find_tsg(rl, unit->target_tsg);
		break;
	case CHIP_REST:
	case CHIP_DRAIN:
		set_target(chip, unit, CHIP_NONE);
		chip_engine_proceed(chip, unit);
		break;
	case CHIP_PBDMA_SAVE:
	case CHIP_ENGINE_SAVE:
		set_target(chip, unit, CHIP_NONE);
		refresh_target(chip, unit);
		break;
	}
}

/* A preempt request has been noted on the unit: act on it as far as the stage allows. */
void chip_engine_preempt(struct chip *chip, struct chip_unit *unit)
{
	chip_work_account(chip, unit);
	if (!chip_engine_preempting(chip, unit))
		return;
	if (unit->stage == CHIP_RUN)
		preempt_running(chip, unit);
	else if (unit->stage == CHIP_PBDMA_SAVE)
		chip_work_cut(chip, unit);
	else if (unit->stage == CHIP_REST)
		chip_engine_proceed(chip, unit);
	chip_engine_arm(chip, unit);
}
