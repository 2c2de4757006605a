// SPDX-License-Identifier: GPL-2.0
/*
 * control.c - SCHED_DISABLE, PREEMPT, RUNLIST_PREEMPT, SCHED_STATUS (hardware page 4, 10.4).
 *
 * A preempt takes a TSG off PBDMA and engine; it does not keep it off. Only TSG preempts do
 * anything: channel preempts have been without effect since Volta. PENDING covers all requests.
 */
#include "chip_state.h"

static bool is_pending(const struct chip *chip)
{
	u32 i;

	for (i = 0; i < CHIP_RUNLISTS; i++)
		if (chip->units[i].preempt_tsg)
			return true;
	return false;
}

static u32 pending_runlists(const struct chip *chip)
{
	u32 mask = 0, i;

	for (i = 0; i < CHIP_RUNLISTS; i++)
		if (chip->units[i].preempt_runlist)
			mask |= 1u << i;
	return mask;
}

static void drop_requests(struct chip *chip)
{
	u32 i;

	for (i = 0; i < CHIP_RUNLISTS; i++)
		chip->units[i].preempt_tsg = false;
}

static void preempt_tsg(struct chip *chip, u16 tsg)
{
	struct chip_unit *unit, *found = NULL;
	u32 i;

	if (chip->cfg.sw.preempt_replaces)
		drop_requests(chip);
	for (i = 0; i < CHIP_RUNLISTS; i++) {
		unit = &chip->units[i];
		if (unit->tsg == tsg ||
		    (unit->stage == CHIP_ENGINE_LOAD && unit->target_tsg == tsg)) {
			unit->preempt_tsg = true;
			unit->preempt_id = tsg;
			found = unit;
			chip_engine_preempt(chip, unit);
		} else if (unit->target_tsg == tsg) {
			chip_engine_cancel_target(unit);
		}
	}
	(found ? found : &chip->units[0])->totals.preempts++;
	if (!found)
		chip_intr_tsg_preempted(chip);
}

static void preempt_runlists(struct chip *chip, u32 mask)
{
	struct chip_unit *unit;
	u32 i;

	for (i = 0; i < CHIP_RUNLISTS; i++) {
		if (!(mask & (1u << i)))
			continue;
		unit = &chip->units[i];
		unit->totals.preempts++;
		chip_engine_cancel_target(unit);
		if (unit->tsg == CHIP_NO_TSG && unit->stage != CHIP_ENGINE_LOAD)
			continue;
		unit->preempt_runlist = true;
		chip_engine_preempt(chip, unit);
	}
}

static void write_sched_disable(struct chip *chip, u32 value)
{
	const u32 before = chip->sched_disable;
	u32 i;

	chip->sched_disable = value & CHIP_RUNLIST_MASK;
	for (i = 0; i < CHIP_RUNLISTS; i++) {
		if (chip->sched_disable & (1u << i)) {
			chip_engine_cancel_target(&chip->units[i]);
			continue;
		}
		if (!(before & (1u << i)))
			continue;
		if (chip->runlists[i].fetching && chip->runlists[i].fetch_end_ns == CHIP_NEVER) {
			chip_runlist_start_fetch(chip, i);
			chip_engine_arm(chip, &chip->units[i]);
		}
		chip_engine_kick(chip, &chip->units[i]);
	}
}

u32 chip_control_read(struct chip *chip, u32 offset)
{
	switch (offset) {
	case CHIP_SCHED_DISABLE:
		return chip->sched_disable;
	case CHIP_PREEMPT:
		return chip->preempt | (is_pending(chip) ? CHIP_PREEMPT_PENDING : 0);
	case CHIP_RUNLIST_PREEMPT:
		return pending_runlists(chip);
	default:
		return chip_status_sched(chip);
	}
}

void chip_control_write(struct chip *chip, u32 offset, u32 value)
{
	switch (offset) {
	case CHIP_SCHED_DISABLE:
		write_sched_disable(chip, value);
		break;
	case CHIP_PREEMPT:
		chip->preempt = value & (CHIP_PREEMPT_ID | CHIP_PREEMPT_TYPE);
		if ((value & CHIP_PREEMPT_TYPE) == CHIP_PREEMPT_TYPE_TSG)
			preempt_tsg(chip, value & CHIP_PREEMPT_ID);
		break;
	case CHIP_RUNLIST_PREEMPT:
		preempt_runlists(chip, value & CHIP_RUNLIST_MASK);
		break;
	default:
		break;
	}
}
