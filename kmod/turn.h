/* SPDX-License-Identifier: GPL-2.0 */
/*
 * turn.h - one turn of the scheduler of one runlist: look at the chip, charge the ledger, ask the
 * core what follows, put the image in the slot, say when to look again. Portable: the module's
 * worker (sched.c), the scenario tests and the benches run this same code.
 *
 *      turn_run(now) ──► hw status ──► core ledger ──► core pick ──► image ──► hw submit
 *           └────────────── returns the time of the next turn ◄──────────────────┘
 *
 * The caller serialises everything on one turn (card->lock in the kernel). Objects are the
 * caller's and are embedded in its own: struct turn_tsg in its TSG, struct core_tenant in its
 * tenant. Nothing here allocates after turn_init().
 *
 * Changes (tenants, settings, TSGs, the driver's list) only alter memory; they reach the chip in
 * turn_apply() or the next turn_run(). To change several things at once or not at all: alter,
 * turn_apply(), and on its error put the former values back; the chip still has the former
 * image then.
 */
#ifndef QGPU_TURN_H
#define QGPU_TURN_H

#include "core/bound.h"
#include "core/core.h"
#include "hw/hw_ops.h"

struct turn_tsg {
	u64 serial; /* unique for ever on this card */
	u16 tsg_id;
	u32 list_order;	     /* place in the driver's list; ties by serial */
	u64 driver_slice_ns; /* under best-effort the slice it runs with */
	u16 channel_count;
	struct hw_channel *channels; /* caller's; HW_MAX_TSG_CHANNELS at most */
	bool listed;		     /* in the driver's list: exists and may be scheduled */
	bool nobody;		     /* the kernel's or qgpu's own: in every image, never held */
	struct core_tsg core;	     /* its tenant, activity, slice in force */
	/* turn_image.c's own: */
	u32 position;  /* among the TSGs in list order */
	bool in_image; /* the image that is written last has it */
	bool in_slot;  /* the image in the slot has it */
	u64 listed_in; /* the last image that had it, counted by submits */
	/* turn_gate.c's own: */
	u16 closed_count;   /* of its channels */
	bool ajar;	    /* closed, and some channel may not be: to be closed anew */
	bool stuck;	    /* it did not open when it should have */
	u64 closed_from_ns; /* since when */
	u64 air_until_ns;   /* it was held for too long and is let run until then; 0 */
	u32 reopened;	    /* looks in a row that found it enabled all the same */
	bool released;	    /* it is being freed: never held again */
};

/* How windows are enforced. */
enum turn_method {
	TURN_IMAGES,		/* lists of our own in the slot */
	TURN_IMAGES_THEN_GATES, /* until somebody else submits all the time */
	TURN_GATES,		/* the driver's list stays; channels are disabled and enabled */
};

/**
 * struct turn_config - set once
 * @images: two buffers of equal size, each for every TSG with all its channels, and one TSG's
 *          again: an image continues the rotation where the former one was cut, so the TSG that
 *          was cut is listed first with what it had left and last with what it had used
 * @tsg_max: most TSGs at a time
 * @tenant_max: most tenants at a time
 * @seed: of the jitter of samples
 * @method: with gates the caller has to call turn_tsg_release() before the driver frees anything
 * @hold_max_ns: longest that a gate stays closed; 0 = TURN_HOLD_MAX_NS
 */
struct turn_config {
	struct hw *hw;
	u32 runlist, engine_index;
	struct hw_mem images[2];
	u32 tsg_max, tenant_max;
	struct core_params params;
	u64 seed;
	enum turn_method method;
	u64 hold_max_ns;
};

/* RM's own waits give up after seconds (hardware page 12). */
#define TURN_HOLD_MAX_NS 500000000ull

/* The runlist's totals; cumulative. @reminders: submits for an engine that idled beside channels
 * with work; @losses: how often somebody else's list or a reset was found in the slot. */
struct turn_counters {
	u64 switch_ns, idle_ns, nobody_ns, submits, preempts, reminders, losses;
};

struct turn;

/**
 * turn_create() - a scheduler for one runlist; nothing is touched yet. May sleep.
 * @now_ns: as hw_io_ops.now_ns would say; all times of a turn are of that clock
 * Return: the turn, or NULL when out of memory.
 */
struct turn *turn_create(const struct turn_config *cfg, u64 now_ns);
void turn_destroy(struct turn *turn);

/* Settings. A tenant takes part from turn_tenant_add() on, with or without TSGs; its content is
 * overwritten. Settings are checked before by core_check(). Return: 0, -ENOSPC. */
int turn_tenant_add(struct turn *turn, struct core_tenant *tenant,
		    const struct core_settings *settings);
void turn_tenant_set(struct turn *turn, struct core_tenant *tenant,
		     const struct core_settings *settings);
/* Its TSGs must have been moved before. */
void turn_tenant_remove(struct turn *turn, struct core_tenant *tenant);
void turn_policy_set(struct turn *turn, enum core_policy policy, u64 cycle_ns);

/* TSGs. @tenant NULL = nobody. The caller has filled everything above @core. Return: 0, -ENOSPC. */
int turn_tsg_add(struct turn *turn, struct turn_tsg *tsg, struct core_tenant *tenant);
void turn_tsg_move(struct turn *turn, struct turn_tsg *tsg, struct core_tenant *tenant);
/* It is about to be stopped or freed: the driver finds its channels as it left them, and they stay
 * so, billed, until turn_tsg_retain(): however long that takes, as what is closed while the driver
 * disables it would be opened against its will. Return: 0, an error of hw_ops. */
int turn_tsg_release(struct turn *turn, struct turn_tsg *tsg);
/* It was not freed: it is held again if that is its turn, and a turn is due. Return: as above. */
int turn_tsg_retain(struct turn *turn, struct turn_tsg *tsg);
/* It is in no image the chip will read after the turn_apply() that must have come before. */
void turn_tsg_remove(struct turn *turn, struct turn_tsg *tsg);

/* Channels or listed flags of some TSG changed, or the order of the driver's list. */
void turn_list_changed(struct turn *turn);

/**
 * turn_start() / turn_stop() - from start on the slot, or the gates, are ours; after stop no turn
 * is run and no gate is closed
 *
 * Started again after -ESTALE, with the driver's objects brought up to date before, it takes the
 * slot back: what comes next is put over whatever is in it.
 * Return of turn_stop(): 0, or an error of hw_ops: what is still closed is opened by another call.
 */
void turn_start(struct turn *turn, u64 now_ns);
int turn_stop(struct turn *turn);

/**
 * turn_apply() - bring changes to the chip now
 *
 * Return: 0; an error of hw_ops, after which the slot still holds the former image (TSGs
 * removed from the driver's list excepted: those are taken out by any later success); -ESTALE as
 * turn_run().
 */
int turn_apply(struct turn *turn, u64 now_ns);

/**
 * turn_relist() - turn_apply() after the driver listed: a card that was reset, so that its slot is
 *                 empty, is in use again; what is in the slot of one that did not answer is not
 *                 known
 */
int turn_relist(struct turn *turn, u64 now_ns);

/**
 * turn_run() - one turn
 * @next_ns: when the next one is due, absolute
 * Return: 0, or the hardware's error: the card should be marked degraded; it is still safe to
 * go on calling. -ESTALE: the slot holds somebody else's list, which stays until turn_start().
 * -ENODEV: the card is gone, or was reset and its slot is empty.
 */
int turn_run(struct turn *turn, u64 now_ns, u64 *next_ns);

/* Who is told of each time on the engine; before turn_start(). */
void turn_listen(struct turn *turn,
		 void (*on_visit)(void *listener, const struct core_visit *visit), void *listener);

/* The time on the engine that is on, up to the last look; it has no end yet. To be asked only where
 * somebody listens. */
void turn_visit(const struct turn *turn, struct core_visit *out);

/* When the last look was: all counters are as of then. */
u64 turn_looked_ns(const struct turn *turn);
void turn_counters(const struct turn *turn, struct turn_counters *out);
/* A tenant's counters as of the last look. */
void turn_tenant_counters(const struct turn *turn, struct core_tenant *tenant,
			  struct core_counters *out);
/* How often work was not cut in time so far, and whose it was last (NULL: no tenant's). */
u64 turn_refusals(const struct turn *turn, struct core_tenant **last);
/* How often a kernel ran longer than its tenant's hang_ns while others waited, and whose it was
 * last (NULL: it is gone). */
u64 turn_hangs(const struct turn *turn, struct core_tenant **last);
/* From the next turn_start() on gates enforce windows, for good. */
void turn_gates_begin(struct turn *turn);
/* Gates are what enforces windows now. */
bool turn_uses_gates(const struct turn *turn);
/* A list of ours was put in the slot, or may have been, at some time. */
bool turn_has_submitted(const struct turn *turn);
/* The rotation's cycle in force, 0 = none. */
u64 turn_cycle_ns(const struct turn *turn);

#endif
