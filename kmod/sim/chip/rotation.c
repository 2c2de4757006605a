// SPDX-License-Identifier: GPL-2.0
/*
 * rotation.c - whose turn it is: the next TSG of a runlist, the next channel of a TSG
 * (hardware page 10.3).
 *
 * TSGs are visited in list order from after the last visit, wrapping. Channels of a TSG take
 * turns kernel by kernel, at no cost: on hardware their kernels overlap on the engine, here they
 * follow each other. NEXT marks the channel at which a TSG that lost the engine goes on.
 */
#include "chip_state.h"

static const struct chip_visit *visit_of(const struct chip *chip, const struct chip_unit *unit,
					 u32 visit)
{
	return &chip->runlists[unit->runlist].visits[visit];
}

u16 chip_rotation_channel(const struct chip_runlist *rl, u32 entry)
{
	return rl->channels[entry] & (CHIP_CHANNELS - 1);
}

static u32 entry_of(const struct chip *chip, const struct chip_unit *unit, u32 slot)
{
	return visit_of(chip, unit, unit->visit)->entry + 1 + slot;
}

static u16 channel_of(const struct chip *chip, const struct chip_unit *unit, u32 slot)
{
	return chip_rotation_channel(&chip->runlists[unit->runlist], entry_of(chip, unit, slot));
}

/* A selector beyond the PBDMAs of the runlist is taken as 0. */
static u8 runqueue_of(const struct chip *chip, const struct chip_unit *unit, u32 slot)
{
	const u16 word = chip->runlists[unit->runlist].channels[entry_of(chip, unit, slot)];

	return (word & CHIP_RUNQUEUE_BIT) && chip_topology_runqueues(unit) > 1;
}

/* A channel of it has a fault. */
static bool is_held(const struct chip *chip, const struct chip_unit *unit, u16 tsg)
{
	return chip->runlists[unit->runlist].tsgs[tsg].faulted &&
	       !chip->cfg.sw.fault_holds_channel_only;
}

/* The TSG that runs counts as long as its channel on the PBDMA may go on. */
static bool current_goes_on(const struct chip *chip, const struct chip_unit *unit)
{
	const u8 facts = chip->channels[unit->channel].facts;

	return unit->stage == CHIP_RUN && (facts & CHIP_ENABLED) &&
	       !(facts & (CHIP_PBDMA_FAULTED | CHIP_ENG_FAULTED)) &&
	       (unit->running || chip_pbdma_has_more(chip, unit));
}

bool chip_rotation_serviceable(const struct chip *chip, const struct chip_unit *unit, u32 visit)
{
	const u16 tsg = visit_of(chip, unit, visit)->tsg;

	return !is_held(chip, unit, tsg) && (chip->runlists[unit->runlist].tsgs[tsg].ready ||
					     (tsg == unit->tsg && current_goes_on(chip, unit)));
}

/* Return: the visit whose turn it is, CHIP_NONE when no TSG has anything to do. */
u32 chip_rotation_scan(struct chip *chip, struct chip_unit *unit)
{
	struct chip_runlist *rl = &chip->runlists[unit->runlist];
	u32 visit = unit->scan_from;
	u32 seen;

	for (seen = 0; seen < rl->visit_count; seen++, visit++) {
		if (visit >= rl->visit_count) {
			visit = 0;
			if (chip_runlist_reread(chip, unit->runlist)) {
				unit->visit = chip_runlist_find_tsg(rl, unit->tsg);
				unit->slot = 0;
				seen = 0;
				if (!rl->visit_count)
					break;
			}
		}
		if (chip_rotation_serviceable(chip, unit, visit))
			return visit;
	}
	return CHIP_NONE;
}

/* A channel whose work another unit still holds cannot be taken; its turn is used up. */
static bool is_elsewhere(const struct chip *chip, const struct chip_unit *unit, u16 id)
{
	const struct chip_unit *other = &chip->units[chip->channels[id].loaded_unit];

	return other != unit && other->channel == id && (other->on_pbdma || other->running);
}

/* Put the channel on the PBDMA if it is its turn. Return: whether it has something to run. */
static bool try_channel(struct chip *chip, struct chip_unit *unit, u32 slot)
{
	const u16 id = channel_of(chip, unit, slot);
	const struct chip_channel *channel = &chip->channels[id];

	if (!chip_channel_ready(channel) || is_held(chip, unit, channel->tsg) ||
	    chip_fault_frozen(chip, unit))
		return false;
	if (channel->runlist != unit->runlist || is_elsewhere(chip, unit, id)) {
		chip_channel_change(chip, id, 0, CHIP_PENDING);
		return false;
	}
	chip_pbdma_save(chip, unit);
	unit->runqueue = runqueue_of(chip, unit, slot);
	chip_pbdma_load(chip, unit, id);
	unit->slot = slot;
	return chip_pbdma_fetch(chip, unit);
}

/* First channel of a visit: the one marked NEXT, else in list order. Return: whether found. */
bool chip_rotation_pick_first(struct chip *chip, struct chip_unit *unit)
{
	const u32 count = visit_of(chip, unit, unit->visit)->channels;
	u32 slot;

	for (slot = 0; slot < count; slot++)
		if ((chip->channels[channel_of(chip, unit, slot)].facts & CHIP_NEXT) &&
		    try_channel(chip, unit, slot))
			return true;
	for (slot = 0; slot < count; slot++)
		if (try_channel(chip, unit, slot))
			return true;
	return false;
}

/* Next channel of the running TSG, the current one last. Return: whether there is work. */
bool chip_rotation_pick_next(struct chip *chip, struct chip_unit *unit)
{
	u32 count = 0, slot = unit->slot, i;

	if (unit->visit != CHIP_NONE)
		count = visit_of(chip, unit, unit->visit)->channels;
	for (i = 0; i < count; i++) {
		slot = slot + 1 < count ? slot + 1 : 0;
		if (channel_of(chip, unit, slot) == unit->channel)
			continue;
		if (try_channel(chip, unit, slot))
			return true;
	}
	return unit->on_pbdma && chip_pbdma_fetch(chip, unit);
}
