// SPDX-License-Identifier: GPL-2.0
/*
 * fault.c - work that fails, and what a driver's recovery does about it (hardware page 4.1, 8.4,
 * 10.4, 10.6).
 *
 * - Graphics: the engine stands still. The PBDMA can leave, the engine's save waits until the fault
 *   is cleared (ENG_FAULTED, write one) or the engine reset; an exception, until it is reset.
 * - A copy, or the PBDMA at a page: the channel leaves the PBDMA by itself, at its own time.
 * - Any bit in a PBDMA's INTR_0: it fetches nothing and lets no channel go until that is cleared.
 *   A real error comes back as soon as the PBDMA goes on with that channel.
 * - A TSG with a faulted channel is not scheduled.
 */
#include "chip_state.h"

static u32 pbdma_of(const struct chip_unit *unit)
{
	return unit->pbdma + unit->runqueue;
}

bool chip_fault_frozen(const struct chip *chip, const struct chip_unit *unit)
{
	return chip->pbdma_intr[pbdma_of(unit)] != 0;
}

/* From wherever the unit is, without its channel: the save of the PBDMA, or straight on. */
static void go_on_without(struct chip *chip, struct chip_unit *unit)
{
	if (unit->stage == CHIP_RUN) {
		chip_engine_cancel_target(unit);
		chip_engine_leave(chip, unit);
	} else if (unit->stage == CHIP_REST || unit->stage == CHIP_DRAIN) {
		chip_engine_proceed(chip, unit);
	}
}

void chip_fault_engine(struct chip *chip, struct chip_unit *unit, enum chip_engine_fault fault)
{
	chip_work_account(chip, unit);
	if (unit->running)
		chip_work_stop(chip, unit);
	chip_channel_change(chip, unit->channel, CHIP_ENG_FAULTED, 0);
	if (unit->runlist || unit->grce)
		go_on_without(chip, unit);
	else
		unit->engine_fault = fault;
	chip_engine_arm(chip, unit);
}

void chip_fault_pbdma_page(struct chip *chip, struct chip_unit *unit)
{
	chip_channel_change(chip, unit->channel, CHIP_PBDMA_FAULTED, 0);
	if (unit->stage == CHIP_RUN)
		go_on_without(chip, unit);
	chip_engine_arm(chip, unit);
}

void chip_fault_pbdma(struct chip *chip, struct chip_unit *unit, u32 bits)
{
	chip->pbdma_intr[pbdma_of(unit)] |= bits;
}

/* ENG_FAULTED of the channel was cleared: its page fault is dealt with. */
void chip_fault_cleared(struct chip *chip, u16 id)
{
	struct chip_unit *unit = &chip->units[chip->channels[id].loaded_unit];

	if (unit->channel != id || unit->engine_fault != CHIP_ENGINE_PAGE)
		return;
	chip_work_account(chip, unit);
	unit->engine_fault = CHIP_ENGINE_SOUND;
	chip_engine_release(chip, unit);
}

u32 chip_fault_pbdma_mask(const struct chip *chip)
{
	u32 mask = 0, p;

	for (p = 0; p < CHIP_PBDMAS; p++)
		if (chip->pbdma_intr[p])
			mask |= 1u << p;
	return mask;
}

/* PMC_INTR bits of the engines that wait to be dealt with. */
u32 chip_fault_engine_mask(const struct chip *chip)
{
	u32 mask = 0, i;

	for (i = 0; i < CHIP_RUNLISTS; i++)
		if (chip->units[i].engine_fault == CHIP_ENGINE_EXCEPTION)
			mask |= chip_topology_intr_bit(chip->units[i].engine);
	return mask;
}

u32 chip_fault_pbdma_read(const struct chip *chip, u32 pbdma, u32 reg)
{
	switch (reg) {
	case CHIP_PBDMA_INTR_0:
		return chip->pbdma_intr[pbdma];
	case CHIP_PBDMA_INTR_EN_0:
		return chip->pbdma_intr_en[pbdma][0];
	case CHIP_PBDMA_INTR_EN_1:
		return chip->pbdma_intr_en[pbdma][1];
	default:
		return 0;
	}
}

static void clear_pbdma(struct chip *chip, u32 pbdma, u32 bits)
{
	struct chip_unit *unit = chip_topology_pbdma_unit(chip, pbdma);

	if (!(chip->pbdma_intr[pbdma] & bits))
		return;
	chip->pbdma_intr[pbdma] &= ~bits;
	if (chip->pbdma_intr[pbdma] || !unit || pbdma_of(unit) != pbdma)
		return;
	chip_work_account(chip, unit);
	if (unit->stage == CHIP_PBDMA_SAVE)
		chip_work_cut(chip, unit);
	chip_engine_release(chip, unit);
}

void chip_fault_pbdma_write(struct chip *chip, u32 pbdma, u32 reg, u32 value)
{
	switch (reg) {
	case CHIP_PBDMA_INTR_0:
		clear_pbdma(chip, pbdma, value);
		break;
	case CHIP_PBDMA_INTR_EN_0:
		chip->pbdma_intr_en[pbdma][0] = value;
		break;
	case CHIP_PBDMA_INTR_EN_1:
		chip->pbdma_intr_en[pbdma][1] = value;
		break;
	default:
		break;
	}
}

static int fail_on_pbdma(struct chip *chip, struct chip_unit *unit, enum chip_fault fault)
{
	struct chip_channel *channel = &chip->channels[unit->channel];

	if (!unit->on_pbdma)
		return -ENOENT;
	if (fault == CHIP_FAULT_PBDMA_PAGE) {
		chip_fault_pbdma_page(chip, unit);
	} else {
		channel->pbdma_error |= CHIP_PBDMA_METHOD;
		chip_fault_pbdma(chip, unit, CHIP_PBDMA_METHOD);
	}
	return 0;
}

int chip_fault(struct chip *chip, u64 now_ns, u16 channel_id, enum chip_fault fault)
{
	const u16 id = channel_id & (CHIP_CHANNELS - 1);
	struct chip_unit *unit;

	chip_advance(chip, now_ns);
	unit = &chip->units[chip->channels[id].loaded_unit];
	if (unit->channel != id)
		return -ENOENT;
	chip_work_account(chip, unit);
	switch (fault) {
	case CHIP_FAULT_PAGE:
	case CHIP_FAULT_EXCEPTION:
		if (!unit->running)
			return -ENOENT;
		chip_fault_engine(chip, unit,
				  fault == CHIP_FAULT_PAGE ? CHIP_ENGINE_PAGE :
							     CHIP_ENGINE_EXCEPTION);
		return 0;
	case CHIP_FAULT_PBDMA_PAGE:
	case CHIP_FAULT_METHOD:
		return fail_on_pbdma(chip, unit, fault);
	}
	return -ENOENT;
}
