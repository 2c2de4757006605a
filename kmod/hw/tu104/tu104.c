// SPDX-License-Identifier: GPL-2.0
/*
 * tu104.c - the table of operations, and the one place that tells data from "the card is gone".
 *
 * Called through hw_ops by the scheduler's turn. Must not keep state: everything known about a
 * chip is in struct hw.
 */
#include "hw/tu104/tu104.h"

const struct hw_ops tu104_ops = {
	.probe = tu104_probe,
	.time_ns = tu104_time_ns,
	.slice_round = tu104_slice_round,
	.image_write = tu104_image_write,
	.submit = tu104_submit,
	.slot_check = tu104_slot_check,
	.preempt = tu104_preempt,
	.gate = tu104_gate,
	.status = tu104_status,
	.channel_work = tu104_channel_work,
};

int tu104_odd(struct hw *hw)
{
	/* A card that fell off the bus or was reset into another state answers differently here. */
	return hw_read(&hw->io, TU104_PMC_BOOT_0) == hw->id.boot0 ? -EIO : -ENODEV;
}

int tu104_read(struct hw *hw, u32 offset, u32 *value)
{
	*value = hw_read(&hw->io, offset);
	return hw_io_bad(*value) ? tu104_odd(hw) : 0;
}
