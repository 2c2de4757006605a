// SPDX-License-Identifier: GPL-2.0
/*
 * preempt.c - take a TSG off the engine and off the PBDMAs that feed it. Called by the
 * scheduler's turn. Does not keep the TSG away: for that it must be outside the image in the slot.
 *
 * PREEMPT is one register for all runlists and all software. It is written only while PENDING
 * reads 0, so that another writer's request is not mixed with ours; the window that remains is one
 * register access, and a request that hits the wrong TSG costs that one a slice, no more.
 * Completion is read from the status registers: a PENDING of 0 is only a hint (hardware page 13).
 */
#include "hw/tu104/tu104.h"

#define POLL_FIRST_NS 2000ULL
#define POLL_MOST_NS 200000ULL

/* Is @tsg_id off the unit whose status word is @status? Table of the hardware page, 4.1. */
static bool off_unit(u32 status, u16 tsg_id)
{
	bool id = tu104_get(status, TU104_STATUS_ID) == tsg_id;
	bool next_id = tu104_get(status, TU104_STATUS_NEXT_ID) == tsg_id;

	switch (tu104_get(status, TU104_STATUS_CTX)) {
	case TU104_STATUS_CTX_INVALID:
		return true;
	case TU104_STATUS_CTX_VALID:
	case TU104_STATUS_CTX_SAVE:
		return !id;
	case TU104_STATUS_CTX_LOAD:
		return !next_id;
	case TU104_STATUS_CTX_SWITCH:
		return !id && !next_id;
	default:
		return false; /* 2, 3, 4 are not in the manual: wait */
	}
}

static int off_everywhere(struct hw *hw, u32 engine_index, u32 pbdmas, u16 tsg_id, bool *off)
{
	struct hw_status engine;
	u32 p, status;
	int err;

	*off = false;
	for (p = 0; p < TU104_PBDMAS; p++) {
		if (!(pbdmas & (1u << p)))
			continue;
		err = tu104_read(hw, TU104_PBDMA_STATUS(p), &status);
		if (err)
			return err;
		if (!off_unit(status, tsg_id))
			return 0;
	}
	err = tu104_status(hw, engine_index, &engine);
	if (err)
		return err;
	/* An engine that is still in SWITCH has not begun to save: then tsg_id and next_tsg_id are
	 * both set, and nothing is off (4.1). */
	if (engine.tsg_id != HW_NO_ID && engine.next_tsg_id != HW_NO_ID)
		return 0;
	*off = engine.tsg_id != tsg_id && engine.next_tsg_id != tsg_id;
	return 0;
}

static int pbdmas_of_engine(const struct hw *hw, u32 engine_index, u32 *pbdmas)
{
	u32 i;

	for (i = 0; i < hw->id.engine_count; i++) {
		if (hw->id.engines[i].index == engine_index) {
			*pbdmas = hw->id.pbdmas[hw->id.engines[i].runlist];
			return 0;
		}
	}
	return -EINVAL;
}

int tu104_preempt(struct hw *hw, u32 engine_index, u16 tsg_id, u64 deadline_ns)
{
	const u32 request = tu104_put(tsg_id, TU104_PREEMPT_ID) |
			    tu104_put(TU104_PREEMPT_TYPE_TSG, TU104_PREEMPT_TYPE);
	bool requested = false, expired = false, off;
	u64 start_ns = hw_now_ns(&hw->io);
	u32 pbdmas, word;
	u64 now_ns;
	int err;

	err = pbdmas_of_engine(hw, engine_index, &pbdmas);
	if (err || tsg_id >= TU104_TSGS)
		return -EINVAL;

	/*
	 * TIMEOUT: the caller's deadline, because only it knows what the work on the engine may
	 * take: a context that saves takes about 50 us, one that cannot be cut as long as its
	 * kernel.
	 */
	for (;;) {
		err = off_everywhere(hw, engine_index, pbdmas, tsg_id, &off);
		if (err || off)
			return err;
		if (!requested) {
			err = tu104_read(hw, TU104_PREEMPT, &word);
			if (err)
				return err;
			/* The same request may be pending since an earlier call that gave up. */
			requested = word & TU104_PREEMPT_PENDING &&
				    (word & (TU104_PREEMPT_ID | TU104_PREEMPT_TYPE)) == request;
			if (!(word & TU104_PREEMPT_PENDING)) {
				hw_write(&hw->io, TU104_PREEMPT, request);
				requested = true;
			}
		}
		if (expired)
			return -EBUSY;
		/* Steps grow with the time already spent: the edge is known to 1/8 of it. */
		now_ns = hw_now_ns(&hw->io);
		hw_wait_ns(&hw->io, clamp((now_ns - start_ns) / 8, POLL_FIRST_NS, POLL_MOST_NS));
		expired = hw_now_ns(&hw->io) >= deadline_ns;
	}
}
