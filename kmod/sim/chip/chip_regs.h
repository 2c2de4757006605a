/* SPDX-License-Identifier: GPL-2.0 */
/*
 * chip_regs.h - TU104 registers and memory formats as the model understands them.
 *
 * Written from the manual (dev_fifo, dev_ram, dev_top, dev_timer, dev_usermode, dev_master)
 * independently of the driver side's hw/tu104/regs.h, and never included there: a slip on one
 * side then shows as a failing test instead of agreeing with itself.
 */
#ifndef QGPU_SIM_CHIP_REGS_H
#define QGPU_SIM_CHIP_REGS_H

/* dev_master */
#define CHIP_PMC_BOOT_0 0x000000u
#define CHIP_PMC_BOOT_1 0x000004u
#define CHIP_PMC_INTR 0x000100u
#define CHIP_PMC_INTR_PFIFO (1u << 8)
#define CHIP_PMC_ENABLE 0x000200u /* one reset bit for each unit, as PTOP numbers them */
#define CHIP_PMC_ENABLE_PFIFO (1u << 8)
#define CHIP_PMC_BOOT_42 0x000a00u
#define CHIP_PMC_BOOT_42_ID(boot0) ((boot0) & 0x1ff00000u)

/* dev_fifo: configuration */
#define CHIP_PFIFO_CFG0 0x002004u
#define CHIP_PFIFO_CFG0_VALUE (12u | 32u << 16) /* PBDMAs, MMU fault id of the first */
#define CHIP_PFIFO_CFG1 0x002008u
#define CHIP_PFIFO_CFG1_VALUE 4096u
#define CHIP_PFIFO_CFG2 0x00200cu
#define CHIP_PFIFO_CFG2_VALUE 0xc46fu
#define CHIP_USERD_WRITEBACK 0x00225cu
#define CHIP_PBDMA_MAP 0x002390u /* + 4p */

/* dev_fifo: interrupts and error codes */
#define CHIP_INTR_0 0x002100u
#define CHIP_INTR_BIND_ERROR (1u << 0)
#define CHIP_INTR_CTXSW_TIMEOUT (1u << 1)
#define CHIP_INTR_SCHED_ERROR (1u << 8)
#define CHIP_INTR_CHSW_ERROR (1u << 16)
#define CHIP_INTR_MEMOP_TIMEOUT (1u << 23)
#define CHIP_INTR_LB_ERROR (1u << 24)
#define CHIP_INTR_TSG_PREEMPT (1u << 28)
#define CHIP_INTR_PBDMA_ANY (1u << 29)
#define CHIP_INTR_RUNLIST_EVENT (1u << 30)
#define CHIP_INTR_CHANNEL (1u << 31)
#define CHIP_INTR_EN_0 0x002140u
#define CHIP_INTR_EN_SET 0x002180u
#define CHIP_INTR_EN_CLEAR 0x0021c0u
#define CHIP_INTR_EN_1 0x002528u
#define CHIP_INTR_STALL 0x002530u
#define CHIP_BIND_ERROR 0x00252cu
#define CHIP_BIND_ERROR_BOUND 0x01u
#define CHIP_BIND_ERROR_RUNNING 0x03u
#define CHIP_BIND_ERROR_TARGET 0x06u
#define CHIP_SCHED_ERROR 0x00254cu
#define CHIP_SCHED_ERROR_DATA_TIMEOUT 0x08u
#define CHIP_SCHED_ERROR_BAD_TSG 0x20u
#define CHIP_CHSW_ERROR 0x00256cu
#define CHIP_LB_ERROR 0x00258cu
#define CHIP_INTR_PBDMA 0x0025a0u
#define CHIP_INTR_RUNLIST 0x002a00u
#define CHIP_CTXSW_TIMEOUT 0x002a0cu
#define CHIP_CTXSW_TIMEOUT_PERIOD 0x7fffffffu /* in units of 1024 ns */
#define CHIP_CTXSW_TIMEOUT_ON (1u << 31)
#define CHIP_CTXSW_TIMEOUT_RESET (0x3fffffu | CHIP_CTXSW_TIMEOUT_ON)
#define CHIP_INTR_CTXSW 0x002a30u
#define CHIP_INTR_RUNLIST_IDLE 0x002a40u /* + 16 each: idle, both idle, acquire, acquire idle */
#define CHIP_INTR_RUNLIST_KINDS 4
#define CHIP_CTXSW_TIMEOUT_INFO 0x003200u /* + 4e */
#define CHIP_CTXSW_INFO_STATE_SHIFT 14
#define CHIP_CTXSW_INFO_LOAD 1u
#define CHIP_CTXSW_INFO_SAVE 2u
#define CHIP_CTXSW_INFO_SWITCH 3u
#define CHIP_CTXSW_INFO_NEXT_SHIFT 16
#define CHIP_CTXSW_INFO_STATUS_SHIFT 30
#define CHIP_CTXSW_INFO_STATUS (3u << CHIP_CTXSW_INFO_STATUS_SHIFT)
#define CHIP_CTXSW_INFO_WAITING 0u
#define CHIP_CTXSW_INFO_RESET 1u
#define CHIP_CTXSW_INFO_ACK 2u
#define CHIP_CTXSW_INFO_DROPPED 3u

/* dev_fifo: scheduling */
#define CHIP_SCHED_DISABLE 0x002630u
#define CHIP_PREEMPT 0x002634u
#define CHIP_PREEMPT_ID 0xfffu
#define CHIP_PREEMPT_PENDING (1u << 20)
#define CHIP_PREEMPT_TYPE (3u << 24)
#define CHIP_PREEMPT_TYPE_TSG (1u << 24)
#define CHIP_RUNLIST_PREEMPT 0x002638u
#define CHIP_SCHED_STATUS 0x00263cu
#define CHIP_SCHED_STATUS_SWITCH (1u << 1)
#define CHIP_SCHED_STATUS_FETCH (1u << 2)
#define CHIP_RUNLIST_MASK 0x7ffu

#define CHIP_RUNLIST_REGS 0x002b00u /* + 16r */
#define CHIP_RUNLIST_BASE_LO 0x0u
#define CHIP_RUNLIST_BASE_LO_TARGET 0x3u
#define CHIP_RUNLIST_BASE_LO_BITS 0xfffff003u
#define CHIP_RUNLIST_BASE_HI 0x4u
#define CHIP_RUNLIST_BASE_HI_BITS 0xffu
#define CHIP_RUNLIST_SUBMIT 0x8u
#define CHIP_RUNLIST_SUBMIT_LENGTH 0xffffu
#define CHIP_RUNLIST_SUBMIT_OFFSET_SHIFT 16
#define CHIP_RUNLIST_SUBMIT_INFO 0xcu
#define CHIP_SUBMIT_INFO_VALID (1u << 14)
#define CHIP_SUBMIT_INFO_PENDING (1u << 15)
#define CHIP_SUBMIT_INFO_OFFSET_SHIFT 16

/* dev_fifo: status */
#define CHIP_ENGINE_STATUS 0x002640u /* + 8e */
#define CHIP_ENGINE_STATUS_DEBUG 0x4u
#define CHIP_PBDMA_STATUS_INST 0x002790u /* + 4p */
#define CHIP_PBDMA_STATUS_USERD 0x002800u /* + 4p */
#define CHIP_PBDMA_STATUS_USERD_HI 0x002880u /* + 4p */
#define CHIP_ENGINE_STATUS_NEXT_INST 0x003000u /* + 4e */
#define CHIP_PBDMA_STATUS 0x003080u /* + 4p */
#define CHIP_ENGINE_STATUS_INST 0x003100u /* + 4e */
#define CHIP_STATUS_ID_TSG (1u << 12)
#define CHIP_STATUS_SHIFT 13
#define CHIP_STATUS_INVALID 0u
#define CHIP_STATUS_VALID 1u
#define CHIP_STATUS_LOAD 5u
#define CHIP_STATUS_SAVE 6u
#define CHIP_STATUS_SWITCH 7u
#define CHIP_STATUS_NEXT_SHIFT 16
#define CHIP_STATUS_NEXT_TSG (1u << 28)
#define CHIP_STATUS_FAULTED (1u << 30)
#define CHIP_STATUS_BUSY (1u << 31)
#define CHIP_STATUS_INST_VALID (1u << 31)
#define CHIP_RUNLIST_INFO 0x003400u /* + 4r */
#define CHIP_RUNLIST_INFO_ENG_IDLE (1u << 8)
#define CHIP_RUNLIST_INFO_IDLE (1u << 9)

/* dev_timer and its copies in the usermode page */
#define CHIP_TIME_0 0x009400u
#define CHIP_TIME_0_BITS 0xffffffe0u
#define CHIP_TIME_1 0x009410u
#define CHIP_TIME_1_BITS 0x1fffffffu

/* dev_bus: the last access that failed */
#define CHIP_PRI_ADDRESS 0x009084u /* 0 error, 1 was a write, 23:2 offset */
#define CHIP_PRI_ADDRESS_ERROR (1u << 0)
#define CHIP_PRI_ADDRESS_WRITE (1u << 1)
#define CHIP_PRI_ADDRESS_OFFSET 0x00fffffcu
#define CHIP_PRI_DATA 0x009088u
#define CHIP_PRI_CODE 0x00908cu

/* dev_riscv_pri, of the GSP: the core that runs the driver's firmware */
#define CHIP_GSP_RISCV_STATUS 0x111240u
#define CHIP_GSP_RISCV_STATUS_ACTIVE (1u << 0)

/* dev_top */
#define CHIP_PTOP_DEVICE_INFO 0x022700u /* + 4i, i < 64 */
#define CHIP_PTOP_SLOTS 64u

/* dev_pbdma, per PBDMA; only what a driver may look at */
#define CHIP_PBDMA_REGS 0x040000u /* + 0x2000p */
#define CHIP_PBDMA_STRIDE 0x2000u
#define CHIP_PBDMA_GP_PUT 0x000u
#define CHIP_PBDMA_GP_GET 0x014u
#define CHIP_PBDMA_INTR_0 0x108u
#define CHIP_PBDMA_GPPTR (1u << 14)
#define CHIP_PBDMA_METHOD (1u << 21)
#define CHIP_PBDMA_SIGNATURE (1u << 31)
#define CHIP_PBDMA_INTR_EN_0 0x10cu
#define CHIP_PBDMA_CHANNEL 0x120u
#define CHIP_PBDMA_INTR_1 0x148u
#define CHIP_PBDMA_INTR_EN_1 0x14cu

/* PCCSR, 8 bytes a channel */
#define CHIP_PCCSR 0x800000u
#define CHIP_PCCSR_CHANNEL 0x4u
#define CHIP_INST_PTR 0x0fffffffu
#define CHIP_INST_TARGET_SHIFT 28
#define CHIP_INST_TARGET 0x30000000u
#define CHIP_INST_BIND (1u << 31)
#define CHIP_CH_ENABLE (1u << 0)
#define CHIP_CH_NEXT (1u << 1)
#define CHIP_CH_FORCE_RELOAD (1u << 8)
#define CHIP_CH_ENABLE_SET (1u << 10)
#define CHIP_CH_ENABLE_CLR (1u << 11)
#define CHIP_CH_FORCE_PBDMA_FAULTED (1u << 20)
#define CHIP_CH_FORCE_ENG_FAULTED (1u << 21)
#define CHIP_CH_PBDMA_FAULTED (1u << 22)
#define CHIP_CH_ENG_FAULTED (1u << 23)
#define CHIP_CH_STATUS_SHIFT 24
#define CHIP_CH_BUSY (1u << 28)

/* dev_usermode: the page drivers use, and the address this chip's manual gives */
#define CHIP_USERMODE_PAGE 0xbb0000u
#define CHIP_USERMODE_MANUAL 0x810000u
#define CHIP_USERMODE_BYTES 0x10000u
#define CHIP_USERMODE_TIME_0 0x80u
#define CHIP_USERMODE_TIME_1 0x84u
#define CHIP_USERMODE_DOORBELL 0x90u
#define CHIP_DOORBELL_CHANNEL 0xfffu
#define CHIP_DOORBELL_RUNLIST_SHIFT 16
#define CHIP_DOORBELL_RUNLIST 0x7fu

/* dev_ctrl */
#define CHIP_VIRTUAL_CHANNEL_CFG 0xb65000u
#define CHIP_VIRTUAL_CHANNEL_CFG_ON (1u << 31)

/* A register that is not there. */
#define CHIP_PRI_ERROR 0xbad00200u

/* dev_ram: runlist entries, words */
#define CHIP_RL_ENTRY_BYTES 16u
#define CHIP_RL0_TSG (1u << 0)
#define CHIP_RL0_RUNQUEUE (1u << 1) /* of a channel entry */
#define CHIP_RL0_SCALE_SHIFT 16
#define CHIP_RL0_SCALE 0xfu
#define CHIP_RL0_TIMEOUT_SHIFT 24
#define CHIP_RL1_LENGTH 0xffu
#define CHIP_RL1_LENGTH_MAX 128u
#define CHIP_RL2_ID 0xfffu

/* dev_ram: instance block and RAMFC, word numbers; USERD, byte offsets */
#define CHIP_RAMFC_GP_PUT 0u
#define CHIP_RAMFC_USERD 2u
#define CHIP_RAMFC_GP_GET 5u
#define CHIP_RAMFC_GP_BASE 18u
#define CHIP_RAMFC_GP_LOG2_SHIFT 16
#define CHIP_RAMIN_PDB 128u
#define CHIP_RAMIN_CONTEXT 132u
#define CHIP_RAMIN_CONTEXT_VIRTUAL (1u << 2)
#define CHIP_USERD_GP_GET 0x88u
#define CHIP_USERD_GP_PUT 0x8cu

/* dev_ctxsw: an engine's context image, byte offsets */
#define CHIP_CTX_COMPUTE_PREEMPTION 0x84u /* enum chip_preemption, WFI ... CILP */
#define CHIP_CTX_PREEMPTION_MASK 0x3u
#define CHIP_CTX_WFI_SAVES 0xd0u
#define CHIP_CTX_CTA_SAVES 0xd4u
#define CHIP_CTX_CILP_SAVES 0xdcu
#define CHIP_CTX_SAVES 0xf4u
#define CHIP_CTX_RESTORES 0xf8u
#define CHIP_CTX_MAGIC 0xfcu
#define CHIP_CTX_MAGIC_VALUE 0x600dc0deu

/* dev_pbdma: GPFIFO entry */
#define CHIP_GP_ENTRY_BYTES 8u
#define CHIP_GP0_ADDR 0xfffffffcu
#define CHIP_GP1_ADDR 0xffu
#define CHIP_GP1_SYNC (1u << 31)

#endif
