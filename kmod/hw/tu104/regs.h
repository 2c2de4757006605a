/* SPDX-License-Identifier: GPL-2.0 */
/*
 * regs.h - the registers of a TU104's host engine that qgpu reads or writes, and nothing else.
 *
 * Grammar. Every name is derived from NVIDIA's published manuals (open-gpu-doc,
 * manuals/turing/tu104/dev_*.ref.txt), so that a register can be looked up there:
 *
 *   NV_PFIFO_RUNLIST_BASE_LO(i)           ->  TU104_RUNLIST_BASE_LO(i)          byte offset in BAR0
 *   NV_PFIFO_RUNLIST_BASE_LO_PTR_LO 31:12 ->  TU104_RUNLIST_BASE_LO_PTR_LO      mask in place
 *   ..._TARGET_VID_MEM 0                  ->  TU104_..._TARGET_VID_MEM          value of the field
 *
 * The unit prefix (NV_PFIFO_, NV_PMC_, ...) is dropped where the name stays clear; the section
 * heads name unit and manual file. Masks are in place; tu104_get() and tu104_put() shift. A
 * register that must never be written (interrupts, PMC_ENABLE, windows, PTIMER) is not here, so
 * that it cannot be.
 *
 * All accesses are 32 bits wide. RO, RW, W1S (writing 1 acts, 0 does nothing), W1C (writing 1
 * clears) say what the hardware does, not what qgpu does.
 */
#ifndef QGPU_TU104_REGS_H
#define QGPU_TU104_REGS_H

#include "qgpu_env.h"

/* Sizes of the register arrays; dev_fifo.ref.txt, "__SIZE_1" of the arrays below. */
#define TU104_RUNLISTS 11
#define TU104_ENGINES 13
#define TU104_PBDMAS 12
#define TU104_CHANNELS 4096
#define TU104_TSGS 4096
#define TU104_DEVICE_INFOS 64

/* The @hi:@lo bits of a word, in place. */
#define TU104_BITS(hi, lo) ((0xffffffffu >> (31 - (hi))) & (0xffffffffu << (lo)))

static inline u32 tu104_get(u32 value, u32 mask)
{
	return (value & mask) / (mask & -mask);
}

static inline u32 tu104_put(u32 field, u32 mask)
{
	return (field * (mask & -mask)) & mask;
}

/* ---- NV_PMC: identity; dev_master.ref.txt ---- */

#define TU104_PMC_BOOT_0 0x000000u /* RO; compared at every odd value: a change = card lost */
#define TU104_PMC_BOOT_0_CHIP_ID TU104_BITS(28, 20) /* ARCHITECTURE 28:24, IMPLEMENTATION 23:20 */
#define TU104_PMC_BOOT_42 0x000a00u		    /* RO */
#define TU104_PMC_BOOT_42_CHIP_ID TU104_BITS(28, 20)
#define TU104_CHIP_ID 0x164u

#define TU104_BAR0_BYTES 0x1000000u
#define TU104_ADDRESS_BITS 40 /* of what RUNLIST_BASE and CHANNEL_INST can name */

/* ---- GSP: does its core run the driver's firmware; NV_PRISCV_RISCV_CORE_SWITCH_RISCV_STATUS at
 * NV_FALCON2_GSP_BASE, dev_riscv_pri.h of the open driver's tu102 headers ---- */

#define TU104_GSP_RISCV_STATUS 0x111240u /* RO */
#define TU104_GSP_RISCV_STATUS_ACTIVE TU104_BITS(0, 0)

/* ---- NV_PFIFO: limits; dev_fifo.ref.txt ---- */

#define TU104_PFIFO_CFG0 0x002004u /* RO */
#define TU104_PFIFO_CFG0_NUM_PBDMA TU104_BITS(7, 0)
#define TU104_PFIFO_CFG1 0x002008u /* RO */
#define TU104_PFIFO_CFG1_NUM_CHANNELS TU104_BITS(31, 0)

/* Which runlists a PBDMA serves: NV_PFIFO_PBDMA_MAP(i), RO. */
#define TU104_PBDMA_MAP(p) (0x002390u + 4u * (p))
#define TU104_PBDMA_MAP_RUNLISTS TU104_BITS(15, 0)

/* ---- NV_PTOP: engine table; dev_top.ref.txt ---- */

/*
 * NV_PTOP_DEVICE_INFO(i), RO. A device is a chain of words: CHAIN set = the next valid word belongs
 * to it too. Slots that are NOT_VALID lie anywhere and mean nothing.
 */
#define TU104_DEVICE_INFO(i) (0x022700u + 4u * (i))
#define TU104_DEVICE_INFO_ENTRY TU104_BITS(1, 0)
#define TU104_DEVICE_INFO_ENTRY_NOT_VALID 0
#define TU104_DEVICE_INFO_ENTRY_DATA 1
#define TU104_DEVICE_INFO_ENTRY_ENUM 2
#define TU104_DEVICE_INFO_ENTRY_ENGINE_TYPE 3
#define TU104_DEVICE_INFO_CHAIN TU104_BITS(31, 31)
/* ENTRY_ENUM */
#define TU104_DEVICE_INFO_ENGINE_ENUM TU104_BITS(29, 26)
#define TU104_DEVICE_INFO_ENGINE_VALID TU104_BITS(5, 5)
#define TU104_DEVICE_INFO_RUNLIST_ENUM TU104_BITS(24, 21)
#define TU104_DEVICE_INFO_RUNLIST_VALID TU104_BITS(4, 4)
/* ENTRY_ENGINE_TYPE */
#define TU104_DEVICE_INFO_ENGINE_TYPE TU104_BITS(30, 2)
#define TU104_ENGINE_TYPE_GRAPHICS 0
#define TU104_ENGINE_TYPE_COPY0 1
#define TU104_ENGINE_TYPE_COPY2 3
#define TU104_ENGINE_TYPE_MSPDEC 8
#define TU104_ENGINE_TYPE_MSENC 11
#define TU104_ENGINE_TYPE_VIC 12
#define TU104_ENGINE_TYPE_NVENC 14
#define TU104_ENGINE_TYPE_NVDEC 16
#define TU104_ENGINE_TYPE_LCE 19
#define TU104_ENGINE_TYPE_NVJPG 21

/* ---- NV_PFIFO: runlists; dev_fifo.ref.txt, NV_PFIFO_RUNLIST_* ---- */

#define TU104_RUNLIST_BASE_LO(r) (0x002b00u + 16u * (r)) /* RW */
#define TU104_RUNLIST_BASE_LO_PTR_LO TU104_BITS(31, 12)	 /* address bits in place */
#define TU104_RUNLIST_BASE_LO_TARGET TU104_BITS(1, 0)	 /* enum hw_target */
#define TU104_RUNLIST_BASE_HI(r) (0x002b04u + 16u * (r)) /* RW */
#define TU104_RUNLIST_BASE_HI_PTR_HI TU104_BITS(7, 0)
#define TU104_RUNLIST_SUBMIT(r) (0x002b08u + 16u * (r))	     /* RW; the write is the trigger */
#define TU104_RUNLIST_SUBMIT_LENGTH TU104_BITS(15, 0)	     /* entries of 16 bytes */
#define TU104_RUNLIST_SUBMIT_OFFSET TU104_BITS(31, 16)	     /* always 0, as every known driver */
#define TU104_RUNLIST_SUBMIT_INFO(r) (0x002b0cu + 16u * (r)) /* RO */
#define TU104_RUNLIST_SUBMIT_INFO_PENDING TU104_BITS(15, 15)

/* Why scheduling of a runlist failed last; dev_fifo.ref.txt, NV_PFIFO_INTR_SCHED_ERROR. */
#define TU104_SCHED_ERROR 0x00254cu /* RO */
#define TU104_SCHED_ERROR_CODE TU104_BITS(7, 0)
#define TU104_SCHED_ERROR_CODE_BAD_TSG 0x20
/* What scheduling is busy with, on any runlist; dev_fifo.ref.txt, NV_PFIFO_SCHED_STATUS. */
#define TU104_SCHED_STATUS 0x00263cu /* RO */
#define TU104_SCHED_STATUS_RUNLIST_FETCH TU104_BITS(2, 2)

/* ---- NV_PFIFO: preemption; dev_fifo.ref.txt, NV_PFIFO_PREEMPT ---- */

#define TU104_PREEMPT 0x002634u /* RW; one register for all runlists; the write is the request */
#define TU104_PREEMPT_ID TU104_BITS(11, 0)
#define TU104_PREEMPT_PENDING TU104_BITS(20, 20) /* RO */
#define TU104_PREEMPT_TYPE TU104_BITS(25, 24)
#define TU104_PREEMPT_TYPE_TSG 1

/* ---- NV_PFIFO: who is where; dev_fifo.ref.txt ---- */

/* NV_PFIFO_ENGINE_STATUS(i), RO, and the neighbour that is never 0xBADxxxxx when it is data. */
#define TU104_ENGINE_STATUS(e) (0x002640u + 8u * (e))
#define TU104_ENGINE_STATUS_DEBUG(e) (0x002644u + 8u * (e))
#define TU104_ENGINE_STATUS_ENGINE TU104_BITS(31, 31)
#define TU104_ENGINE_STATUS_ENGINE_BUSY 1

/* NV_PFIFO_PBDMA_STATUS(i), RO. The fields below are those of both. */
#define TU104_PBDMA_STATUS(p) (0x003080u + 4u * (p))
#define TU104_STATUS_ID TU104_BITS(11, 0)
#define TU104_STATUS_CTX TU104_BITS(15, 13) /* CTX_STATUS of an engine, CHAN_STATUS of a PBDMA */
#define TU104_STATUS_CTX_INVALID 0
#define TU104_STATUS_CTX_VALID 1
#define TU104_STATUS_CTX_LOAD 5
#define TU104_STATUS_CTX_SAVE 6
#define TU104_STATUS_CTX_SWITCH 7
#define TU104_STATUS_NEXT_ID TU104_BITS(27, 16) /* means something in LOAD and SWITCH only */

/* ---- NV_PCCSR: channels; dev_fifo.ref.txt, NV_PCCSR_CHANNEL_INST, NV_PCCSR_CHANNEL ---- */

#define TU104_PCCSR_CHANNEL_INST(c) (0x800000u + 8u * (c)) /* RW */
#define TU104_PCCSR_CHANNEL_INST_PTR TU104_BITS(27, 0)	   /* address >> 12 */
#define TU104_PCCSR_CHANNEL_INST_BIND TU104_BITS(31, 31)
/* One store of NEXT as read with ENABLE_SET or _CLR: writing a word as read clears faults. */
#define TU104_PCCSR_CHANNEL(c) (0x800004u + 8u * (c))
#define TU104_PCCSR_CHANNEL_ENABLE TU104_BITS(0, 0) /* RO */
#define TU104_PCCSR_CHANNEL_NEXT TU104_BITS(1, 1)   /* RW */
#define TU104_PCCSR_CHANNEL_ENABLE_SET TU104_BITS(10, 10) /* W1S */
#define TU104_PCCSR_CHANNEL_ENABLE_CLR TU104_BITS(11, 11) /* W1S */
#define TU104_PCCSR_CHANNEL_PBDMA_FAULTED TU104_BITS(22, 22) /* W1C */
#define TU104_PCCSR_CHANNEL_ENG_FAULTED TU104_BITS(23, 23)   /* W1C */
#define TU104_PCCSR_CHANNEL_STATUS TU104_BITS(27, 24)
#define TU104_PCCSR_CHANNEL_STATUS_IDLE 0x0
#define TU104_PCCSR_CHANNEL_STATUS_ON_ENG 0x7
#define TU104_PCCSR_CHANNEL_STATUS_ON_ENG_CTX_RELOAD 0xc
#define TU104_PCCSR_CHANNEL_BUSY TU104_BITS(28, 28)

/* ---- NV_USERMODE: doorbells; dev_usermode.ref.txt, NV_USERMODE_NOTIFY_CHANNEL_PENDING ---- */

/* WO. The manual has it at 0x810090; this is the same register where every known driver rings. */
#define TU104_DOORBELL 0xbb0090u
#define TU104_DOORBELL_CHANNEL TU104_BITS(11, 0)
#define TU104_DOORBELL_RUNLIST TU104_BITS(22, 16)

/* ---- NV_PTIMER: the card's clock; dev_timer.ref.txt ---- */

#define TU104_PTIMER_TIME_0 0x009400u /* RO here; ns 31:5 in place, 4:0 read 0 */
#define TU104_PTIMER_TIME_1 0x009410u /* RO here; ns 60:32 */

/* ---- RAMRL: runlist entries in memory; dev_ram.ref.txt, NV_RAMRL_ENTRY_* ---- */

#define TU104_RAMRL_ENTRY_BYTES 16u
/* TSG header, words 0 ... 2; word 3 is 0. */
#define TU104_RAMRL_TSG_0_TYPE_TSG 0x1u
#define TU104_RAMRL_TSG_0_TIMESLICE_SCALE TU104_BITS(19, 16)
#define TU104_RAMRL_TSG_0_TIMESLICE_TIMEOUT TU104_BITS(31, 24)
#define TU104_RAMRL_TSG_1_LENGTH TU104_BITS(7, 0)
#define TU104_RAMRL_TSG_2_TSGID TU104_BITS(11, 0)
/* Channel, words 0 ... 3; word 1 is USERD_PTR_HI, word 3 INST_PTR_HI. */
#define TU104_RAMRL_CHAN_0_RUNQUEUE_SELECTOR TU104_BITS(1, 1)
#define TU104_RAMRL_CHAN_0_INST_TARGET TU104_BITS(5, 4)
#define TU104_RAMRL_CHAN_0_USERD_TARGET TU104_BITS(7, 6)
#define TU104_RAMRL_CHAN_0_USERD_PTR_LO TU104_BITS(31, 8) /* address bits in place */
#define TU104_RAMRL_CHAN_2_CHID TU104_BITS(11, 0)
#define TU104_RAMRL_CHAN_2_INST_PTR_LO TU104_BITS(31, 12) /* address bits in place */

/* Slices: (TIMEOUT << SCALE) units; unit and field widths from dev_ram.ref.txt. */
#define TU104_SLICE_UNIT_NS 1024u
#define TU104_SLICE_TIMEOUT_MAX 255u
#define TU104_SLICE_SCALE_MAX 15u

#endif
