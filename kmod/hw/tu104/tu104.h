/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tu104.h - what the files of this folder share. Outside it only tu104_ops (hw_ops.h) is used.
 */
#ifndef QGPU_TU104_H
#define QGPU_TU104_H

#include "hw/hw_ops.h"
#include "hw/tu104/regs.h"

/**
 * tu104_odd() - name the error behind a value that is not data
 * @hw: the chip; hw->id.boot0 is what PMC_BOOT_0 read at probe
 *
 * Return: -ENODEV when PMC_BOOT_0 no longer reads what it did, else -EIO.
 */
int tu104_odd(struct hw *hw);

/**
 * tu104_read() - a register whose data is never all ones or 0xBADxxxxx
 * @value: what was read, valid when 0 is returned
 *
 * Return: 0, -ENODEV or -EIO.
 */
int tu104_read(struct hw *hw, u32 offset, u32 *value);

/* Is a channel whose NV_PCCSR_CHANNEL_INST reads @inst the one of that instance block? */
static inline bool tu104_is_bound_to(u32 inst, u64 inst_addr)
{
	return inst & TU104_PCCSR_CHANNEL_INST_BIND &&
	       (u64)tu104_get(inst, TU104_PCCSR_CHANNEL_INST_PTR) << 12 == inst_addr;
}

/**
 * struct tu104_slice - a slice as a runlist entry holds it: (timeout << scale) units of 1024 ns
 */
struct tu104_slice {
	u32 timeout; /* 1 ... 255 */
	u32 scale;   /* 0 ... 15 */
};

/**
 * tu104_slice_encode() - the slice nearest to @slice_ns that an entry can hold
 *
 * With r = what comes back from tu104_slice_decode(), for every @slice_ns up to the maximum:
 *
 *   |r - slice_ns| <= 512 ns             below 256 units (262,144 ns), 1,024 ns for 0
 *   |r - slice_ns| <= slice_ns / 256     above
 *
 * since there the mantissa is at least 128 and is off by at most half. Beyond the maximum r is
 * the maximum. 0 is never written: the chip would take it for one unit, and so do we.
 *
 * Return: mantissa and scale.
 */
struct tu104_slice tu104_slice_encode(u64 slice_ns);

/**
 * tu104_slice_decode() - how long a slice is
 * Return: ns.
 */
u64 tu104_slice_decode(struct tu104_slice slice);

/* The operations; contracts in hw_ops.h. */
int tu104_probe(struct hw *hw);
int tu104_time_ns(struct hw *hw, u64 *time_ns);
u64 tu104_slice_round(u64 slice_ns);
int tu104_image_write(const struct hw_mem *mem, const struct hw_image_tsg *tsgs, u32 count,
		      u32 *entries_out);
int tu104_submit(struct hw *hw, u32 runlist, const struct hw_mem *mem, u32 entries);
int tu104_slot_check(struct hw *hw, u32 runlist, const struct hw_mem *mem, u32 entries);
int tu104_preempt(struct hw *hw, u32 engine_index, u16 tsg_id, u64 deadline_ns);
int tu104_gate(struct hw *hw, u32 runlist, const struct hw_channel *channel, enum hw_gate gate,
	       bool *changed);
int tu104_status(struct hw *hw, u32 engine_index, struct hw_status *out);
int tu104_channel_work(struct hw *hw, u16 channel_id, u64 inst_addr, enum hw_channel_work *out);

#endif
