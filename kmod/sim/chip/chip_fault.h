/* SPDX-License-Identifier: GPL-2.0 */
/*
 * chip_fault.h - what can go wrong with the card, on demand: one channel's work runs into a fault,
 * a whole runlist is in trouble for a while, registers do not answer, the card is gone.
 *
 * The rules of chip.h hold: the caller serialises, "now" never goes back, nothing sleeps. Nothing
 * here happens by itself; a model that is never asked behaves as if this file did not exist.
 */
#ifndef QGPU_SIM_CHIP_FAULT_H
#define QGPU_SIM_CHIP_FAULT_H

#include "chip.h"

/* Where work can fail (hardware page 8.4, 10.6). */
enum chip_fault {
	/* On the engine, at a page that is not there: ENG_FAULTED. Graphics stands still and does
	 * not save until the fault is cleared or the engine reset; a copy leaves by itself. */
	CHIP_FAULT_PAGE,
	/* The same by an exception, for which only a reset of the engine helps. */
	CHIP_FAULT_EXCEPTION,
	/* The PBDMA at a page that is not there: PBDMA_FAULTED, and it saves by itself. */
	CHIP_FAULT_PBDMA_PAGE,
	/* The PBDMA at a method it does not know: INTR_0 METHOD. It is frozen until that is cleared,
	 * and comes to it again each time it goes on, until the channel is unbound. */
	CHIP_FAULT_METHOD,
};

/**
 * chip_fault() - the work of @channel_id fails now
 *
 * Return: 0, or -ENOENT: it is not on the engine (PAGE, EXCEPTION) or on the PBDMA (the others).
 */
int chip_fault(struct chip *chip, u64 now_ns, u16 channel_id, enum chip_fault fault);

#define CHIP_REFUSALS 4

/* BAR0 offsets that fail with a PRI error: a unit that has no clock, or is another's. */
struct chip_refusal {
	u32 base, bytes;
	bool writes_only;       /* reads are answered */
};

/* Troubles that last until they are taken away; the masks have bit r for runlist r. */
struct chip_trouble {
	u32 preempt_stuck;      /* a preempt does nothing and stays pending */
	u32 pbdma_stuck;        /* the PBDMA does not finish its save */
	u32 save_stuck;         /* the engine does not finish its save */
	u32 load_stuck;         /* nor its load */
	u32 fetch_stuck;        /* a submitted list is never fetched */
	u32 fetch_garbled;      /* a list is read with its first entry wrong: malformed */
	u32 doorbell_late_ns;   /* a doorbell takes so long to arrive, on any runlist */
	struct chip_refusal refused[CHIP_REFUSALS];
};

/**
 * chip_trouble_set() - from now on these troubles and no others; what waited for one goes on
 */
void chip_trouble_set(struct chip *chip, u64 now_ns, const struct chip_trouble *trouble);

enum chip_presence {
	CHIP_PRESENT,
	CHIP_OFF_BUS,           /* reads are all ones, writes are dropped, work goes on */
	CHIP_POWERED_OFF,       /* the same, and all state is gone; PRESENT finds it at reset */
};

/**
 * chip_presence_set() - the card goes or comes back
 */
void chip_presence_set(struct chip *chip, u64 now_ns, enum chip_presence presence);

/**
 * chip_identity_set() - what PMC_BOOT_0 reads, and whether firmware says that it runs the card
 */
void chip_identity_set(struct chip *chip, u32 boot0, bool firmware);

#endif
