// SPDX-License-Identifier: GPL-2.0
/*
 * channel.c - PCCSR and the doorbell: what is known of each channel, and how STATUS follows
 * from it (hardware page 2.2, 2.3, 10.2).
 *
 * The doorbell race. A ring marks the channel pending; GP_PUT is read when the channel's turn
 * comes, or, if it is on the PBDMA, when it has finished the entries it knew. A ring that comes
 * while it is there is therefore never lost. What is lost is a ring for a channel that is not
 * enabled at that moment, and a GP_PUT store without a ring after it.
 */
#include "chip_state.h"

#define READY_MASK                                                                                 \
	(CHIP_BOUND | CHIP_ENABLED | CHIP_PENDING | CHIP_PBDMA_FAULTED | CHIP_ENG_FAULTED)
#define READY (CHIP_BOUND | CHIP_ENABLED | CHIP_PENDING)

static const u8 status_codes[2][2][2][2] = {
	/* [on PBDMA][on engine][pending][reload] */
	{{{0x0, 0x0}, {0x1, 0x2}}, {{0x7, 0xc}, {0x9, 0xd}}},
	{{{0x5, 0xa}, {0x5, 0xa}}, {{0x6, 0xb}, {0x6, 0xb}}},
};

static bool facts_ready(u8 facts)
{
	return (facts & READY_MASK) == READY;
}

/* Every change of facts goes through here, because a runlist counts its ready channels. */
void chip_channel_change(struct chip *chip, u16 id, u8 set, u8 clear)
{
	struct chip_channel *channel = &chip->channels[id];
	const bool before = facts_ready(channel->facts);
	bool after;

	channel->facts = (u8)((channel->facts & ~clear) | set);
	after = facts_ready(channel->facts);
	if (before == after || channel->runlist == CHIP_NO_RUNLIST)
		return;
	if (after)
		chip->runlists[channel->runlist].ready[channel->tsg]++;
	else
		chip->runlists[channel->runlist].ready[channel->tsg]--;
}

void chip_channel_unlist(struct chip *chip, u16 id)
{
	struct chip_channel *channel = &chip->channels[id];

	if (channel->runlist == CHIP_NO_RUNLIST)
		return;
	if (facts_ready(channel->facts))
		chip->runlists[channel->runlist].ready[channel->tsg]--;
	channel->runlist = CHIP_NO_RUNLIST;
}

/* A channel listed twice belongs where it was listed last. */
void chip_channel_list(struct chip *chip, u16 id, u8 runlist, u16 tsg)
{
	struct chip_channel *channel = &chip->channels[id];

	chip_channel_unlist(chip, id);
	channel->runlist = runlist;
	channel->tsg = tsg;
	if (facts_ready(channel->facts))
		chip->runlists[runlist].ready[tsg]++;
}

bool chip_channel_ready(const struct chip_channel *channel)
{
	return channel->runlist != CHIP_NO_RUNLIST && facts_ready(channel->facts);
}

bool chip_channel_is_on_pbdma(const struct chip *chip, u16 id)
{
	const struct chip_unit *unit = &chip->units[chip->channels[id].loaded_unit];

	return unit->on_pbdma && unit->channel == id;
}

bool chip_channel_is_on_engine(const struct chip *chip, u16 id)
{
	const struct chip_channel *channel = &chip->channels[id];
	const struct chip_unit *unit = &chip->units[channel->loaded_unit];

	return unit->tsg != CHIP_NO_TSG && channel->loaded_generation &&
	       channel->loaded_generation == unit->generation;
}

static bool is_running(const struct chip *chip, u16 id)
{
	const struct chip_unit *unit = &chip->units[chip->channels[id].loaded_unit];

	return unit->running && unit->channel == id;
}

u32 chip_channel_read(struct chip *chip, u16 id)
{
	const struct chip_channel *channel = &chip->channels[id];
	const u8 facts = channel->facts;
	const bool on_pbdma = chip_channel_is_on_pbdma(chip, id);
	const bool on_engine = chip_channel_is_on_engine(chip, id);
	const bool pending = facts & CHIP_PENDING;
	const bool reload =
		(facts & CHIP_FORCE_RELOAD) || (channel->work.remaining_ns && !on_engine);
	u32 value = (u32)status_codes[on_pbdma][on_engine][pending][reload] << CHIP_CH_STATUS_SHIFT;

	if (facts & CHIP_ENABLED)
		value |= CHIP_CH_ENABLE;
	if (facts & CHIP_NEXT)
		value |= CHIP_CH_NEXT;
	if (facts & CHIP_PBDMA_FAULTED)
		value |= CHIP_CH_PBDMA_FAULTED;
	if (facts & CHIP_ENG_FAULTED)
		value |= CHIP_CH_ENG_FAULTED;
	if (on_pbdma || pending || is_running(chip, id))
		value |= CHIP_CH_BUSY;
	return value;
}

static void kick(struct chip *chip, u16 id)
{
	const u8 runlist = chip->channels[id].runlist;

	if (runlist != CHIP_NO_RUNLIST && chip_channel_ready(&chip->channels[id]))
		chip_engine_kick(chip, &chip->units[runlist]);
}

static u8 disabled_facts(const struct chip *chip)
{
	return (u8)(CHIP_ENABLED | (chip->cfg.sw.disable_keeps_pending ? 0 : CHIP_PENDING));
}

void chip_channel_write(struct chip *chip, u16 id, u32 value)
{
	u8 set = 0, clear = 0;

	if (value & CHIP_CH_NEXT)
		set |= CHIP_NEXT;
	else
		clear |= CHIP_NEXT;
	if (value & CHIP_CH_PBDMA_FAULTED)
		clear |= CHIP_PBDMA_FAULTED;
	if (value & CHIP_CH_ENG_FAULTED)
		clear |= CHIP_ENG_FAULTED;
	if (value & CHIP_CH_FORCE_PBDMA_FAULTED)
		set |= CHIP_PBDMA_FAULTED;
	if (value & CHIP_CH_FORCE_ENG_FAULTED)
		set |= CHIP_ENG_FAULTED;
	if (value & CHIP_CH_FORCE_RELOAD)
		set |= CHIP_FORCE_RELOAD;
	if (value & CHIP_CH_ENABLE_CLR)
		clear |= disabled_facts(chip);
	if (value & CHIP_CH_ENABLE_SET) {
		set |= CHIP_ENABLED;
		if (chip->cfg.sw.enable_sets_pending)
			set |= CHIP_PENDING;
	}
	chip_channel_change(chip, id, set, clear);
	kick(chip, id);
}

void chip_channel_write_inst(struct chip *chip, u16 id, u32 value)
{
	struct chip_channel *channel = &chip->channels[id];
	const u32 target = (value & CHIP_INST_TARGET) >> CHIP_INST_TARGET_SHIFT;

	value &= CHIP_INST_PTR | CHIP_INST_TARGET | CHIP_INST_BIND;
	if (value & CHIP_INST_BIND) {
		if (channel->facts & CHIP_BOUND) {
			chip_intr_bind_error(chip, CHIP_BIND_ERROR_BOUND);
			return;
		}
		if (target == 1) {
			chip_intr_bind_error(chip, CHIP_BIND_ERROR_TARGET);
			return;
		}
		memset(&channel->work, 0, sizeof(channel->work));
		channel->inst = value;
		chip_channel_change(chip, id, CHIP_BOUND, 0);
		kick(chip, id);
		return;
	}
	if ((channel->facts & CHIP_BOUND) &&
	    (chip_channel_is_on_pbdma(chip, id) || chip_channel_is_on_engine(chip, id))) {
		chip_intr_bind_error(chip, CHIP_BIND_ERROR_RUNNING);
		return;
	}
	memset(&channel->work, 0, sizeof(channel->work));
	channel->inst = value;
	chip_channel_change(chip, id, 0, CHIP_BOUND | CHIP_PENDING | CHIP_NEXT);
}

/* A token with anything wrong in it is ignored, as are all while the doorbells are off. */
void chip_channel_ring(struct chip *chip, u32 token)
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
	kick(chip, id);
}
