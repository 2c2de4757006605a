// SPDX-License-Identifier: GPL-2.0
/*
 * intr.c - the interrupt tree of PFIFO as status only: bits are set, cleared by W1C and can be
 * masked; no line is raised. The per-runlist idle and acquire events need arming by a driver
 * that uses them and stay 0.
 */
#include "chip_state.h"

#define LATCHED                                                                                    \
	(CHIP_INTR_BIND_ERROR | CHIP_INTR_SCHED_ERROR | CHIP_INTR_CHSW_ERROR |                     \
	 CHIP_INTR_MEMOP_TIMEOUT | CHIP_INTR_LB_ERROR | CHIP_INTR_TSG_PREEMPT | CHIP_INTR_CHANNEL)

static u32 intr_0(const struct chip *chip)
{
	return chip->intr_0 | (chip->intr_runlist ? CHIP_INTR_RUNLIST_EVENT : 0) |
	       (chip->intr_ctxsw ? CHIP_INTR_CTXSW_TIMEOUT : 0) |
	       (chip_fault_pbdma_mask(chip) ? CHIP_INTR_PBDMA_ANY : 0);
}

static bool is_runlist_idle_reg(u32 offset)
{
	/* status 0x2A40...70, enable set and clear pairs 0x2A80...F0 */
	return offset >= CHIP_INTR_RUNLIST_IDLE &&
	       offset < CHIP_INTR_RUNLIST_IDLE + 3 * 16 * CHIP_INTR_RUNLIST_KINDS &&
	       (offset & 0xf) == 0;
}

bool chip_intr_owns(u32 offset)
{
	switch (offset) {
	case CHIP_PMC_INTR:
	case CHIP_INTR_0:
	case CHIP_INTR_EN_0:
	case CHIP_INTR_EN_SET:
	case CHIP_INTR_EN_CLEAR:
	case CHIP_INTR_EN_1:
	case CHIP_INTR_STALL:
	case CHIP_BIND_ERROR:
	case CHIP_SCHED_ERROR:
	case CHIP_CHSW_ERROR:
	case CHIP_LB_ERROR:
	case CHIP_INTR_PBDMA:
	case CHIP_INTR_RUNLIST:
	case CHIP_CTXSW_TIMEOUT:
	case CHIP_INTR_CTXSW:
		return true;
	default:
		return is_runlist_idle_reg(offset);
	}
}

u32 chip_intr_read(struct chip *chip, u32 offset)
{
	switch (offset) {
	case CHIP_PMC_INTR:
		return (intr_0(chip) & chip->intr_en_0 ? CHIP_PMC_INTR_PFIFO : 0) |
		       chip_fault_engine_mask(chip);
	case CHIP_INTR_0:
		return intr_0(chip);
	case CHIP_INTR_EN_0:
		return chip->intr_en_0;
	case CHIP_INTR_EN_SET:
	case CHIP_INTR_EN_CLEAR:
		return chip->intr_preempt_en;
	case CHIP_INTR_EN_1:
		return chip->intr_en_1;
	case CHIP_INTR_STALL:
		return chip->intr_stall;
	case CHIP_BIND_ERROR:
		return chip->bind_error;
	case CHIP_SCHED_ERROR:
		return chip->sched_error;
	case CHIP_INTR_PBDMA:
		return chip_fault_pbdma_mask(chip);
	case CHIP_INTR_RUNLIST:
		return chip->intr_runlist;
	case CHIP_INTR_CTXSW:
		return chip->intr_ctxsw;
	case CHIP_CTXSW_TIMEOUT:
		return chip->ctxsw_timeout;
	default:
		return 0;
	}
}

void chip_intr_write(struct chip *chip, u32 offset, u32 value)
{
	switch (offset) {
	case CHIP_INTR_0:
		chip->intr_0 &= ~(value & LATCHED);
		break;
	case CHIP_INTR_EN_0:
		chip->intr_en_0 = value;
		break;
	case CHIP_INTR_EN_SET:
		chip->intr_preempt_en |= value & CHIP_INTR_TSG_PREEMPT;
		break;
	case CHIP_INTR_EN_CLEAR:
		chip->intr_preempt_en &= ~value;
		break;
	case CHIP_INTR_EN_1:
		chip->intr_en_1 = value;
		break;
	case CHIP_INTR_STALL:
		chip->intr_stall = value;
		break;
	case CHIP_INTR_RUNLIST:
		chip->intr_runlist &= ~value;
		break;
	case CHIP_INTR_CTXSW:
		chip->intr_ctxsw &= ~value;
		break;
	case CHIP_CTXSW_TIMEOUT:
		chip_ctxsw_write_timeout(chip, value);
		break;
	default:
		break;
	}
}

void chip_intr_bind_error(struct chip *chip, u32 code)
{
	chip->bind_error = code;
	chip->intr_0 |= CHIP_INTR_BIND_ERROR;
}

void chip_intr_sched_error(struct chip *chip, u32 code)
{
	chip->sched_error = code;
	chip->intr_0 |= CHIP_INTR_SCHED_ERROR;
}

void chip_intr_runlist_event(struct chip *chip, u32 runlist)
{
	chip->intr_runlist |= 1u << runlist;
}

void chip_intr_tsg_preempted(struct chip *chip)
{
	chip->intr_0 |= chip->intr_preempt_en;
}
