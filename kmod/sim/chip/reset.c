// SPDX-License-Identifier: GPL-2.0
/*
 * reset.c - the state after a reset, and everything that leads there: creation, a host that is
 * taken off its power, PMC_ENABLE for the host and for one engine (hardware page 8.5, 10.6, 10.7).
 *
 * What is the model's and not the card's outlives a reset: knobs, troubles, totals, the clock.
 */
#include "chip_state.h"

static void reset_unit(struct chip *chip, u32 runlist)
{
	struct chip_unit *unit = &chip->units[runlist];
	const struct chip_totals totals = unit->totals;
	const u64 accounted_ns = unit->accounted_ns;
	u32 bit;

	memset(unit, 0, sizeof(*unit));
	chip_topology_init(unit, runlist);
	bit = chip_topology_reset_bit(unit->engine);
	unit->engine_off = bit && !(chip->pmc_enable & bit);
	unit->totals = totals;
	unit->accounted_ns = accounted_ns;
	unit->next_ns = CHIP_NEVER;
	unit->stage_end_ns = CHIP_NEVER;
	unit->slice_end_ns = CHIP_NEVER;
	unit->kernel_end_ns = CHIP_NEVER;
	unit->userd_due_ns = CHIP_NEVER;
	unit->timeout_ns = CHIP_NEVER;
	unit->ctxsw_from_ns = CHIP_NEVER;
	unit->record_from_ns = CHIP_NEVER;
	unit->visit = CHIP_NONE;
	unit->target = CHIP_NONE;
	unit->tsg = CHIP_NO_TSG;
	unit->target_tsg = CHIP_NO_TSG;
}

static void reset_runlist(struct chip_runlist *rl)
{
	memset(rl, 0, offsetof(struct chip_runlist, visits));
	memset(rl->tsgs, 0, sizeof(rl->tsgs));
	rl->fetch_end_ns = CHIP_NEVER;
}

static void reset_host(struct chip *chip)
{
	u32 i;

	for (i = 0; i < CHIP_RUNLISTS; i++) {
		reset_unit(chip, i);
		reset_runlist(&chip->runlists[i]);
	}
	for (i = 0; i < CHIP_GRCES; i++)
		chip->grces[i].generation = 0;
	memset(chip->channels, 0, sizeof(chip->channels));
	for (i = 0; i < CHIP_CHANNELS; i++)
		chip->channels[i].runlist = CHIP_NO_RUNLIST;
	chip->doorbells.count = 0;
	chip->doorbells.due_ns = CHIP_NEVER;
	memset(chip->pbdma_intr, 0, sizeof(chip->pbdma_intr));
	memset(chip->pbdma_intr_en, 0, sizeof(chip->pbdma_intr_en));
	chip->sched_disable = 0;
	chip->preempt = 0;
	chip->intr_0 = 0;
	chip->intr_runlist = 0;
	chip->intr_ctxsw = 0;
	chip->intr_en_0 = 0;
	chip->intr_en_1 = 0;
	chip->intr_stall = 0;
	chip->intr_preempt_en = 0;
	chip->bind_error = 0;
	chip->sched_error = 0;
	chip->ctxsw_timeout = CHIP_CTXSW_TIMEOUT_RESET;
	chip->userd_writeback = 100;
}

static void book(struct chip *chip)
{
	u32 i;

	for (i = 0; i < CHIP_RUNLISTS; i++) {
		chip_work_account(chip, &chip->units[i]);
		chip_work_record(chip, &chip->units[i]);
	}
}

/* What ran is booked; then all is as it was when the card was made. */
void chip_reset_all(struct chip *chip)
{
	book(chip);
	chip->pmc_enable = CHIP_PMC_ENABLE_PFIFO | chip_topology_reset_bits();
	reset_host(chip);
	chip->virtual_channel_cfg = 0;
	chip->pri_address = 0;
	chip->pri_data = 0;
	chip->pri_code = 0;
}

static void leave_engine(struct chip *chip, struct chip_unit *unit)
{
	switch (unit->stage) {
	case CHIP_RUN:
		chip_protocol_error(chip, "an engine was reset under a channel on its PBDMA");
		unit->context_lost = true;
		chip_engine_cancel_target(unit);
		chip_engine_leave(chip, unit);
		break;
	case CHIP_PBDMA_SAVE:
		unit->context_lost = true;
		break;
	default:
		unit->held = false;
		unit->target = CHIP_NONE;
		unit->target_tsg = CHIP_NO_TSG;
		chip_engine_drop_context(chip, unit);
		chip_engine_proceed(chip, unit);
		break;
	}
}

static void reset_engine(struct chip *chip, struct chip_unit *unit)
{
	chip_work_account(chip, unit);
	unit->engine_off = true;
	unit->engine_fault = CHIP_ENGINE_SOUND;
	chip_ctxsw_end(unit, CHIP_CTXSW_INFO_RESET);
	chip_work_forget(chip, unit);
	leave_engine(chip, unit);
	chip_engine_arm(chip, unit);
}

static void start_engine(struct chip *chip, struct chip_unit *unit)
{
	chip_work_account(chip, unit);
	unit->engine_off = false;
	chip_engine_release(chip, unit);
}

/* A copy engine of the graphics runlist: what it does is lost, and it takes its context anew. */
static void reset_grce(struct chip *chip, u32 grce)
{
	struct chip_unit *unit = &chip->units[0];

	chip_work_account(chip, unit);
	chip->grces[grce - 1].generation = 0;
	if (unit->grce != grce || !(unit->running || chip_work_loading(unit)))
		return;
	if (unit->running)
		chip_work_stop(chip, unit);
	memset(&chip->channels[unit->channel].work, 0, sizeof(chip->channels[0].work));
	unit->grce = 0;
	if (unit->stage == CHIP_RUN)
		unit->stage_end_ns = CHIP_NEVER;
	chip_engine_release(chip, unit);
}

/* PMC_ENABLE: a unit whose bit goes to 0 is in reset until it comes back. */
void chip_reset_write(struct chip *chip, u32 value)
{
	const u32 before = chip->pmc_enable;
	u32 mask = CHIP_PMC_ENABLE_PFIFO | chip_topology_reset_bits();
	u32 i, bit;

	chip->pmc_enable = value & mask;
	if (before & ~value & CHIP_PMC_ENABLE_PFIFO) {
		book(chip);
		reset_host(chip);
	}
	for (i = 0; i < CHIP_RUNLISTS; i++) {
		bit = chip_topology_reset_bit(chip->units[i].engine);
		if (before & ~value & bit)
			reset_engine(chip, &chip->units[i]);
		else if (~before & value & bit)
			start_engine(chip, &chip->units[i]);
	}
	for (i = 1; i <= CHIP_GRCES; i++)
		if (before & ~value & chip_topology_reset_bit(i))
			reset_grce(chip, i);
}

void chip_presence_set(struct chip *chip, u64 now_ns, enum chip_presence presence)
{
	chip_advance(chip, now_ns);
	if (presence == CHIP_POWERED_OFF)
		chip_reset_all(chip);
	chip->presence = presence;
}
