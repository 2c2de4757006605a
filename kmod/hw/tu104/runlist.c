// SPDX-License-Identifier: GPL-2.0
/*
 * runlist.c - put an image in a runlist's slot, and find out whether it is still there. Called by
 * the scheduler's turn, one caller a card. Beside another submitter nothing here is safe: base and
 * length are three writes, and two submitters pair one's base with the other's length.
 */
#include "hw/tu104/tu104.h"

#define FETCH_DEADLINE_NS 100000000ULL
/* Longer than a fetch takes: what is pending then may be pending for good. */
#define FETCH_LONG_NS 2000000ULL
#define POLL_FIRST_NS 2000ULL
#define POLL_MOST_NS 200000ULL

/*
 * A list that makes no sense stays pending for good; the next that does takes its place. Ours make
 * sense, but memory can fail, and a second submitter can pair our base with its own length.
 */
static bool is_malformed(struct hw *hw)
{
	u32 code, status;

	/* The code stays after its list is gone; a fetch that is under way may still be ours. */
	return !tu104_read(hw, TU104_SCHED_ERROR, &code) &&
	       tu104_get(code, TU104_SCHED_ERROR_CODE) == TU104_SCHED_ERROR_CODE_BAD_TSG &&
	       !tu104_read(hw, TU104_SCHED_STATUS, &status) &&
	       !(status & TU104_SCHED_STATUS_RUNLIST_FETCH);
}

/* -EILSEQ: what is pending makes no sense and will not be fetched. */
static int wait_not_pending(struct hw *hw, u32 runlist, bool *was_pending)
{
	u64 start_ns = hw_now_ns(&hw->io), now_ns = start_ns;
	u64 step_ns = POLL_FIRST_NS;
	u32 info;
	int err;

	*was_pending = false;
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
		*was_pending = true;
		if (now_ns >= start_ns + FETCH_LONG_NS && is_malformed(hw))
			return -EILSEQ;
		if (now_ns >= start_ns + FETCH_DEADLINE_NS)
			return -ETIMEDOUT;
		hw_wait_ns(&hw->io, step_ns);
		step_ns = min(2 * step_ns, POLL_MOST_NS);
		now_ns = hw_now_ns(&hw->io);
	}
}

/* What a slot's registers hold. */
struct slot {
	u32 base_lo, base_hi, submit;
};

static struct slot slot_of(const struct hw_mem *mem, u32 entries)
{
	return (struct slot){
		.base_lo = ((u32)mem->bus_addr & TU104_RUNLIST_BASE_LO_PTR_LO) |
			   tu104_put(mem->target, TU104_RUNLIST_BASE_LO_TARGET),
		.base_hi = tu104_put((u32)(mem->bus_addr >> 32), TU104_RUNLIST_BASE_HI_PTR_HI),
		.submit = tu104_put(entries, TU104_RUNLIST_SUBMIT_LENGTH),
	};
}

/* Did the registers take what was written? Without permission the card drops it in silence. */
static int check_written(struct hw *hw, u32 runlist, const struct slot *slot)
{
	if (hw_read(&hw->io, TU104_RUNLIST_SUBMIT(runlist)) != slot->submit)
		return tu104_odd(hw);
	if (slot->submit && hw_read(&hw->io, TU104_RUNLIST_BASE_LO(runlist)) != slot->base_lo)
		return tu104_odd(hw);
	return 0;
}

int tu104_slot_check(struct hw *hw, u32 runlist, const struct hw_mem *mem, u32 entries)
{
	const struct slot slot = slot_of(mem, entries);
	struct slot found;

	if (runlist >= TU104_RUNLISTS)
		return -EINVAL;
	found.submit = hw_read(&hw->io, TU104_RUNLIST_SUBMIT(runlist));
	/* An empty list has no address: whatever was there before still is. */
	if (found.submit == slot.submit && !entries)
		return 0;
	found.base_lo = hw_read(&hw->io, TU104_RUNLIST_BASE_LO(runlist));
	found.base_hi = hw_read(&hw->io, TU104_RUNLIST_BASE_HI(runlist));
	if (found.submit == slot.submit && found.base_lo == slot.base_lo &&
	    found.base_hi == slot.base_hi)
		return 0;
	/* Ours may look like a refusal, so that is asked after. */
	if (hw_io_bad(found.submit) || hw_io_bad(found.base_lo) || hw_io_bad(found.base_hi))
		return tu104_odd(hw);
	return found.submit || found.base_lo || found.base_hi ? -ESTALE : -ENODEV;
}

int tu104_submit(struct hw *hw, u32 runlist, const struct hw_mem *mem, u32 entries)
{
	const struct slot slot = slot_of(mem, entries);
	bool was_pending;
	int err;

	if (runlist >= TU104_RUNLISTS || entries > TU104_RUNLIST_SUBMIT_LENGTH ||
	    entries > mem->bytes / TU104_RAMRL_ENTRY_BYTES || mem->bus_addr & 0xfff ||
	    mem->bus_addr >> 40)
		return -EINVAL;

	err = wait_not_pending(hw, runlist, &was_pending);
	if (err && err != -EILSEQ)
		return err == -ETIMEDOUT ? -EBUSY : err;

	/* An empty list has no address; nvgpu leaves the base alone, so that is what is known to
	 * work. */
	if (entries) {
		hw->io.ops->flush(hw->io.ctx, mem);
		hw_write(&hw->io, TU104_RUNLIST_BASE_LO(runlist), slot.base_lo);
		hw_write(&hw->io, TU104_RUNLIST_BASE_HI(runlist), slot.base_hi);
	}
	hw_write(&hw->io, TU104_RUNLIST_SUBMIT(runlist), slot.submit);
	err = wait_not_pending(hw, runlist, &was_pending);
	if (err == -EILSEQ)
		err = -ETIMEDOUT;
	/* A fetch takes longer than a look: what never was pending may never have been heard. */
	if (!err && !was_pending)
		err = check_written(hw, runlist, &slot);
	return err;
}
