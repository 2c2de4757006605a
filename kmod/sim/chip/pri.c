// SPDX-License-Identifier: GPL-2.0
/*
 * pri.c - whether a register access arrives at all: a card that is gone reads all ones, a range
 * that refuses and a register that is not there give a PRI error (hardware page 7.4, 10.7). What
 * arrives is mmio.c's.
 */
#include "chip_state.h"

#define CODE_REFUSED 0xbadf1000u
#define PFIFO 0x002000u
#define PFIFO_BYTES 0x002000u

static u32 fail(struct chip *chip, u32 offset, u32 data, u32 flags, u32 code)
{
	chip->pri_address = CHIP_PRI_ADDRESS_ERROR | flags | (offset & CHIP_PRI_ADDRESS_OFFSET);
	chip->pri_data = data;
	chip->pri_code = code;
	return code;
}

static bool is_in(u32 offset, u32 base, u32 bytes)
{
	return offset >= base && offset - base < bytes;
}

/* The host's registers, which are in reset with it. */
static bool is_host(u32 offset)
{
	return is_in(offset, PFIFO, PFIFO_BYTES) || is_in(offset, CHIP_PCCSR, 8 * CHIP_CHANNELS) ||
	       is_in(offset, CHIP_PBDMA_REGS, CHIP_PBDMA_STRIDE * CHIP_PBDMAS);
}

static bool is_refused(const struct chip *chip, u32 offset, bool write)
{
	const struct chip_refusal *refusal;
	u32 i;

	if (!(chip->pmc_enable & CHIP_PMC_ENABLE_PFIFO) && is_host(offset))
		return true;
	for (i = 0; i < CHIP_REFUSALS; i++) {
		refusal = &chip->trouble.refused[i];
		if (is_in(offset, refusal->base, refusal->bytes) &&
		    (write || !refusal->writes_only))
			return true;
	}
	return false;
}

u32 chip_pri_absent(struct chip *chip, u32 offset)
{
	if (chip->cfg.sw.absent_reads_zero)
		return 0;
	return fail(chip, offset, 0, 0, CHIP_PRI_ERROR);
}

u32 chip_pri_read(struct chip *chip, u32 offset)
{
	if (chip->presence != CHIP_PRESENT)
		return 0xffffffffu;
	if (is_refused(chip, offset, false))
		return fail(chip, offset, 0, 0, CODE_REFUSED);
	return chip_mmio_read(chip, offset);
}

void chip_pri_write(struct chip *chip, u32 offset, u32 value)
{
	if (chip->presence != CHIP_PRESENT)
		return;
	if (is_refused(chip, offset, true))
		fail(chip, offset, value, CHIP_PRI_ADDRESS_WRITE, CODE_REFUSED);
	else
		chip_mmio_write(chip, offset, value);
}
