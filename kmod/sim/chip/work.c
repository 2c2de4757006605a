// SPDX-License-Identifier: GPL-2.0
/*
 * work.c - what computes: when it starts and ends, how it is cut, on which of a unit's engines it
 * is, and whose time that was. Called by engine.c, which decides.
 *
 * Copies of the graphics runlist run on the copy engine of their channel's runqueue (which of the
 * two serves which is in no source). It takes its context on when it is first needed, with the
 * slice standing still, and loses it with the graphics engine, whose save takes longer.
 */
#include "chip_state.h"

bool chip_work_loading(const struct chip_unit *unit)
{
	return unit->stage == CHIP_RUN && unit->stage_end_ns != CHIP_NEVER;
}

static void account_grce(struct chip *chip, struct chip_unit *unit, u64 ns)
{
	struct chip_grce *grce = &chip->grces[unit->grce - 1];

	unit->totals.idle_ns += ns;
	if (unit->running) {
		grce->run_ns += ns;
		chip->tsg_run_ns[unit->tsg] += ns;
	} else {
		grce->load_ns += ns;
	}
}

/* Book the time since the last call on what the unit was doing. Call before any change. */
void chip_work_account(struct chip *chip, struct chip_unit *unit)
{
	const u64 ns = chip->now_ns - unit->accounted_ns;

	unit->accounted_ns = chip->now_ns;
	if (unit->grce && (unit->running || chip_work_loading(unit))) {
		account_grce(chip, unit, ns);
	} else if (unit->running) {
		unit->totals.run_ns += ns;
		chip->tsg_run_ns[unit->tsg] += ns;
	} else if (unit->stage == CHIP_REST) {
		unit->totals.idle_ns += ns;
	} else {
		unit->totals.switch_ns += ns;
	}
}

static u32 engine_of(const struct chip_unit *unit)
{
	return unit->grce ? unit->grce : unit->engine;
}

void chip_work_record(struct chip *chip, struct chip_unit *unit)
{
	const u64 from = unit->record_from_ns;

	unit->record_from_ns = CHIP_NEVER;
	if (from != CHIP_NEVER && from < chip->now_ns && chip->ops.ran)
		chip->ops.ran(chip->ctx, engine_of(unit), unit->tsg, from, chip->now_ns);
}

static void choose_engine(struct chip *chip, struct chip_unit *unit, const struct chip_work *work)
{
	const bool copy = !unit->runlist && work->preemption == CHIP_COPY;
	const u8 grce = copy ? (u8)(1 + unit->runqueue) : 0;

	if (grce == unit->grce)
		return;
	chip_work_record(chip, unit);
	unit->grce = grce;
}

static void load_grce(struct chip *chip, struct chip_unit *unit)
{
	const u32 ns = chip->cfg.lat.ce_load_ns;

	unit->stage_end_ns = chip_later(chip->now_ns, ns);
	if (unit->slice_end_ns != CHIP_NEVER)
		unit->slice_end_ns = chip_later(unit->slice_end_ns, ns);
}

void chip_work_loaded(struct chip *chip, struct chip_unit *unit)
{
	struct chip_grce *grce = &chip->grces[unit->grce - 1];

	grce->generation = unit->generation;
	grce->loads++;
	chip_work_start(chip, unit);
}

/* The work of the channel on the PBDMA goes on. A copy engine may have to load first. */
void chip_work_start(struct chip *chip, struct chip_unit *unit)
{
	const struct chip_work *work = &chip->channels[unit->channel].work;

	if (unit->engine_fault)
		return;
	choose_engine(chip, unit, work);
	if (unit->grce && chip->grces[unit->grce - 1].generation != unit->generation) {
		load_grce(chip, unit);
		return;
	}
	unit->running = true;
	unit->cut_due = false;
	unit->kernel_from_ns = chip->now_ns;
	unit->kernel_end_ns = chip_later(chip->now_ns, work->remaining_ns);
	if (unit->record_from_ns == CHIP_NEVER)
		unit->record_from_ns = chip->now_ns;
}

/* Stop what runs, wherever it is; what is left of it is the channel's to go on with. */
void chip_work_stop(struct chip *chip, struct chip_unit *unit)
{
	struct chip_work *work = &chip->channels[unit->channel].work;
	const u64 ns = chip->now_ns - unit->kernel_from_ns;

	work->remaining_ns -= ns;
	work->ran_ns += ns;
	unit->running = false;
	unit->cut_due = false;
	unit->kernel_end_ns = CHIP_NEVER;
	chip_work_record(chip, unit);
	if (!unit->on_pbdma)
		chip_pbdma_mark_left(chip, unit->channel);
}

/* When the blocks that run now have ended; they all began together. */
static u64 block_end_ns(const struct chip *chip, const struct chip_unit *unit,
			const struct chip_work *work)
{
	const u64 ran_ns = work->ran_ns + (chip->now_ns - unit->kernel_from_ns);
	const u64 into_ns = ran_ns - env_div(ran_ns, work->block_ns) * work->block_ns;

	return chip_later(chip->now_ns, into_ns ? work->block_ns - into_ns : 0);
}

/* Stop what runs as soon as it can be stopped; a PBDMA that is frozen asks no engine to. */
void chip_work_cut(struct chip *chip, struct chip_unit *unit)
{
	const struct chip_work *work = &chip->channels[unit->channel].work;
	u64 end_ns;
	u8 how;

	if (!unit->running || (unit->on_pbdma && chip_fault_frozen(chip, unit)))
		return;
	how = chip_context_limit(unit, work->preemption);
	if (how == CHIP_CILP || how == CHIP_COPY) {
		chip_work_stop(chip, unit);
	} else if (how == CHIP_CTA && work->block_ns && !unit->cut_due) {
		end_ns = block_end_ns(chip, unit, work);
		if (end_ns == chip->now_ns) {
			chip_work_stop(chip, unit);
		} else if (end_ns < unit->kernel_end_ns) {
			unit->kernel_end_ns = end_ns;
			unit->cut_due = true;
		}
	}
}

/* What was to run until now has: to its end, or to where it can be cut. */
void chip_work_over(struct chip *chip, struct chip_unit *unit)
{
	struct chip_work *work = &chip->channels[unit->channel].work;

	if (unit->cut_due) {
		chip_work_stop(chip, unit);
		return;
	}
	unit->running = false;
	unit->kernel_end_ns = CHIP_NEVER;
	if (!chip_pbdma_complete(chip, unit))
		return;
	work->remaining_ns = chip->cfg.lat.entry_ns;
	if (!unit->on_pbdma)
		chip_pbdma_mark_left(chip, unit->channel);
	chip_fault_engine(chip, unit, CHIP_ENGINE_PAGE);
}

/* The context on the engine is lost, with everything its channels had begun. */
void chip_work_forget(struct chip *chip, struct chip_unit *unit)
{
	struct chip_channel *channel;
	u32 i;

	if (unit->running)
		chip_work_stop(chip, unit);
	for (i = 0; i < CHIP_CHANNELS; i++) {
		channel = &chip->channels[i];
		if (unit->tsg != CHIP_NO_TSG && channel->loaded_generation == unit->generation)
			memset(&channel->work, 0, sizeof(channel->work));
	}
}

void chip_work_grce_totals(const struct chip *chip, u32 grce, struct chip_totals *out)
{
	const struct chip_grce *of = &chip->grces[grce - 1];
	const struct chip_unit *unit = &chip->units[0];
	const u64 rest_ns = chip->now_ns - unit->accounted_ns;

	out->run_ns = of->run_ns;
	out->switch_ns = of->load_ns;
	out->switches = of->loads;
	out->kernels = of->kernels;
	if (unit->grce == grce && unit->running)
		out->run_ns += rest_ns;
	else if (unit->grce == grce && chip_work_loading(unit))
		out->switch_ns += rest_ns;
	out->idle_ns = chip->now_ns - chip->start_ns - out->run_ns - out->switch_ns;
}
