// SPDX-License-Identifier: GPL-2.0
/*
 * status.c - what a unit shows of itself: ENGINE_STATUS, PBDMA_STATUS, RUNLIST_INFO and their
 * companions (hardware page 5). Reads only.
 *
 * While the engine loads, ID is the stale id of the previous context: only NEXT_ID counts there.
 * A successor that is not known yet shows as NEXT_ID 0 with a type that is not TSG. The second
 * PBDMA of the graphics runlist never shows anything.
 */
#include "chip_state.h"

static u32 status(u32 code, u16 tsg)
{
	return code << CHIP_STATUS_SHIFT | (u32)tsg | CHIP_STATUS_ID_TSG;
}

static u32 next(const struct chip_unit *unit)
{
	if (unit->target_tsg == CHIP_NO_TSG)
		return 0;
	return (u32)unit->target_tsg << CHIP_STATUS_NEXT_SHIFT | CHIP_STATUS_NEXT_TSG;
}

/* The PBDMA leaves because the engine is to be taken away too. */
static bool is_switching(const struct chip_unit *unit)
{
	return unit->preempt_tsg || unit->preempt_runlist ||
	       (unit->target_tsg != CHIP_NO_TSG && unit->target_tsg != unit->tsg);
}

u32 chip_status_engine(struct chip *chip, u32 engine)
{
	const struct chip_unit *unit = chip_topology_unit(chip, engine);

	if (!unit)
		return 0;
	switch (unit->stage) {
	case CHIP_PBDMA_SAVE:
		if (is_switching(unit))
			return status(CHIP_STATUS_SWITCH, unit->tsg) | next(unit) |
			       CHIP_STATUS_BUSY;
		break;
	case CHIP_DRAIN:
		return status(CHIP_STATUS_SWITCH, unit->tsg) | next(unit) | CHIP_STATUS_BUSY;
	case CHIP_ENGINE_SAVE:
		return status(CHIP_STATUS_SAVE, unit->tsg) | CHIP_STATUS_BUSY;
	case CHIP_ENGINE_LOAD:
		return status(CHIP_STATUS_LOAD, unit->last_tsg) | next(unit) | CHIP_STATUS_BUSY;
	case CHIP_REST:
	case CHIP_RUN:
	case CHIP_PBDMA_LOAD:
		break;
	}
	if (unit->tsg == CHIP_NO_TSG)
		return status(CHIP_STATUS_INVALID, unit->last_tsg);
	return status(CHIP_STATUS_VALID, unit->tsg) | (unit->running ? CHIP_STATUS_BUSY : 0);
}

static u32 inst_of(const struct chip *chip, u16 id)
{
	return (chip->channels[id].inst & (CHIP_INST_PTR | CHIP_INST_TARGET)) |
	       CHIP_STATUS_INST_VALID;
}

u32 chip_status_engine_inst(struct chip *chip, u32 engine)
{
	const struct chip_unit *unit = chip_topology_unit(chip, engine);

	if (!unit || unit->tsg == CHIP_NO_TSG || !chip_channel_is_on_engine(chip, unit->channel))
		return 0;
	return inst_of(chip, unit->channel);
}

u32 chip_status_engine_next_inst(struct chip *chip, u32 engine)
{
	const struct chip_unit *unit = chip_topology_unit(chip, engine);
	const struct chip_runlist *rl;

	if (!unit || unit->target == CHIP_NONE)
		return 0;
	rl = &chip->runlists[unit->runlist];
	return inst_of(chip, rl->channels[rl->visits[unit->target].entry + 1]);
}

u32 chip_status_pbdma(struct chip *chip, u32 pbdma)
{
	const struct chip_unit *unit = chip_topology_pbdma_unit(chip, pbdma);

	if (!unit)
		return 0;
	switch (unit->stage) {
	case CHIP_RUN:
		return status(CHIP_STATUS_VALID, unit->tsg);
	case CHIP_PBDMA_SAVE:
		return status(CHIP_STATUS_SAVE, unit->tsg);
	case CHIP_PBDMA_LOAD:
		return status(CHIP_STATUS_LOAD,
			      unit->last_tsg == CHIP_NO_TSG ? 0 : unit->last_tsg) |
		       (u32)unit->tsg << CHIP_STATUS_NEXT_SHIFT | CHIP_STATUS_NEXT_TSG;
	case CHIP_REST:
	case CHIP_DRAIN:
	case CHIP_ENGINE_SAVE:
	case CHIP_ENGINE_LOAD:
		break;
	}
	return 0;
}

static const struct chip_channel *pbdma_channel(struct chip *chip, u32 pbdma)
{
	const struct chip_unit *unit = chip_topology_pbdma_unit(chip, pbdma);

	return unit && unit->on_pbdma ? &chip->channels[unit->channel] : NULL;
}

u32 chip_status_pbdma_inst(struct chip *chip, u32 pbdma)
{
	const struct chip_unit *unit = chip_topology_pbdma_unit(chip, pbdma);

	return unit && unit->on_pbdma ? inst_of(chip, unit->channel) : 0;
}

u32 chip_status_pbdma_userd(struct chip *chip, u32 pbdma)
{
	const struct chip_channel *channel = pbdma_channel(chip, pbdma);

	return channel ? (u32)channel->userd | channel->userd_target : 0;
}

u32 chip_status_pbdma_userd_hi(struct chip *chip, u32 pbdma)
{
	const struct chip_channel *channel = pbdma_channel(chip, pbdma);

	return channel ? (u32)(channel->userd >> 32) : 0;
}

/* The few registers of a PBDMA that a driver may look at; no interrupt is ever pending. */
u32 chip_status_pbdma_reg(struct chip *chip, u32 pbdma, u32 reg)
{
	const struct chip_unit *unit = chip_topology_pbdma_unit(chip, pbdma);
	const struct chip_channel *channel = pbdma_channel(chip, pbdma);

	switch (reg) {
	case CHIP_PBDMA_GP_PUT:
		return channel ? channel->gp_put : 0;
	case CHIP_PBDMA_GP_GET:
		return channel ? channel->gp_get : 0;
	case CHIP_PBDMA_CHANNEL:
		return unit ? unit->channel : 0;
	case CHIP_PBDMA_INTR_0:
	case CHIP_PBDMA_INTR_1:
		return 0;
	default:
		return CHIP_PRI_ERROR;
	}
}

static bool has_serviceable(const struct chip *chip, const struct chip_unit *unit)
{
	u32 visit;

	for (visit = 0; visit < chip->runlists[unit->runlist].visit_count; visit++)
		if (chip_rotation_serviceable(chip, unit, visit))
			return true;
	return false;
}

u32 chip_status_runlist_info(struct chip *chip, u32 runlist)
{
	const struct chip_unit *unit = &chip->units[runlist];
	u32 value = 0;

	if (unit->stage == CHIP_REST && !unit->running)
		value |= CHIP_RUNLIST_INFO_ENG_IDLE;
	if (unit->stage == CHIP_REST && !has_serviceable(chip, unit))
		value |= CHIP_RUNLIST_INFO_IDLE;
	return value;
}

u32 chip_status_sched(struct chip *chip)
{
	u32 value = 0, i;

	for (i = 0; i < CHIP_RUNLISTS; i++) {
		if (chip->units[i].stage != CHIP_REST && chip->units[i].stage != CHIP_RUN)
			value |= CHIP_SCHED_STATUS_SWITCH;
		if (chip->runlists[i].fetching)
			value |= CHIP_SCHED_STATUS_FETCH;
	}
	return value;
}
