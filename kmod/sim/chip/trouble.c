// SPDX-License-Identifier: GPL-2.0
/*
 * trouble.c - troubles on demand (chip_fault.h): a stage that does not end, a preempt that is not
 * heard, and what goes on when the trouble is taken away.
 */
#include "chip_state.h"

static bool is_on(u32 mask, const struct chip_unit *unit)
{
	return mask & (1u << unit->runlist);
}

/* The stage would be over, but for this. */
bool chip_trouble_holds(const struct chip *chip, const struct chip_unit *unit)
{
	switch (unit->stage) {
	case CHIP_PBDMA_SAVE:
		return is_on(chip->trouble.pbdma_stuck, unit) || chip_fault_frozen(chip, unit);
	case CHIP_ENGINE_SAVE:
		return is_on(chip->trouble.save_stuck, unit);
	case CHIP_ENGINE_LOAD:
		return is_on(chip->trouble.load_stuck, unit) || unit->engine_off;
	default:
		return false;
	}
}

/* A request that was not heard is heard now, or asks for somebody who has gone. */
static void hear_preempt(struct chip *chip, struct chip_unit *unit)
{
	if (unit->preempt_tsg && unit->tsg != unit->preempt_id && unit->stage != CHIP_ENGINE_LOAD) {
		unit->preempt_tsg = false;
		chip_intr_tsg_preempted(chip);
	}
	if (unit->tsg == CHIP_NO_TSG && unit->stage != CHIP_ENGINE_LOAD)
		unit->preempt_runlist = false;
	if (unit->preempt_tsg || unit->preempt_runlist)
		chip_engine_preempt(chip, unit);
}

static void resume(struct chip *chip, struct chip_unit *unit, const struct chip_trouble *before)
{
	const struct chip_trouble *now = &chip->trouble;
	struct chip_runlist *rl = &chip->runlists[unit->runlist];

	chip_work_account(chip, unit);
	if (is_on(before->preempt_stuck & ~now->preempt_stuck, unit))
		hear_preempt(chip, unit);
	if (is_on(before->fetch_stuck & ~now->fetch_stuck, unit) && rl->fetching)
		chip_runlist_start_fetch(chip, unit->runlist);
	if (unit->held)
		chip_engine_release(chip, unit);
	chip_engine_arm(chip, unit);
}

void chip_identity_set(struct chip *chip, u32 boot0, bool firmware)
{
	chip->cfg.boot0 = boot0;
	chip->firmware = firmware;
}

void chip_trouble_set(struct chip *chip, u64 now_ns, const struct chip_trouble *trouble)
{
	const struct chip_trouble before = chip->trouble;
	u32 i;

	chip_advance(chip, now_ns);
	chip->trouble = *trouble;
	for (i = 0; i < CHIP_RUNLISTS; i++)
		resume(chip, &chip->units[i], &before);
}
