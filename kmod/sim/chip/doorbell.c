// SPDX-License-Identifier: GPL-2.0
/*
 * doorbell.c - what a ring does, and rings that take their time (hardware page 7.1, 10.2).
 *
 * The doorbell race. A ring marks the channel pending; GP_PUT is read when the channel's turn
 * comes, or, if it is on the PBDMA, when it has finished the entries it knew. A ring that comes
 * while it is there is therefore never lost. What is lost is a ring for a channel that is not
 * enabled at that moment, and a GP_PUT store without a ring after it.
 */
#include "chip_state.h"

/* A token with anything wrong in it is ignored, as are all while the doorbells are off. */
static void ring(struct chip *chip, u32 token)
{
	const u32 runlist = (token >> CHIP_DOORBELL_RUNLIST_SHIFT) & CHIP_DOORBELL_RUNLIST;
	const u16 id = token & CHIP_DOORBELL_CHANNEL;
	const struct chip_channel *channel = &chip->channels[id];

	if (!(chip->virtual_channel_cfg & CHIP_VIRTUAL_CHANNEL_CFG_ON))
		return;
	if (token & ~(CHIP_DOORBELL_CHANNEL | CHIP_DOORBELL_RUNLIST << CHIP_DOORBELL_RUNLIST_SHIFT))
		return;
	if (runlist >= chip_topology_runlist_count())
		return;
	chip->units[runlist].totals.doorbells++;
	if (channel->runlist != CHIP_NO_RUNLIST && channel->runlist != runlist)
		return;
	if (!(channel->facts & CHIP_BOUND))
		return;
	if (!(channel->facts & CHIP_ENABLED) && !chip->cfg.sw.doorbell_kept_when_disabled)
		return;
	chip_channel_change(chip, id, CHIP_PENDING, 0);
	chip_channel_kick(chip, id);
}

static void set_due(struct chip_doorbells *bells)
{
	bells->due_ns = bells->count ? bells->queue[bells->first].at_ns : CHIP_NEVER;
}

/* The first of those on their way is there. */
void chip_doorbell_arrive(struct chip *chip)
{
	struct chip_doorbells *bells = &chip->doorbells;
	const u32 token = bells->queue[bells->first].token;

	bells->first = (bells->first + 1) & (CHIP_DOORBELLS_LATE - 1);
	bells->count--;
	set_due(bells);
	ring(chip, token);
}

/* One after another: none overtakes another, and when the way is full the first arrives early. */
void chip_doorbell_ring(struct chip *chip, u32 token)
{
	struct chip_doorbells *bells = &chip->doorbells;
	u64 at_ns = chip_later(chip->now_ns, chip->trouble.doorbell_late_ns);
	u32 at;

	if (!chip->trouble.doorbell_late_ns && !bells->count) {
		ring(chip, token);
		return;
	}
	if (bells->count == CHIP_DOORBELLS_LATE)
		chip_doorbell_arrive(chip);
	if (bells->count) {
		at = (bells->first + bells->count - 1) & (CHIP_DOORBELLS_LATE - 1);
		at_ns = max(at_ns, bells->queue[at].at_ns);
	}
	at = (bells->first + bells->count) & (CHIP_DOORBELLS_LATE - 1);
	bells->queue[at].at_ns = at_ns;
	bells->queue[at].token = token;
	bells->count++;
	set_due(bells);
}
