// SPDX-License-Identifier: GPL-2.0
/*
 * ctxsw.c - the time limit of a context switch (hardware page 8.2, 8.3).
 *
 * It runs from the moment the engine is asked, for a save (and while work that cannot be cut keeps
 * the engine from beginning it) and again for a load. What it finds stays where it is: to stop the
 * context is the driver's business.
 */
#include "chip_state.h"

#define UNIT_NS 1024u

static u64 due_ns(const struct chip *chip, const struct chip_unit *unit)
{
	if (unit->ctxsw_from_ns == CHIP_NEVER || unit->timed_out ||
	    !(chip->ctxsw_timeout & CHIP_CTXSW_TIMEOUT_ON))
		return CHIP_NEVER;
	return chip_later(unit->ctxsw_from_ns,
			  (u64)(chip->ctxsw_timeout & CHIP_CTXSW_TIMEOUT_PERIOD) * UNIT_NS);
}

/* The engine is asked to save or to load; asking again for the same changes nothing. */
void chip_ctxsw_begin(struct chip *chip, struct chip_unit *unit)
{
	if (unit->ctxsw_from_ns != CHIP_NEVER)
		return;
	unit->ctxsw_from_ns = chip->now_ns;
	unit->timed_out = false;
	unit->timeout_ns = due_ns(chip, unit);
}

static u32 state_of(const struct chip_unit *unit)
{
	switch (unit->stage) {
	case CHIP_ENGINE_LOAD:
		return CHIP_CTXSW_INFO_LOAD;
	case CHIP_ENGINE_SAVE:
		return CHIP_CTXSW_INFO_SAVE;
	default:
		return CHIP_CTXSW_INFO_SWITCH;
	}
}

void chip_ctxsw_due(struct chip *chip, struct chip_unit *unit)
{
	const u16 previous = unit->tsg == CHIP_NO_TSG ? unit->last_tsg : unit->tsg;

	unit->timeout_ns = CHIP_NEVER;
	unit->timed_out = true;
	chip->intr_ctxsw |= 1u << unit->engine;
	unit->ctxsw_info = CHIP_CTXSW_INFO_WAITING << CHIP_CTXSW_INFO_STATUS_SHIFT |
			   state_of(unit) << CHIP_CTXSW_INFO_STATE_SHIFT;
	if (previous != CHIP_NO_TSG)
		unit->ctxsw_info |= previous;
	if (unit->target_tsg != CHIP_NO_TSG)
		unit->ctxsw_info |= (u32)unit->target_tsg << CHIP_CTXSW_INFO_NEXT_SHIFT;
}

/* The engine need not switch any more: @how is one of CHIP_CTXSW_INFO_RESET, _ACK, _DROPPED. */
void chip_ctxsw_end(struct chip_unit *unit, u32 how)
{
	if (unit->timed_out)
		unit->ctxsw_info = (unit->ctxsw_info & ~CHIP_CTXSW_INFO_STATUS) |
				   how << CHIP_CTXSW_INFO_STATUS_SHIFT;
	unit->timed_out = false;
	unit->timeout_ns = CHIP_NEVER;
	unit->ctxsw_from_ns = CHIP_NEVER;
}

void chip_ctxsw_write_timeout(struct chip *chip, u32 value)
{
	u32 i;

	chip->ctxsw_timeout = value;
	for (i = 0; i < CHIP_RUNLISTS; i++) {
		chip->units[i].timeout_ns = due_ns(chip, &chip->units[i]);
		if (chip->units[i].timeout_ns < chip->now_ns)
			chip->units[i].timeout_ns = chip->now_ns;
		chip_work_account(chip, &chip->units[i]);
		chip_engine_arm(chip, &chip->units[i]);
	}
}

u32 chip_ctxsw_info(struct chip *chip, u32 engine)
{
	const struct chip_unit *unit = chip_topology_unit(chip, engine);

	return unit ? unit->ctxsw_info : 0;
}
