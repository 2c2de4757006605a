/* SPDX-License-Identifier: GPL-2.0 */
/*
 * judge.h - what the model behind a PCI device tells and lets be done that no real card does: the
 * exact record of who ran, a count of register writes, and troubles. It is BAR 5, which a T4 does
 * not have, so that nothing but a test looks there and the simulated driver never takes a real card
 * for one of its own.
 */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#define JUDGE_BAR 5
#define JUDGE_BYTES 4096

/* 32 bits each. */
#define JUDGE_MAGIC 0x00 /* RO */
#define JUDGE_MAGIC_VALUE 0x6a647167u
#define JUDGE_TSG 0x04	    /* RW: whose time JUDGE_TSG_RUN_NS is */
#define JUDGE_FORGET 0x08   /* WO: this TSG id is used for another one from here on */
#define JUDGE_PRESENCE 0x0c /* RW: enum chip_presence */
#define JUDGE_BOOT_0 0x10   /* RW: what PMC_BOOT_0 reads from here on */
#define JUDGE_FIRMWARE 0x14 /* RW: 1: firmware on the card runs it */

/* 64 bits each: reading the low word keeps the high one for the read that follows. */
#define JUDGE_NUMBERS 0x80
#define JUDGE_NUMBER(n) (JUDGE_NUMBERS + 8 * (n))
enum judge_number {
	JUDGE_TIME_NS, /* the model's own clock */
	JUDGE_RUN_NS,  /* of the graphics engine, as struct chip_totals */
	JUDGE_SWITCH_NS,
	JUDGE_IDLE_NS,
	JUDGE_SWITCHES,
	JUDGE_KERNELS,
	JUDGE_SUBMITS,
	JUDGE_PREEMPTS,
	JUDGE_DOORBELLS,
	JUDGE_PROTOCOL_ERRORS,
	JUDGE_TSG_RUN_NS,
	JUDGE_WRITES, /* to BAR 0, doorbells left out */
	JUDGE_NUMBER_COUNT,
};

#endif
