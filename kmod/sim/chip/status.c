// SPDX-License-Identifier: GPL-2.0
/*
 * status.c - what a unit shows of itself: ENGINE_STATUS, PBDMA_STATUS, RUNLIST_INFO and their
 * companions (hardware page 5). Reads only.
 *
 * While the engine loads, ID is the stale id of the previous context: only NEXT_ID counts there.
 * A successor that is not known yet shows as NEXT_ID 0 with a type that is not TSG. Of the two
 * PBDMAs of the graphics runlist the one that does not hold the channel shows nothing.
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
static bool is_switching(const struct chip *chip, const struct chip_unit *unit)
{
	return chip_engine_preempting(chip, unit) ||
	       (unit->target_tsg != CHIP_NO_TSG && unit->target_tsg != unit->tsg);
}

/* A copy engine of the graphics runlist has the context of the graphics engine, or none. */
static u32 grce_status(const struct chip *chip, u32 grce)
{
	const struct chip_unit *unit = &chip->units[0];
	const bool mine = unit->grce == grce;

	if (mine && chip_work_loading(unit))
		return status(CHIP_STATUS_LOAD, unit->last_tsg) |
		       (u32)unit->tsg << CHIP_STATUS_NEXT_SHIFT | CHIP_STATUS_NEXT_TSG |
		       CHIP_STATUS_BUSY;
	if (unit->tsg == CHIP_NO_TSG || chip->grces[grce - 1].generation != unit->generation)
		return status(CHIP_STATUS_INVALID, unit->last_tsg);
	if (unit->stage == CHIP_ENGINE_SAVE)
		return status(CHIP_STATUS_SAVE, unit->tsg) | CHIP_STATUS_BUSY;
	return status(CHIP_STATUS_VALID, unit->tsg) |
	       (mine && unit->running ? CHIP_STATUS_BUSY : 0);
}

/* The engine stands with its context, working or not. */
static u32 settled_status(const struct chip_unit *unit)
{
	const bool busy = unit->engine_fault || (unit->running && !unit->grce);

	if (unit->tsg == CHIP_NO_TSG || unit->context_lost)
		return status(CHIP_STATUS_INVALID, unit->last_tsg);
	return status(CHIP_STATUS_VALID, unit->tsg) | (busy ? CHIP_STATUS_BUSY : 0) |
	       (unit->engine_fault ? CHIP_STATUS_FAULTED : 0);
}

static u32 switch_status(const struct chip_unit *unit)
{
	return status(CHIP_STATUS_SWITCH, unit->tsg) | next(unit) | CHIP_STATUS_BUSY |
	       (unit->engine_fault ? CHIP_STATUS_FAULTED : 0);
}

u32 chip_status_engine(struct chip *chip, u32 engine)
{
	const struct chip_unit *unit = chip_topology_unit(chip, engine);

	if (!unit)
		return engine && engine <= CHIP_GRCES ? grce_status(chip, engine) : 0;
	switch (unit->stage) {
	case CHIP_PBDMA_SAVE:
		if (is_switching(chip, unit) && !unit->context_lost)
			return switch_status(unit);
		break;
	case CHIP_DRAIN:
		return switch_status(unit);
	case CHIP_ENGINE_SAVE:
		return status(CHIP_STATUS_SAVE, unit->tsg) | CHIP_STATUS_BUSY;
	case CHIP_ENGINE_LOAD:
		return status(CHIP_STATUS_LOAD, unit->last_tsg) | next(unit) | CHIP_STATUS_BUSY;
	case CHIP_REST:
	case CHIP_RUN:
	case CHIP_PBDMA_LOAD:
		break;
	}
	return settled_status(unit);
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
	return inst_of(chip, chip_rotation_channel(rl, rl->visits[unit->target].entry + 1));
}

/* The unit whose channel is on, or comes to, exactly this PBDMA. */
static const struct chip_unit *pbdma_unit(struct chip *chip, u32 pbdma)
{
	const struct chip_unit *unit = chip_topology_pbdma_unit(chip, pbdma);

	return unit && unit->pbdma + unit->runqueue == pbdma ? unit : NULL;
}

u32 chip_status_pbdma(struct chip *chip, u32 pbdma)
{
	const struct chip_unit *unit = pbdma_unit(chip, pbdma);

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
		if (chip->cfg.sw.idle_pbdma_stays_valid && unit->tsg != CHIP_NO_TSG)
			return status(CHIP_STATUS_VALID, unit->tsg);
		break;
	case CHIP_DRAIN:
	case CHIP_ENGINE_SAVE:
	case CHIP_ENGINE_LOAD:
		break;
	}
	return 0;
}

static const struct chip_channel *pbdma_channel(struct chip *chip, u32 pbdma)
{
	const struct chip_unit *unit = pbdma_unit(chip, pbdma);

	return unit && unit->on_pbdma ? &chip->channels[unit->channel] : NULL;
}

u32 chip_status_pbdma_inst(struct chip *chip, u32 pbdma)
{
	const struct chip_unit *unit = pbdma_unit(chip, pbdma);

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

/* The few registers of a PBDMA that a driver may look at; those of its interrupt are fault.c's. */
u32 chip_status_pbdma_reg(struct chip *chip, u32 pbdma, u32 reg)
{
	const struct chip_unit *unit = pbdma_unit(chip, pbdma);
	const struct chip_channel *channel = pbdma_channel(chip, pbdma);

	switch (reg) {
	case CHIP_PBDMA_GP_PUT:
		return channel ? channel->gp_put : 0;
	case CHIP_PBDMA_GP_GET:
		return channel ? channel->gp_get : 0;
	case CHIP_PBDMA_CHANNEL:
		return unit ? unit->channel : 0;
	default:
		return chip_pri_absent(chip, CHIP_PBDMA_REGS + CHIP_PBDMA_STRIDE * pbdma + reg);
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
