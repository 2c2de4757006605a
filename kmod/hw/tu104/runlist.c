// SPDX-License-Identifier: GPL-2.0
/*
 * runlist.c - put an image in a runlist's slot. Called by the scheduler's turn, one caller a card.
 * Must not be used beside another submitter: base and length are three writes, and two submitters
 * would pair one's base with the other's length.
 */
#include "hw/tu104/tu104.h"

#define FETCH_DEADLINE_NS 100000000ULL
#define POLL_FIRST_NS 2000ULL
#define POLL_MOST_NS 200000ULL

static int wait_not_pending(struct hw *hw, u32 runlist, int late)
{
	u64 deadline_ns = hw_now_ns(&hw->io) + FETCH_DEADLINE_NS;
	u64 step_ns = POLL_FIRST_NS;
	bool expired = false;
	u32 info;
	int err;

	/*
	 * TIMEOUT: 100 ms, because a fetch takes tens of us (nvgpu polls from 10 us on and gives
	 * up after 3 s) and the caller holds the card's lock, for which that is the bound.
	 */
	for (;;) {
		err = tu104_read(hw, TU104_RUNLIST_SUBMIT_INFO(runlist), &info);
		if (err)
			return err;
		if (!(info & TU104_RUNLIST_SUBMIT_INFO_PENDING))
			return 0;
		if (expired)
			return late;
		hw_wait_ns(&hw->io, step_ns);
		step_ns = min(2 * step_ns, POLL_MOST_NS);
		expired = hw_now_ns(&hw->io) >= deadline_ns;
	}
}

int tu104_submit(struct hw *hw, u32 runlist, const struct hw_mem *mem, u32 entries)
{
	int err;

	if (runlist >= TU104_RUNLISTS || entries > TU104_RUNLIST_SUBMIT_LENGTH ||
	    entries > mem->bytes / TU104_RAMRL_ENTRY_BYTES || mem->bus_addr & 0xfff ||
	    mem->bus_addr >> 40)
		return -EINVAL;

	err = wait_not_pending(hw, runlist, -EBUSY);
	if (err)
		return err;

	/* An empty list has no address; nvgpu leaves the base alone, so that is what is known to
	 * work. */
	if (entries) {
		hw->io.ops->flush(hw->io.ctx, mem);
		hw_write(&hw->io, TU104_RUNLIST_BASE_LO(runlist),
			 ((u32)mem->bus_addr & TU104_RUNLIST_BASE_LO_PTR_LO) |
				 tu104_put(mem->target, TU104_RUNLIST_BASE_LO_TARGET));
		hw_write(&hw->io, TU104_RUNLIST_BASE_HI(runlist),
			 tu104_put((u32)(mem->bus_addr >> 32), TU104_RUNLIST_BASE_HI_PTR_HI));
	}
	hw_write(&hw->io, TU104_RUNLIST_SUBMIT(runlist),
		 tu104_put(entries, TU104_RUNLIST_SUBMIT_LENGTH));
	return wait_not_pending(hw, runlist, -ETIMEDOUT);
}
