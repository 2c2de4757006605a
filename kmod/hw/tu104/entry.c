// SPDX-License-Identifier: GPL-2.0
/*
 * entry.c - runlist entries in memory: slices as mantissa and scale, headers and channels. The
 * only place in the kernel where a time changes its unit (ns -> 1024 ns << scale). Pure: writes
 * to the buffer it is given and to nothing else.
 */
#include "hw/tu104/tu104.h"

#define SLICE_MAX_NS ((u64)TU104_SLICE_UNIT_NS * TU104_SLICE_TIMEOUT_MAX << TU104_SLICE_SCALE_MAX)
#define UNIT_SHIFT 10 /* log2 of TU104_SLICE_UNIT_NS */

struct tu104_slice tu104_slice_encode(u64 slice_ns)
{
	struct tu104_slice out = { TU104_SLICE_TIMEOUT_MAX, TU104_SLICE_SCALE_MAX };
	u32 scale;
	u64 timeout;

	if (slice_ns >= SLICE_MAX_NS)
		return out;
	/* The smallest scale whose rounded mantissa fits is the most precise. 256 does not fit, but
	 * is 128 at the next scale: nothing is lost there. */
	for (scale = 0; scale <= TU104_SLICE_SCALE_MAX; scale++) {
		timeout = (slice_ns + (1ULL << (UNIT_SHIFT + scale - 1))) >> (UNIT_SHIFT + scale);
		if (timeout <= TU104_SLICE_TIMEOUT_MAX)
			break;
	}
	if (scale <= TU104_SLICE_SCALE_MAX) {
		out.timeout = timeout ? (u32)timeout : 1;
		out.scale = scale;
	}
	return out;
}

u64 tu104_slice_decode(struct tu104_slice slice)
{
	return (u64)TU104_SLICE_UNIT_NS * slice.timeout << slice.scale;
}

u64 tu104_slice_round(u64 slice_ns)
{
	return tu104_slice_decode(tu104_slice_encode(slice_ns));
}

/* The card reads little-endian words whatever the CPU is. */
static u8 *put_words(u8 *at, u32 w0, u32 w1, u32 w2, u32 w3)
{
	const u32 words[4] = { w0, w1, w2, w3 };
	u32 i;

	for (i = 0; i < TU104_RAMRL_ENTRY_BYTES; i++)
		at[i] = (u8)(words[i / 4] >> (8 * (i % 4)));
	return at + TU104_RAMRL_ENTRY_BYTES;
}

static u8 *put_header(u8 *at, const struct hw_image_tsg *tsg)
{
	struct tu104_slice slice = tu104_slice_encode(tsg->slice_ns);

	return put_words(at,
			 TU104_RAMRL_TSG_0_TYPE_TSG |
				 tu104_put(slice.scale, TU104_RAMRL_TSG_0_TIMESLICE_SCALE) |
				 tu104_put(slice.timeout, TU104_RAMRL_TSG_0_TIMESLICE_TIMEOUT),
			 tu104_put(tsg->channel_count, TU104_RAMRL_TSG_1_LENGTH),
			 tu104_put(tsg->tsg_id, TU104_RAMRL_TSG_2_TSGID), 0);
}

static u8 *put_channel(u8 *at, const struct hw_channel *ch)
{
	return put_words(at,
			 tu104_put(ch->runqueue, TU104_RAMRL_CHAN_0_RUNQUEUE_SELECTOR) |
				 tu104_put(ch->inst_target, TU104_RAMRL_CHAN_0_INST_TARGET) |
				 tu104_put(ch->userd_target, TU104_RAMRL_CHAN_0_USERD_TARGET) |
				 ((u32)ch->userd_addr & TU104_RAMRL_CHAN_0_USERD_PTR_LO),
			 (u32)(ch->userd_addr >> 32),
			 tu104_put(ch->id, TU104_RAMRL_CHAN_2_CHID) |
				 ((u32)ch->inst_addr & TU104_RAMRL_CHAN_2_INST_PTR_LO),
			 (u32)(ch->inst_addr >> 32));
}

static int check_tsg(const struct hw_image_tsg *tsg)
{
	u32 i;

	if (!tsg->channel_count || tsg->channel_count > HW_MAX_TSG_CHANNELS ||
	    tsg->tsg_id >= TU104_TSGS)
		return -EINVAL;
	for (i = 0; i < tsg->channel_count; i++) {
		const struct hw_channel *ch = &tsg->channels[i];

		if (ch->id >= TU104_CHANNELS || ch->runqueue > 1 || ch->inst_target > 3 ||
		    ch->userd_target > 3 || ch->inst_addr & 0xfff || ch->userd_addr & 0x1ff)
			return -EINVAL;
	}
	return 0;
}

int tu104_image_write(const struct hw_mem *mem, const struct hw_image_tsg *tsgs, u32 count,
		      u32 *entries_out)
{
	u32 room = min(mem->bytes / TU104_RAMRL_ENTRY_BYTES, TU104_RUNLIST_SUBMIT_LENGTH);
	u8 *at = mem->cpu;
	u32 i, c;
	int err;

	for (i = 0; i < count; i++) {
		err = check_tsg(&tsgs[i]);
		if (err)
			return err;
		if (room < 1u + tsgs[i].channel_count)
			return -ENOSPC;
		room -= 1u + tsgs[i].channel_count;
		at = put_header(at, &tsgs[i]);
		for (c = 0; c < tsgs[i].channel_count; c++)
			at = put_channel(at, &tsgs[i].channels[c]);
	}
	*entries_out = (u32)((at - (u8 *)mem->cpu) / TU104_RAMRL_ENTRY_BYTES);
	return 0;
}
