/* SPDX-License-Identifier: GPL-2.0 */
/*
 * core_inside.h - what the files of the scheduling core tell each other. Nobody else calls this;
 * tests do.
 */
#ifndef QGPU_CORE_INSIDE_H
#define QGPU_CORE_INSIDE_H

#include "bound.h"
#include "core.h"

/*
 * share.c
 */

/**
 * core_share_split() - shares of claims that are all awake: guarantees, the rest by weight over
 * online and normal up to their ceilings, what is left to offline by weight
 *
 * The shares add up to @total_ppm exactly, unless all are at their ceiling. Guarantees that add up
 * to more are scaled down.
 */
void core_share_split(struct core_claim *claims, u32 count, u32 total_ppm);

/**
 * core_share_windows() - shares under fixed-share: guarantees; claims without one get what is
 * unassigned, together at least CORE_REST_MIN_PPM, by weight up to their ceilings
 */
void core_share_windows(struct core_claim *claims, u32 count);

/*
 * place.c; used between the files of the core: how each is scheduled, and then its share
 */
void core_place_all(struct core *core, u64 now_ns);
void core_place_shares(struct core *core);

/*
 * plan.c
 */

/* Used between the files of the core: when the next plan may be made; what windows on the clock
 * take from all others, whose gaps are held for as long as they run; that, and what ceilings take,
 * from those who rotate. */
u64 core_plan_from_ns(const struct core *core);
struct core_load core_windows_load(const struct core *core);
struct core_load core_group_load(const struct core *core);

/**
 * core_parts_cycle() - the longest cycle of which the others of nobody have more than its
 * part.others_ns; U64_MAX = it does not matter (parts.c)
 */
u64 core_parts_cycle(const struct core *core);

/*
 * online.c; used between the files of the core: @online_cycle_ns is what the slices of online
 * tenants are parts of; then those of one of them.
 */
void core_online_plan(struct core *core, u64 *online_cycle_ns);
void core_online_slices(struct core *core, struct core_tenant *tenant, u64 online_cycle_ns);

/*
 * visit.c
 */

/**
 * core_visit_look() - before a look is charged: does it end what was seen last?
 */
void core_visit_look(struct core *core, u64 now_ns, enum core_seen seen,
		     const struct core_tenant *tenant);

/*
 * wait.c; used between the files of the core
 */

/* Nobody looked for @span_ns, which is long, as when the card did not answer. */
bool core_looks_missed(const struct core *core, u64 span_ns);
/* How long it had work and no budget, up to the last look. */
u64 core_throttled_ns(const struct core *core, const struct core_tenant *tenant);
/* One more that lasted so long. */
void core_hist_add(struct core_hist *hist, u64 ns);
void core_wait_begins(struct core *core, struct core_tenant *tenant, u64 from_ns);
/* A look found work of it, or none, while it was not running; @now runs, @span_ns after the look
 * before. */
void core_wait_observed(struct core *core, struct core_tenant *tenant, u64 now_ns, bool was_quiet);
void core_wait_seen(struct core *core, struct core_tenant *now, u64 span_ns);
/* When those who were promised a wait take the engine from windows by lag, by a new plan. */
void core_wait_plan(struct core *core);

/*
 * lag.c
 */

/* Used between the files of the core: settle lag before a share changes; it takes part in what is
 * shared, or no longer; places, shares or who is busy changed; it ran. */
void core_lag_settle(struct core *core, struct core_tenant *tenant);
void core_lag_join(struct core *core, struct core_tenant *tenant, u64 now_ns);
void core_lag_leave(struct core *core, struct core_tenant *tenant, u64 now_ns);
void core_lag_sum_busy(struct core *core, u64 now_ns);
void core_lag_charge(struct core *core, const struct core_tenant *tenant, u64 span_ns);
/* @times of @ns by @by; @ns may be less than nothing. */
s64 core_scaled(s64 ns, u32 times, u32 by);

/*
 * ledger.c
 */

/* Used between the files of the core: what a tenant is corrected by begins anew. */
void core_ledger_restart_due(struct core_tenant *tenant);
/* 3 standard deviations of a variance in square microseconds. */
u64 core_ledger_chance_ns(u64 var_us2);
/* Corrections from the ledger. Return: a trim changed. */
bool core_ledger_trim(struct core *core, u64 now_ns);

/*
 * fit.c
 */

/* Used between the files of the core: what was seen of it since @from_ns shows nothing; evidence
 * starts afresh, or its share is to change; work was looked for, and before that none had been seen
 * if @was_quiet; the visit that is followed ended, @next runs since; it computes though the engine
 * is to leave it; an owner's window closes; lags after a plan. */
void core_fit_settle(const struct core *core, struct core_tenant *tenant);
void core_fit_leaves(const struct core *core, const struct core_tenant *leaver);
bool core_fit_goes_idle(const struct core_tenant *tenant);
/* Do its gaps take much of its windows? */
bool core_fit_gaps_are_many(const struct core_tenant *tenant);
s64 core_fit_debt_ns(const struct core_tenant *tenant);
void core_fit_observed(struct core_tenant *tenant, u64 now_ns, bool was_quiet);
void core_fit_visit_ended(struct core *core, const struct core_tsg *next, u64 next_from_ns);
void core_fit_drains(struct core *core, struct core_tenant *tenant, u64 span_ns, u64 now_ns);
void core_fit_window(struct core *core, u64 now_ns);
void core_fit_turn(struct core *core, u64 now_ns);

/*
 * heap.c; used by budget.c. core_heap_before() - Return: @a comes before @b; no two are equal.
 */
bool core_heap_before(const struct core_tenant *a, const struct core_tenant *b);
void core_heap_push(struct core_heap *heap, struct core_tenant *tenant);
void core_heap_remove(struct core_heap *heap, struct core_tenant *tenant);

/*
 * budget.c; used between the files of the core
 */

/* Into the queue it belongs to, if it is in none and owns no window; out of it. */
void core_budget_queue(struct core *core, struct core_tenant *tenant, u64 now_ns);
void core_budget_unqueue(struct core *core, struct core_tenant *tenant);
/* The same after its window: what it is owed still is no reason to pass others who are. */
void core_budget_had_turn(struct core *core, struct core_tenant *tenant, u64 now_ns);
/* It became busy, became idle, ran. */
void core_budget_busy(struct core *core, struct core_tenant *tenant, u64 now_ns);
void core_budget_idle(struct core *core, struct core_tenant *tenant, u64 now_ns);
void core_budget_used(struct core *core, struct core_tenant *tenant, u64 now_ns);
/* Refill one for the periods that ended; two at most of either queue whose period ended. */
void core_budget_roll(struct core_tenant *tenant, u64 now_ns);
void core_budget_refill(struct core *core, u64 now_ns);
/* New numbers. What was granted for time to come is taken back at the former rate and granted at
 * the new one, so no change of period gives or takes anything. */
void core_budget_set(struct core *core, struct core_tenant *tenant, u64 budget_ns, u64 period_ns,
		     u64 now_ns);
/* What it ran too much or too little in former periods is forgotten. */
void core_budget_forgive(struct core *core, struct core_tenant *tenant, u64 now_ns);
/* After a plan: who has used up its ceiling waits, nobody else does. */
void core_budget_settle(struct core *core, struct core_tenant *tenant, u64 now_ns);
bool core_budget_allows(const struct core_tenant *tenant, u64 now_ns);
struct core_tenant *core_budget_take_ready(struct core *core, u64 now_ns);
struct core_tenant *core_budget_take_ranked(struct core *core,
					    bool (*may)(const struct core *core,
							const struct core_tenant *tenant));

/*
 * pick.c
 */

/* Used between the files of the core: its share or place changed; it goes away; the owner has run
 * its budget; when offline tenants leave for online. */
void core_pick_replanned(struct core *core, struct core_tenant *tenant, u64 now_ns);
void core_pick_forget(struct core *core, struct core_tenant *tenant, u64 now_ns);
bool core_window_used_up(const struct core *core);
/* The window that is on has no owner, and nothing calls for another. */
bool core_rests(const struct core *core);
u64 core_leave_ns(const struct core *core);
/* From when on an owner on the clock would miss its period's end if it waited any longer. */
u64 core_pressed_from_ns(const struct core *core, const struct core_tenant *owner);
/* The same for all owners with budget, one after the other. */
u64 core_ready_from_ns(const struct core *core);

/*
 * admit.c
 */

/* Used between the files of the core: the window closes. */
void core_cut_keep(struct core *core, u64 now_ns);

/* A server's held gaps may be as long as its run, not more: all others pay for them. */
static inline u64 core_gaps_end_ns(const struct core *core)
{
	return core->window.from_ns + core_window_cost_ns(core) + 2 * (u64)core->window.budget_ns;
}

/* From when on it takes the engine from those who take turns by lag. */
static inline u64 core_presses_from_ns(const struct core_tenant *tenant)
{
	return tenant->press_ns && tenant->waiting ? tenant->wait_from_ns + tenant->press_ns :
						     U64_MAX;
}

/* In whose turn is what runs in the window that is on? */
static inline struct core_tenant *core_server(struct core *core)
{
	return core->window.owner ? core->window.owner : &core->rotation;
}

#endif
