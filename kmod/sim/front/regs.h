/* SPDX-License-Identifier: GPL-2.0 */
/*
 * regs.h - registers that several files of the simulated driver know (hardware page 2, 3).
 */
#ifndef SIM_FRONT_REGS_H
#define SIM_FRONT_REGS_H

#define RUNLIST_BASE_LO(r) (0x2b00u + 16u * (r))
#define RUNLIST_BASE_HI(r) (0x2b04u + 16u * (r))
#define RUNLIST_SUBMIT(r) (0x2b08u + 16u * (r))
#define RUNLIST_SUBMIT_INFO(r) (0x2b0cu + 16u * (r))
#define RUNLIST_PENDING BIT(15)
#define SCHED_DISABLE 0x2630u

#define PCCSR_INST(c) (0x800000u + 8u * (c))
#define PCCSR_INST_BIND BIT(31)
#define PCCSR_CHANNEL(c) (0x800004u + 8u * (c))
#define PCCSR_ENABLE BIT(0)
#define PCCSR_NEXT BIT(1)
#define PCCSR_ENABLE_SET BIT(10)
#define PCCSR_ENABLE_CLR BIT(11)

#endif
