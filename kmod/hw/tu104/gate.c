// SPDX-License-Identifier: GPL-2.0
/*
 * gate.c - keep the host from picking a channel, and let it again. Called by the scheduler's turn
 * where the driver's own list stays in the slot. What is on the engine is preempt.c's to take off.
 *
 * A channel is the one that was meant if its instance block is: ids are used again at once. The
 * word is written as it was read but for the fault bits, which writing would clear, so that only
 * NEXT survives (hardware page 2.2); a channel that faulted is the driver's to recover and is not
 * touched.
 */
#include "hw/tu104/tu104.h"

static int read_channel(struct hw *hw, const struct hw_channel *channel, u32 *word)
{
	u32 inst;
	int err;

	if (channel->id >= hw->id.channels)
		return -EINVAL;
	/* INST may look like a refusal, CHANNEL tells for both (status.c). */
	inst = hw_read(&hw->io, TU104_PCCSR_CHANNEL_INST(channel->id));
	err = tu104_read(hw, TU104_PCCSR_CHANNEL(channel->id), word);
	if (err)
		return err;
	if (inst == 0xffffffffu)
		return tu104_odd(hw);
	return tu104_is_bound_to(inst, channel->inst_addr) ? 0 : -ESTALE;
}

static void ring(struct hw *hw, u32 runlist, u16 channel_id)
{
	hw_write(&hw->io, TU104_DOORBELL,
		 tu104_put(channel_id, TU104_DOORBELL_CHANNEL) |
			 tu104_put(runlist, TU104_DOORBELL_RUNLIST));
}

static void set_enable(struct hw *hw, u16 channel_id, u32 word, u32 set_or_clr)
{
	hw_write(&hw->io, TU104_PCCSR_CHANNEL(channel_id),
		 (word & TU104_PCCSR_CHANNEL_NEXT) | set_or_clr);
}

/* Nobody would notice a channel that stays disabled because the card dropped the store. */
static int open_channel(struct hw *hw, u16 id, u32 word)
{
	int err;

	set_enable(hw, id, word, TU104_PCCSR_CHANNEL_ENABLE_SET);
	err = tu104_read(hw, TU104_PCCSR_CHANNEL(id), &word);
	if (!err && !(word & TU104_PCCSR_CHANNEL_ENABLE))
		err = -EIO;
	return err;
}

int tu104_gate(struct hw *hw, u32 runlist, const struct hw_channel *channel, enum hw_gate gate,
	       bool *changed)
{
	bool enabled;
	u32 word;
	int err;

	*changed = false;
	err = read_channel(hw, channel, &word);
	if (err)
		return err;
	if (word & (TU104_PCCSR_CHANNEL_PBDMA_FAULTED | TU104_PCCSR_CHANNEL_ENG_FAULTED))
		return 0;
	enabled = word & TU104_PCCSR_CHANNEL_ENABLE;
	if (gate == HW_GATE_CLOSE) {
		*changed = enabled;
		if (enabled)
			set_enable(hw, channel->id, word, TU104_PCCSR_CHANNEL_ENABLE_CLR);
		return 0;
	}
	if (gate == HW_GATE_OPEN && !enabled) {
		err = open_channel(hw, channel->id, word);
		if (err)
			return err;
		*changed = true;
	}
	/* A ring while it was closed may be lost; one too many costs a visit. */
	if (enabled || *changed)
		ring(hw, runlist, channel->id);
	return 0;
}
