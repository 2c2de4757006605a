/* SPDX-License-Identifier: GPL-2.0 */
/*
 * core.h - the scheduling core: who may use an engine, for how long, and what was used.
 *
 * Pure decisions: time, looks at the chip and settings go in; an admitted set, its slices and an
 * end come out. turn.c feeds it and carries its answers to the chip. No lock, no I/O, and no
 * allocation after core_init(). Everything on one struct core is serialised by the caller.
 *
 *            settings      looks (who is on the engine, who has work)
 *               |                      |
 *   check.c   share.c               ledger.c ────────────► fit.c  who does not fit the rotation
 *   refusal   shares of the awake   run, error ───────────────► trim, once a second   |
 *               |                   activity.c wait.c lag.c   |                     |
 *               |                   busy, waits, lag          |                     |
 *    place.c  plan.c  places, C, T, F, b ◄──────────────────────┴─────────────────────┘
 *               |                      |
 *               └─► budget.c ◄─────────┘  who has budget, who takes turns: three queues
 *                      |
 *                    pick.c  window = admitted set, slices, end       next.c  when to look again
 *                      |
 *                    turn.c ──► image ──► chip
 *
 * HOW IT IS USED. turn.c tells what looks found: core_look() who is on the engine, core_work() of
 * those who are not. core_pick() then says whether the image in the slot is still right; if not,
 * core_admits(), core_slice_ns() and core_cut() say what the new one is, and core_taken() that the
 * chip took it. core_next_ns() is when to look again. Settings come by core_tenant_add(), _set(),
 * _remove() and core_policy_set(), TSGs by core_tsg_add(), _list(), _remove(). bound.h says what
 * can be promised; core_inside.h is what the files of the core tell each other.
 *
 * WHAT IT KEEPS. s = cost of one switch, p = cost of taking a TSG off, M = awake TSGs, phi = a
 * share, C = cycle, F = period, b = budget, P = distance of looks. Each is derived in theory.rst,
 * by this name:
 *
 *   rotation  |run - phi * delivered| <= phi*(1-phi) * (C + M*s) + e*t                       (R)
 *   windows by lag   b = C*phi + lag - C*phi*(1-phi)/2 in 1/2 ... 2 C*phi; lag within 2*C*phi and a
 *             tail                                                                          (S)
 *   launch-and-sync before it is known   phi*(1-phi) * (C + M*s) + what it loses            (V)
 *             and then, in windows whose gaps leave a part d of the wall   phi*(1-phi) * C/d   (G)
 *   windows on the clock   lag <= phi * (2*(F - b) + tails of the others)                   (W)
 *   ceilings  c * t + 3/2 * c * period in any t
 *   online    wait <= the other's slice + 2*s, and the tail of work that cannot be cut      (O)
 *   waits     of members (K), whose shares they bend by no more than (B), on the clock (C), beside
 *             windows by lag (P)
 *   ledger    everything is charged once; the published error is 3 sigma, and bounds it
 *   cost      a look, a pick and a change of who is busy are O(1) or O(log n), a plan is O(n)
 */
#ifndef QGPU_CORE_H
#define QGPU_CORE_H

#include "core_state.h"

/* What the glue shows of a tenant. */
struct core_view {
	u32 share_ppm; /* effective */
	u64 slice_ns;  /* of each of its TSGs, as the chip took it; 0 = none in the slot */
	u64 window_ns; /* budget a period under exclusive windows; 0 = in rotation */
	bool awake;
	u32 tsgs;
};

/**
 * core_init() - an empty core; the only function that allocates
 * Return: 0, -ENOMEM.
 */
int core_init(struct core *core, const struct core_params *params, u32 tenant_max, u64 seed,
	      u64 now_ns);
void core_fini(struct core *core);

/**
 * core_params_default() - what a T4-class card is taken for until it is calibrated (architecture,
 * the scheduling rule); the caller adds what its chip can express as a slice
 */
void core_params_default(struct core_params *params);

/**
 * core_settings_default() - weight 100, no guarantee, no ceiling, class normal
 */
void core_settings_default(struct core_settings *settings);

/**
 * core_tenant_add() - @tenant takes part from now on; its former content is overwritten
 * Return: 0, -ENOSPC: tenant_max reached.
 */
int core_tenant_add(struct core *core, struct core_tenant *tenant,
		    const struct core_settings *settings);
void core_tenant_set(struct core *core, struct core_tenant *tenant,
		     const struct core_settings *settings);
/* It has no TSG any more. */
void core_tenant_remove(struct core *core, struct core_tenant *tenant);
void core_policy_set(struct core *core, enum core_policy policy, u64 cycle_ns);

/**
 * core_tenure_set() - the least window of an online tenant's neighbour from the next plan on
 */
void core_tenure_set(struct core *core, u64 tenure_ns);

/**
 * core_forgive() - nobody owes or is owed anything for what ran up to the last look, and nothing
 *                  follows from how it ran since @from_ns, when nothing could be enforced any more;
 *                  counters keep it
 */
void core_forgive(struct core *core, u64 from_ns);

/**
 * core_tsg_add() / core_tsg_remove() - @tenant NULL = nobody's; added unlisted
 * core_tsg_list() - the driver's list has it, or has it no longer
 */
void core_tsg_add(struct core *core, struct core_tsg *tsg, struct core_tenant *tenant);
void core_tsg_remove(struct core *core, struct core_tsg *tsg);
void core_tsg_list(struct core *core, struct core_tsg *tsg, bool listed);

/**
 * core_tenant_view() - what is in force for a tenant now
 */
void core_tenant_view(const struct core_tenant *tenant, struct core_view *out);

/**
 * core_tenant_counters() - its counters as of the last look; none ever goes back
 */
void core_tenant_counters(const struct core *core, struct core_tenant *tenant,
			  struct core_counters *out);

/*
 * plan.c
 */

/**
 * core_plan_due() - is it time for a new plan?
 */
bool core_plan_due(const struct core *core, u64 now_ns);

/**
 * core_plan_make() - shares, cycle, slices and budgets for who is awake now; O(n)
 */
void core_plan_make(struct core *core, u64 now_ns);

/*
 * activity.c
 */

/**
 * core_work() - a TSG that was not seen running has work or has none
 */
void core_work(struct core *core, struct core_tsg *tsg, u64 now_ns, bool has_work);

/*
 * lag.c
 */

/**
 * core_lag_ns() - entitled minus run, as of the last look
 */
s64 core_lag_ns(const struct core *core, const struct core_tenant *tenant);

/*
 * ledger.c
 */

/**
 * core_look() - charge the time since the last look
 * @tsg: who computes, with CORE_SEEN_TSG; it is observed as having work
 */
void core_look(struct core *core, u64 now_ns, enum core_seen seen, struct core_tsg *tsg);

/*
 * visit.c
 */

/**
 * core_visit_now() - the time on the engine that is on, up to the last look; it has no end yet.
 *                    Only while somebody listens
 */
void core_visit_now(const struct core *core, struct core_visit *visit);

/*
 * fit.c
 */

/**
 * core_fit_disturbed() - visits that began before @now_ns were cut by somebody else: they say
 *                        nothing of who fits the rotation
 */
void core_fit_disturbed(struct core *core, u64 now_ns);

/**
 * core_fit_overran() - its work was not cut in time at a window's end
 */
void core_fit_overran(struct core_tenant *tenant);

/**
 * core_fit_restart() - what was seen of it so far shows nothing
 * core_fit_forgive() - nor what was seen since @from_ns, which took it out of the rotation if it
 * did
 */
void core_fit_forgive(struct core *core, struct core_tenant *tenant, u64 from_ns);
void core_fit_restart(const struct core *core, struct core_tenant *tenant);

/*
 * pick.c
 */

/**
 * core_pick() - what is on from now
 *
 * Makes a plan when one is due, ends the window that is over, opens the next.
 * Return: the image in the slot must be replaced.
 */
bool core_pick(struct core *core, u64 now_ns);

/*
 * admit.c
 */

/**
 * core_admits() - is it in the image of the window that is on? Nobody's always is.
 */
bool core_admits(const struct core *core, const struct core_tsg *tsg);

/**
 * core_slice_ns() - the slice of a tenant's TSG in the window that is on
 */
u64 core_slice_ns(const struct core *core, const struct core_tsg *tsg);

/**
 * core_cut() - where the rotation of the window that is on is to go on
 */
void core_cut(const struct core *core, u64 now_ns, struct core_phase *out);

/**
 * core_cut_other() - beside online tenants: where the TSGs of the others are to go on
 */
void core_cut_other(const struct core *core, u64 now_ns, struct core_phase *out);

/**
 * core_taken() - the chip took the image: it starts with @first, @used_ns of its slice used
 */
void core_taken(struct core *core, u64 now_ns, struct core_tsg *first, u64 used_ns);

/*
 * next.c
 */

/**
 * core_next_ns() - when to look again: the next sample, the window's end, a refill, a plan
 */
u64 core_next_ns(struct core *core, u64 now_ns);

/**
 * core_samples() - is a look at @now_ns one of the ledger's? Not one that only asks whether a gap
 *                  of a window's owner goes on: it depends on what was seen, so it has no weight
 */
bool core_samples(const struct core *core, u64 now_ns);

/* Has it anything that may have work? */
static inline bool core_tenant_present(const struct core_tenant *tenant)
{
	return tenant->listed_count != 0;
}

static inline bool core_tenant_awake(const struct core_tenant *tenant)
{
	return tenant->awake_count != 0;
}

static inline bool core_tenant_busy(const struct core_tenant *tenant)
{
	return tenant->work_count != 0;
}

/* Is the rotation on until somebody waits who is not of it? */
static inline bool core_rotates_endlessly(const struct core *core)
{
	return core->window.kind == CORE_WINDOW_ROTATION && !core->window.owner;
}

/* A gap this long is one that a window's owner is waited for. */
static inline u64 core_hold_ns(const struct core *core)
{
	return 2 * core->params.switch_ns + core->params.takeoff_ns;
}

/* What a window costs beside its budget. */
static inline u64 core_window_cost_ns(const struct core *core)
{
	return core->params.switch_ns + core->params.takeoff_ns;
}

/* Does everybody have windows on the card's clock? */
static inline bool core_on_clock(const struct core *core)
{
	return core->policy == CORE_FIXED_SHARE || core->policy == CORE_EQUAL_SHARE;
}

/* Does it share what the others leave? */
static inline bool core_in_group(const struct core_tenant *tenant)
{
	return tenant->place == CORE_ROTATES || tenant->place == CORE_RANKED;
}

/* Is what it runs the owner's of the window that is on? */
static inline bool core_owns_window(const struct core *core, const struct core_tenant *tenant)
{
	const struct core_tenant *owner = core->window.owner;

	return owner &&
	       (owner == tenant || (owner == &core->rotation && tenant->place == CORE_ROTATES));
}

#endif
