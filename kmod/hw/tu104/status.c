// SPDX-License-Identifier: GPL-2.0
/*
 * status.c - look at the card: its clock, who is on an engine, what a channel is doing. Reads
 * only, never sleeps: this is what the scheduler samples with.
 */
#include "hw/tu104/tu104.h"

int tu104_time_ns(struct hw *hw, u64 *time_ns)
{
	u32 high, low, again;
	int err;

	err = tu104_read(hw, TU104_PTIMER_TIME_1, &high);
	if (err)
		return err;
	/*
	 * TIME_0 is not checked for 0xBADxxxxx: that is data for 1 ms in every 4.3 s. TIME_1 lies
	 * in the same unit and has 29 bits, so it fails alike and can be told. TIMEOUT: one
	 * repetition, because TIME_1 changes every 4.3 s.
	 */
	low = hw_read(&hw->io, TU104_PTIMER_TIME_0);
	err = tu104_read(hw, TU104_PTIMER_TIME_1, &again);
	if (err)
		return err;
	if (again != high)
		low = hw_read(&hw->io, TU104_PTIMER_TIME_0);
	*time_ns = (u64)again << 32 | low;
	return 0;
}

static int decode(u32 status, struct hw_status *out)
{
	const u16 id = (u16)tu104_get(status, TU104_STATUS_ID);
	const u16 next_id = (u16)tu104_get(status, TU104_STATUS_NEXT_ID);

	out->state = HW_ENGINE_SWITCHING;
	out->tsg_id = HW_NO_ID;
	out->next_tsg_id = HW_NO_ID;
	switch (tu104_get(status, TU104_STATUS_CTX)) {
	case TU104_STATUS_CTX_INVALID:
		out->state = HW_ENGINE_EMPTY;
		return 0;
	case TU104_STATUS_CTX_VALID:
		out->state = tu104_get(status, TU104_ENGINE_STATUS_ENGINE) ==
					     TU104_ENGINE_STATUS_ENGINE_BUSY ?
				     HW_ENGINE_RUNNING :
				     HW_ENGINE_IDLE;
		out->tsg_id = id;
		return 0;
	case TU104_STATUS_CTX_SAVE:
		out->tsg_id = id;
		return 0;
	case TU104_STATUS_CTX_LOAD:
		out->next_tsg_id = next_id;
		return 0;
	case TU104_STATUS_CTX_SWITCH:
		out->tsg_id = id;
		out->next_tsg_id = next_id;
		return 0;
	default:
		return -EIO; /* 2, 3, 4 are not in the manual */
	}
}

static int read_engine(struct hw *hw, u32 engine_index, struct hw_status *out)
{
	u32 status, ignored;
	int err;

	status = hw_read(&hw->io, TU104_ENGINE_STATUS(engine_index));
	if (status == 0xffffffffu)
		return tu104_odd(hw);
	if (hw_io_bad(status)) {
		/* Also what a busy engine reads that reloads TSG 0xAD0 ... 0xADF: ask its
		 * neighbour, whose data never looks so. */
		err = tu104_read(hw, TU104_ENGINE_STATUS_DEBUG(engine_index), &ignored);
		if (err)
			return err;
	}
	return decode(status, out);
}

static u32 runlist_of(const struct hw *hw, u32 engine_index)
{
	u32 i;

	for (i = 0; i < hw->id.engine_count; i++)
		if (hw->id.engines[i].index == engine_index)
			return hw->id.engines[i].runlist;
	return HW_MAX_RUNLISTS;
}

/* Does an engine that shares the runlist of @engine_index work for @tsg_id? */
static int works_beside(struct hw *hw, u32 engine_index, u16 tsg_id, bool *works)
{
	const u32 runlist = runlist_of(hw, engine_index);
	const struct hw_engine *other;
	struct hw_status status;
	u32 i;
	int err;

	for (i = 0; i < hw->id.engine_count && !*works; i++) {
		other = &hw->id.engines[i];
		if (other->runlist != runlist || other->index == engine_index)
			continue;
		err = read_engine(hw, other->index, &status);
		if (err)
			return err;
		*works = status.state == HW_ENGINE_RUNNING && status.tsg_id == tsg_id;
	}
	return 0;
}

int tu104_status(struct hw *hw, u32 engine_index, struct hw_status *out)
{
	bool works = false;
	int err;

	if (engine_index >= TU104_ENGINES)
		return -EINVAL;
	err = read_engine(hw, engine_index, out);
	if (err || out->state != HW_ENGINE_IDLE)
		return err;
	/* Copies on a graphics copy engine use up the slice of their TSG and leave graphics idle.
	 */
	err = works_beside(hw, engine_index, out->tsg_id, &works);
	if (works)
		out->state = HW_ENGINE_RUNNING;
	return err;
}

static enum hw_channel_work channel_work(u32 channel)
{
	if (channel & (TU104_PCCSR_CHANNEL_PBDMA_FAULTED | TU104_PCCSR_CHANNEL_ENG_FAULTED))
		return HW_CHANNEL_FAULTED;
	if (!(channel & TU104_PCCSR_CHANNEL_ENABLE))
		return HW_CHANNEL_DISABLED;
	switch (tu104_get(channel, TU104_PCCSR_CHANNEL_STATUS)) {
	case TU104_PCCSR_CHANNEL_STATUS_IDLE:
		return HW_CHANNEL_QUIET;
	case TU104_PCCSR_CHANNEL_STATUS_ON_ENG:
	case TU104_PCCSR_CHANNEL_STATUS_ON_ENG_CTX_RELOAD:
		/* A context stays on the engine after its last work, until another one comes. */
		return channel & TU104_PCCSR_CHANNEL_BUSY ? HW_CHANNEL_HAS_WORK : HW_CHANNEL_QUIET;
	default:
		return HW_CHANNEL_HAS_WORK;
	}
}

int tu104_channel_work(struct hw *hw, u16 channel_id, u64 inst_addr, enum hw_channel_work *out)
{
	u32 inst, channel;
	int err;

	if (channel_id >= hw->id.channels)
		return -EINVAL;
	/* 0xADxxxxx000 in non-coherent memory makes INST look like a PRI error; CHANNEL, which
	 * never does, is in the same unit and tells for both. */
	inst = hw_read(&hw->io, TU104_PCCSR_CHANNEL_INST(channel_id));
	err = tu104_read(hw, TU104_PCCSR_CHANNEL(channel_id), &channel);
	if (err)
		return err;
	if (inst == 0xffffffffu)
		return tu104_odd(hw);
	if (!tu104_is_bound_to(inst, inst_addr))
		return -ESTALE;
	*out = channel_work(channel);
	return 0;
}
