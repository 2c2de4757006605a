// SPDX-License-Identifier: GPL-2.0
/*
 * mmio.c - BAR0: which offset is what. Register arrays are a table, single registers a switch.
 * What is not here answers with a PRI error, except in the usermode page, where undefined words
 * read 0. Called by chip.c after the model has been brought to the time of the access.
 */
#include "chip_state.h"

static u32 read_device_info(struct chip *chip, u32 i)
{
	(void)chip;
	return chip_topology_device_info(i);
}

static u32 read_pbdma_map(struct chip *chip, u32 i)
{
	(void)chip;
	return chip_topology_pbdma_map(i);
}

static u32 read_zero(struct chip *chip, u32 i)
{
	(void)chip;
	(void)i;
	return 0;
}

/* Read-only register arrays. */
static const struct {
	u32 base, stride, count;
	u32 (*read)(struct chip *chip, u32 index);
} arrays[] = {
	{CHIP_ENGINE_STATUS, 8, CHIP_ENGINES, chip_status_engine},
	{CHIP_ENGINE_STATUS + CHIP_ENGINE_STATUS_DEBUG, 8, CHIP_ENGINES, read_zero},
	{CHIP_PBDMA_STATUS, 4, CHIP_PBDMAS, chip_status_pbdma},
	{CHIP_RUNLIST_INFO, 4, CHIP_RUNLISTS, chip_status_runlist_info},
	{CHIP_ENGINE_STATUS_INST, 4, CHIP_ENGINES, chip_status_engine_inst},
	{CHIP_ENGINE_STATUS_NEXT_INST, 4, CHIP_ENGINES, chip_status_engine_next_inst},
	{CHIP_PBDMA_STATUS_INST, 4, CHIP_PBDMAS, chip_status_pbdma_inst},
	{CHIP_PBDMA_STATUS_USERD, 4, CHIP_PBDMAS, chip_status_pbdma_userd},
	{CHIP_PBDMA_STATUS_USERD_HI, 4, CHIP_PBDMAS, chip_status_pbdma_userd_hi},
	{CHIP_PBDMA_MAP, 4, CHIP_PBDMAS, read_pbdma_map},
	{CHIP_CTXSW_TIMEOUT_INFO, 4, CHIP_ENGINES, chip_ctxsw_info},
	{CHIP_PTOP_DEVICE_INFO, 4, CHIP_PTOP_SLOTS, read_device_info},
};

static u32 read_array(struct chip *chip, u32 offset)
{
	u32 i, from;

	for (i = 0; i < ARRAY_SIZE(arrays); i++) {
		if (offset < arrays[i].base)
			continue;
		from = offset - arrays[i].base;
		if (from < arrays[i].stride * arrays[i].count && !(from & (arrays[i].stride - 1)))
			return arrays[i].read(chip, from / arrays[i].stride);
	}
	return chip_pri_absent(chip, offset);
}

static bool is_in(u32 offset, u32 base, u32 bytes)
{
	return offset >= base && offset - base < bytes;
}

static bool is_usermode(u32 offset)
{
	return is_in(offset, CHIP_USERMODE_PAGE, CHIP_USERMODE_BYTES) ||
	       is_in(offset, CHIP_USERMODE_MANUAL, CHIP_USERMODE_BYTES);
}

static bool is_control(u32 offset)
{
	return offset == CHIP_SCHED_DISABLE || offset == CHIP_PREEMPT ||
	       offset == CHIP_RUNLIST_PREEMPT || offset == CHIP_SCHED_STATUS;
}

static u32 read_usermode(const struct chip *chip, u32 reg)
{
	if (reg == CHIP_USERMODE_TIME_0)
		return chip_timer_low(chip);
	if (reg == CHIP_USERMODE_TIME_1)
		return chip_timer_high(chip);
	return 0;
}

static u32 read_single(struct chip *chip, u32 offset)
{
	switch (offset) {
	case CHIP_PMC_BOOT_0:
		return chip->cfg.boot0;
	case CHIP_PMC_BOOT_1:
		return 0;
	case CHIP_PMC_BOOT_42:
		return CHIP_PMC_BOOT_42_ID(chip->cfg.boot0);
	case CHIP_PMC_ENABLE:
		return chip->pmc_enable;
	case CHIP_PRI_ADDRESS:
		return chip->pri_address;
	case CHIP_PRI_DATA:
		return chip->pri_data;
	case CHIP_PRI_CODE:
		return chip->pri_code;
	case CHIP_PFIFO_CFG0:
		return CHIP_PFIFO_CFG0_VALUE;
	case CHIP_PFIFO_CFG1:
		return CHIP_PFIFO_CFG1_VALUE;
	case CHIP_PFIFO_CFG2:
		return CHIP_PFIFO_CFG2_VALUE;
	case CHIP_USERD_WRITEBACK:
		return chip->userd_writeback;
	case CHIP_TIME_0:
		return chip_timer_low(chip);
	case CHIP_TIME_1:
		return chip_timer_high(chip);
	case CHIP_VIRTUAL_CHANNEL_CFG:
		return chip->virtual_channel_cfg;
	case CHIP_GSP_RISCV_STATUS:
		return chip->firmware ? CHIP_GSP_RISCV_STATUS_ACTIVE : 0;
	default:
		return read_array(chip, offset);
	}
}

static u32 pbdma_of(u32 offset)
{
	return (offset - CHIP_PBDMA_REGS) / CHIP_PBDMA_STRIDE;
}

static bool is_pbdma_intr(u32 reg)
{
	return reg == CHIP_PBDMA_INTR_0 || reg == CHIP_PBDMA_INTR_1 ||
	       reg == CHIP_PBDMA_INTR_EN_0 || reg == CHIP_PBDMA_INTR_EN_1;
}

static u32 read_pbdma(struct chip *chip, u32 offset)
{
	const u32 reg = offset & (CHIP_PBDMA_STRIDE - 1);

	if (is_pbdma_intr(reg))
		return chip_fault_pbdma_read(chip, pbdma_of(offset), reg);
	return chip_status_pbdma_reg(chip, pbdma_of(offset), reg);
}

static void write_single(struct chip *chip, u32 offset, u32 value)
{
	switch (offset) {
	case CHIP_PMC_ENABLE:
		chip_reset_write(chip, value);
		break;
	case CHIP_PRI_ADDRESS:
		chip->pri_address = value;
		break;
	case CHIP_VIRTUAL_CHANNEL_CFG:
		chip->virtual_channel_cfg = value;
		break;
	case CHIP_USERD_WRITEBACK:
		chip->userd_writeback = value;
		break;
	default:
		break;
	}
}

u32 chip_mmio_read(struct chip *chip, u32 offset)
{
	const u32 channel = (offset - CHIP_PCCSR) / 8;

	if (offset & 3)
		return chip_pri_absent(chip, offset);
	if (is_in(offset, CHIP_PCCSR, 8 * CHIP_CHANNELS))
		return offset & CHIP_PCCSR_CHANNEL ? chip_channel_read(chip, (u16)channel)
						   : chip->channels[channel].inst;
	if (is_in(offset, CHIP_RUNLIST_REGS, 16 * CHIP_RUNLISTS))
		return chip_runlist_read(chip, (offset - CHIP_RUNLIST_REGS) / 16, offset & 0xf);
	if (is_in(offset, CHIP_PBDMA_REGS, CHIP_PBDMA_STRIDE * CHIP_PBDMAS))
		return read_pbdma(chip, offset);
	if (is_usermode(offset))
		return read_usermode(chip, offset & (CHIP_USERMODE_BYTES - 1));
	if (is_control(offset))
		return chip_control_read(chip, offset);
	if (chip_intr_owns(offset))
		return chip_intr_read(chip, offset);
	return read_single(chip, offset);
}

void chip_mmio_write(struct chip *chip, u32 offset, u32 value)
{
	const u32 channel = (offset - CHIP_PCCSR) / 8;

	if (offset & 3)
		return;
	if (is_in(offset, CHIP_PCCSR, 8 * CHIP_CHANNELS)) {
		if (offset & CHIP_PCCSR_CHANNEL)
			chip_channel_write(chip, (u16)channel, value);
		else
			chip_channel_write_inst(chip, (u16)channel, value);
	} else if (is_in(offset, CHIP_RUNLIST_REGS, 16 * CHIP_RUNLISTS)) {
		chip_runlist_write(chip, (offset - CHIP_RUNLIST_REGS) / 16, offset & 0xf, value);
	} else if (is_in(offset, CHIP_PBDMA_REGS, CHIP_PBDMA_STRIDE * CHIP_PBDMAS)) {
		chip_fault_pbdma_write(chip, pbdma_of(offset), offset & (CHIP_PBDMA_STRIDE - 1),
				       value);
	} else if (is_usermode(offset)) {
		if ((offset & (CHIP_USERMODE_BYTES - 1)) == CHIP_USERMODE_DOORBELL)
			chip_doorbell_ring(chip, value);
	} else if (is_control(offset)) {
		chip_control_write(chip, offset, value);
	} else if (chip_intr_owns(offset)) {
		chip_intr_write(chip, offset, value);
	} else {
		write_single(chip, offset, value);
	}
}
