// SPDX-License-Identifier: GPL-2.0
/*
 * list.c - reads what entry.c writes: somebody's list in memory, entry by entry. Called when a card
 * is taken over beside a driver, to find channels that nobody told of.
 */
#include "hw/tu104/list.h"
#include "hw/tu104/tu104.h"

static int read_slot(struct hw *hw, u32 runlist, u32 *lo, u32 *hi, u32 *submit)
{
	int err = tu104_read(hw, TU104_RUNLIST_SUBMIT(runlist), submit);

	if (!err)
		err = tu104_read(hw, TU104_RUNLIST_BASE_LO(runlist), lo);
	if (!err)
		err = tu104_read(hw, TU104_RUNLIST_BASE_HI(runlist), hi);
	return err;
}

int tu104_list_find(struct hw *hw, u32 runlist, struct tu104_list *out)
{
	u32 lo, hi, submit, again_lo, again_hi, again_submit, info;
	int err;

	if (runlist >= TU104_RUNLISTS)
		return -EINVAL;
	err = read_slot(hw, runlist, &lo, &hi, &submit);
	if (!err)
		err = tu104_read(hw, TU104_RUNLIST_SUBMIT_INFO(runlist), &info);
	if (!err)
		err = read_slot(hw, runlist, &again_lo, &again_hi, &again_submit);
	if (err)
		return err;
	if (info & TU104_RUNLIST_SUBMIT_INFO_PENDING || lo != again_lo || hi != again_hi ||
	    submit != again_submit)
		return -EAGAIN;
	if (submit & TU104_RUNLIST_SUBMIT_OFFSET)
		return -EOPNOTSUPP;
	*out = (struct tu104_list){
		.addr = (lo & TU104_RUNLIST_BASE_LO_PTR_LO) |
			(u64)tu104_get(hi, TU104_RUNLIST_BASE_HI_PTR_HI) << 32,
		.target = tu104_get(lo, TU104_RUNLIST_BASE_LO_TARGET),
		.entries = tu104_get(submit, TU104_RUNLIST_SUBMIT_LENGTH),
	};
	return 0;
}

int tu104_list_await(struct hw *hw, u32 runlist, struct tu104_list *out)
{
	u32 tries;
	int err;

	/* TIMEOUT: a list is taken within tens of microseconds; ten looks of 50 us. */
	for (tries = 0; tries < 10; tries++) {
		err = tu104_list_find(hw, runlist, out);
		if (err != -EAGAIN)
			break;
		hw_wait_ns(&hw->io, 50000);
	}
	return err;
}

/* Little-endian words whatever the CPU is. */
static void get_words(const u8 *at, u32 *words)
{
	u32 i;

	memset(words, 0, TU104_RAMRL_ENTRY_BYTES);
	for (i = 0; i < TU104_RAMRL_ENTRY_BYTES; i++)
		words[i / 4] |= (u32)at[i] << (8 * (i % 4));
}

static int read_header(struct tu104_list_reader *reader, const u32 *words)
{
	if (reader->missing)
		return -EINVAL;
	reader->missing = tu104_get(words[1], TU104_RAMRL_TSG_1_LENGTH);
	reader->tsg_id = (u16)tu104_get(words[2], TU104_RAMRL_TSG_2_TSGID);
	return reader->missing && reader->missing <= HW_MAX_TSG_CHANNELS ? 0 : -EINVAL;
}

static int read_channel(struct tu104_list_reader *reader, const u32 *words)
{
	const struct hw_channel channel = {
		.id = (u16)tu104_get(words[2], TU104_RAMRL_CHAN_2_CHID),
		.runqueue = (u8)tu104_get(words[0], TU104_RAMRL_CHAN_0_RUNQUEUE_SELECTOR),
		.inst_target = (u8)tu104_get(words[0], TU104_RAMRL_CHAN_0_INST_TARGET),
		.userd_target = (u8)tu104_get(words[0], TU104_RAMRL_CHAN_0_USERD_TARGET),
		.inst_addr = (words[2] & TU104_RAMRL_CHAN_2_INST_PTR_LO) | (u64)words[3] << 32,
		.userd_addr = (words[0] & TU104_RAMRL_CHAN_0_USERD_PTR_LO) | (u64)words[1] << 32,
	};

	if (!reader->missing)
		return -EINVAL;
	reader->missing--;
	reader->channel(reader->ctx, reader->tsg_id, &channel);
	return 0;
}

int tu104_list_read(struct tu104_list_reader *reader, const void *entries, u32 count)
{
	u32 words[TU104_RAMRL_ENTRY_BYTES / sizeof(u32)], i;
	int err = 0;

	for (i = 0; i < count && !err; i++) {
		get_words((const u8 *)entries + i * TU104_RAMRL_ENTRY_BYTES, words);
		err = words[0] & TU104_RAMRL_TSG_0_TYPE_TSG ? read_header(reader, words) :
							      read_channel(reader, words);
	}
	return err;
}
