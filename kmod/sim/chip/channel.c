// SPDX-License-Identifier: GPL-2.0
/*
 * channel.c - PCCSR: what is known of each channel, and how STATUS follows
 * from it (hardware page 2.2, 2.3, 10.2).
 */
#include "chip_state.h"

#define READY_MASK                                                                                 \
	(CHIP_BOUND | CHIP_ENABLED | CHIP_PENDING | CHIP_PBDMA_FAULTED | CHIP_ENG_FAULTED)
#define READY (CHIP_BOUND | CHIP_ENABLED | CHIP_PENDING)
#define FAULTED (CHIP_PBDMA_FAULTED | CHIP_ENG_FAULTED)

static const u8 status_codes[2][2][2][2] = {
	/* [on PBDMA][on engine][pending][reload] */
	{{{0x0, 0x0}, {0x1, 0x2}}, {{0x7, 0xc}, {0x9, 0xd}}},
	{{{0x5, 0xa}, {0x5, 0xa}}, {{0x6, 0xb}, {0x6, 0xb}}},
};

static bool facts_ready(u8 facts)
{
	return (facts & READY_MASK) == READY;
}

/* Count a listed channel in (1) or out (-1) of its TSG's sums. */
static void count(struct chip *chip, const struct chip_channel *channel, int by)
{
	struct chip_runlist *rl;

	if (channel->runlist == CHIP_NO_RUNLIST)
		return;
	rl = &chip->runlists[channel->runlist];
	rl->tsgs[channel->tsg].ready += facts_ready(channel->facts) ? by : 0;
	rl->tsgs[channel->tsg].faulted += channel->facts & FAULTED ? by : 0;
}

/* Every change of facts goes through here, because a runlist counts what its TSGs have. */
void chip_channel_change(struct chip *chip, u16 id, u8 set, u8 clear)
{
	struct chip_channel *channel = &chip->channels[id];
	const u8 facts = (u8)((channel->facts & ~clear) | set);

	if (facts == channel->facts)
		return;
	count(chip, channel, -1);
	channel->facts = facts;
	count(chip, channel, 1);
}

void chip_channel_unlist(struct chip *chip, u16 id)
{
	struct chip_channel *channel = &chip->channels[id];

	if (channel->runlist == CHIP_NO_RUNLIST)
		return;
	count(chip, channel, -1);
	channel->runlist = CHIP_NO_RUNLIST;
}

/* A channel listed twice belongs where it was listed last. */
void chip_channel_list(struct chip *chip, u16 id, u8 runlist, u16 tsg)
{
	struct chip_channel *channel = &chip->channels[id];

	chip_channel_unlist(chip, id);
	channel->runlist = runlist;
	channel->tsg = tsg;
	count(chip, channel, 1);
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

/* It may have become serviceable. */
void chip_channel_kick(struct chip *chip, u16 id)
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
	if (clear & ~set & CHIP_ENG_FAULTED)
		chip_fault_cleared(chip, id);
	chip_channel_kick(chip, id);
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
		chip_channel_kick(chip, id);
		return;
	}
	if ((channel->facts & CHIP_BOUND) &&
	    (chip_channel_is_on_pbdma(chip, id) || chip_channel_is_on_engine(chip, id))) {
		chip_intr_bind_error(chip, CHIP_BIND_ERROR_RUNNING);
		return;
	}
	memset(&channel->work, 0, sizeof(channel->work));
	channel->pbdma_error = 0;
	channel->inst = value;
	chip_channel_change(chip, id, 0, CHIP_BOUND | CHIP_PENDING | CHIP_NEXT);
}
