/* SPDX-License-Identifier: GPL-2.0 */
/*
 * survey.h - the registers that a report about a card holds: all that answers what the published
 * pages leave open about a real one (hardware page 14). Reading them changes nothing, whoever runs
 * the card: identity, topology, limits and the host's own state; no engine, no window, no interrupt
 * that a read would clear. Used by pci.c, which reads them, and by qgpuctl, which explains them.
 */
#ifndef QGPU_TU104_SURVEY_H
#define QGPU_TU104_SURVEY_H

#include "hw/tu104/regs.h"

/* NV_PFIFO_ENG_CTXSW_TIMEOUT, NV_PFIFO_CFG2, NV_PFIFO_RUNLIST_INFO(i): dev_fifo.ref.txt. */
#define TU104_SURVEY_CTXSW_TIMEOUT 0x002a0cu
#define TU104_SURVEY_PFIFO_CFG2 0x00200cu
#define TU104_SURVEY_RUNLIST_INFO(r) (0x003400u + 4u * (r))
/* NV_PFIFO_SCHED_DISABLE: dev_fifo.ref.txt. */
#define TU104_SURVEY_SCHED_DISABLE 0x002630u

/* @count registers from @offset on, @stride bytes apart. */
struct tu104_survey_range {
	u32 offset, stride, count;
};

static const struct tu104_survey_range tu104_survey_ranges[] = {
	{ TU104_PFIFO_CFG0, 4, 2 },
	{ TU104_SURVEY_PFIFO_CFG2, 4, 1 },
	{ TU104_PBDMA_MAP(0), 4, TU104_PBDMAS },
	{ TU104_SCHED_ERROR, 4, 1 },
	{ TU104_SURVEY_SCHED_DISABLE, 4, 4 }, /* and PREEMPT, RUNLIST_PREEMPT, SCHED_STATUS */
	{ TU104_ENGINE_STATUS(0), 8, TU104_ENGINES },
	{ TU104_SURVEY_CTXSW_TIMEOUT, 4, 1 },
	{ TU104_RUNLIST_BASE_LO(0), 4, 4 * TU104_RUNLISTS },
	{ TU104_PBDMA_STATUS(0), 4, TU104_PBDMAS },
	{ TU104_SURVEY_RUNLIST_INFO(0), 4, TU104_RUNLISTS },
	{ TU104_PTIMER_TIME_0, 4, 1 },
	{ TU104_PTIMER_TIME_1, 4, 1 },
	{ TU104_DEVICE_INFO(0), 4, TU104_DEVICE_INFOS },
};

#endif
