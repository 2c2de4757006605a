// SPDX-License-Identifier: GPL-2.0
/*
 * timer.c - PTIMER: nanoseconds in steps of 32. Read by mmio.c at its own addresses and as
 * copies in the usermode page. Writes are dropped: setting the clock is the driver's business
 * at its load, and the model's offset is set once at creation.
 */
#include "chip_state.h"

static u64 ptimer_ns(const struct chip *chip)
{
	return chip->now_ns + chip->cfg.ptimer_offset_ns;
}

u32 chip_timer_low(const struct chip *chip)
{
	return (u32)ptimer_ns(chip) & CHIP_TIME_0_BITS;
}

u32 chip_timer_high(const struct chip *chip)
{
	return (u32)(ptimer_ns(chip) >> 32) & CHIP_TIME_1_BITS;
}
