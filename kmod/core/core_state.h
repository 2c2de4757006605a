/* SPDX-License-Identifier: GPL-2.0 */
/*
 * core_state.h - what the scheduling core remembers: of a TSG, of a tenant, of a runlist. Embedded
 * by its callers, written by the core alone, read through core.h. Words are those of theory.rst.
 */
#ifndef QGPU_CORE_STATE_H
#define QGPU_CORE_STATE_H

#include "core_types.h"

/* Awake = had work within the longer of this and one cycle. */
#define CORE_LINGER_NS 20000000ull
/* The cycle of a lone tenant. */
#define CORE_CYCLE_LONE_NS 20000000ull
/* Shortest budget of a window on the clock (10 * s if that is longer). */
#define CORE_BUDGET_MIN_NS 2000000ull
/* A budget of less than this is not worth a window: it is carried. */
#define CORE_CRUMB_NS 20000
/* Periods that a busy owner may carry. */
#define CORE_CARRY_PERIODS 10
/* Awake for so long at most, whatever the cycle. */
#define CORE_LINGER_MAX_NS 100000000ull
/* Least time between two plans; C / 4 if that is longer, up to the second. */
#define CORE_REPLAN_NS 5000000ull
#define CORE_REPLAN_MAX_NS 20000000ull
/* A ceiling's budget a period, at most. */
#define CORE_CAP_BUDGET_MAX_NS 10000000ull
/* A tail as long as this shows that a tenant does not fit the rotation. */
#define CORE_TAIL_LONG_NS 20000000ull
/* Beside online tenants: the least slice of the one other, the longest cycle of its windows in
 * least ones, and after how much uninterrupted online work offline tenants leave. */
#define CORE_OTHER_SLICE_MIN_NS 200000ull
#define CORE_TENURES_MAX 100ull
#define CORE_LEAVE_NS 5000000ull
/* What is promised to an online tenant that asks for nothing, where the card can keep it. */
#define CORE_ONLINE_WAKE_NS 500000ull
/* Held gaps that take more of somebody's windows are many. */
#define CORE_GAPS_MANY_PPM 200000u
/* Corrections by the ledger: distance and size. */
#define CORE_TRIM_EVERY_NS 1000000000ull
#define CORE_TRIM_MAX_PPM 100000
/* What those without a share of their own get together under fixed-share, at least. */
#define CORE_REST_MIN_PPM 10000u

struct core_tenant;

/* What a look found on the engine. */
enum core_seen {
	CORE_SEEN_IDLE,	  /* nobody computes, nothing is being switched */
	CORE_SEEN_SWITCH, /* save or load: charged to nobody */
	CORE_SEEN_NOBODY, /* work of a TSG that belongs to no tenant */
	CORE_SEEN_TSG,	  /* a tenant's TSG computes */
};

/**
 * struct core_tsg - one TSG; embedded in the caller's
 * @tenant: whose it is; NULL = nobody's: never planned, in every image
 * @next: next TSG of the same tenant
 * @listed: the driver's list has it; else it takes part in nothing
 * @awake: had work within the linger; counts in M and gets its part of the tenant's slice
 * @has_work: not seen without for 2 * s + p
 * @loud: had work at the last look
 * @work_seen_ns, @quiet_from_ns: when work was last seen, and when first none was
 * @planned_ns: its slice by the plan in force when its window is on; 0 = not admitted by any
 * @slice_ns: its slice in the slot, as the chip took it; 0 = not in the slot
 */
struct core_tsg {
	struct core_tenant *tenant;
	struct core_tsg *next;
	bool listed, awake, has_work, loud;
	u64 work_seen_ns, quiet_from_ns;
	u64 planned_ns;
	u64 slice_ns;
};

/**
 * struct core_phase - where a rotation was cut
 * @tsg: the TSG whose turn it was; NULL = from the start of the list
 * @used_ns: how much of its slice it had used
 * @slice_ns: the slice it had then
 */
struct core_phase {
	struct core_tsg *tsg;
	u64 used_ns, slice_ns;
};

/* How a tenant is scheduled. The first two share what the others leave: the group. */
enum core_place {
	CORE_ROTATES, /* a member of the rotation */
	CORE_RANKED,  /* windows of its own, the one furthest behind next */
	CORE_CLOCKED, /* windows of its own, on the card's clock */
	CORE_BESIDE,  /* online: admitted to the windows of all others */
};

/**
 * struct core_part - what a tenant has of each cycle, or is taken to have
 * @share_ppm, @least_ns: that share, or this if that is more; 0, 0 = nothing
 * @others_ns: so much all others may have in sum; U64_MAX = whatever they have
 */
struct core_part {
	u64 share_ppm, least_ns, others_ns;
};

/**
 * struct core_tenant - one tenant on one runlist; embedded in the caller's
 *
 * Settings and plan:
 * @asked: settings as given
 * @index: place among the tenants
 * @place: how it is scheduled by the plan
 * @share_ppm: of delivered time among the awake of the group (0 asleep), of wall time on the clock,
 *             among themselves of the online
 * @floor_ppm: of delivered time if all online tenants were busy; 0 without any
 * @shown_ppm: what it may count on now: its floor while online is awake, else its share
 * @cycle_slice_ns: T, its part of the cycle, over all its awake TSGs; 0 = asleep, or not of the
 * group
 * @period_ns, @budget_ns: F and b of its windows on the clock after scaling, or of its ceiling if
 *                         @capped; 0 = neither
 * @trim_ppm: correction of T by the ledger, -100000 ... 100000
 * @held: it is awake and its share is 0: not admitted
 * @part: parts.c's, while a cycle is found
 *
 * Fit:
 * @misfit: does not fit the rotation
 * @excess_ns: by how much its visits of late were longer than its slices
 * @drained_ns: how long it computed when the engine was to leave it, since it woke
 * @fit_var_us2: the variance of its run time when it woke
 * @fit_joined_ns: @fit_lag_ns when it became busy; @fit_began_ns: run_ns when evidence began
 * @fit_left_ns: when it was no longer busy, 0 = not since evidence began; @fit_level_v: what
 *               that added to core.levelled_v; @fit_round_ns: and took from @fit_lag_ns;
 *               @fit_changes: core.member_changes then
 * @fit_shared_v: for how much of the members' virtual time it was one since evidence began
 * @fit_lag_ns, @fit_v, @fit_run_ns: its lag among the members of the rotation since it woke,
 *                                 settled at @fit_v of their virtual time, and run_ns then
 * @levelled_v: core.levelled_v when @due_lag_ns was settled
 * @gap_ns: time without work at its visits of late; @gap_run_ns: what it ran then, up to when
 *          run_ns was @gap_from_ns
 * @observed_ns: when work of one of its TSGs was last looked for; @loud_count: TSGs that had some;
 *               @quiet_looks: how often it was found that none had since it woke
 * @misfit_from_ns, @stay_ns: since when, and how long at least
 * @gaps_ppm: what part of its windows its held gaps take
 * @clean: looks in a row that found it running in its windows and no gap
 * @hangs: kernels that ran longer than hang_ns while others waited
 *
 * Objects and activity:
 * @tsgs: its TSGs
 * @tsg_count, @listed_count, @awake_count, @work_count: of its TSGs
 *
 * Ledger; all cumulative in ns:
 * @run_ns: time on the engine
 * @edge_ns: sum of what the measured edges may be off
 * @var_us2: variance of what was sampled, in square microseconds
 * @had_work_ns, @work_from_ns: closed spans of having work, and where the open one began
 * @wait_shown_ns: wait as last shown, so that it never goes back
 * @waiting, @wait_from_ns: not seen running since then, and had work whenever that was looked for
 * @wait_throttled_ns: what was throttled up to then
 * @wait_max_ns: the longest wait so far, the open one included
 * @throttled_ns, @throttled_from_ns: the same for having work without budget
 * @throttled: an open span
 * @sharing: entitled to a part of what the group runs: busy, not held, not out of budget
 * @press_ns: so long it may wait before it takes the engine from those who take turns by lag, so
 * that what it was promised is kept; 0 = nothing to keep there
 * @next_promised: the next who has such a wait
 * @slept_at_ns, @slept_ppm: when it fell asleep, and its share then
 * @windows, @preempts, @overruns: windows opened, cuts, windows that ended later than p
 * @source: worst source used
 *
 * Lag, settled at @v_from:
 * @lag_ns: entitled - run up to then
 * @v_from, @floor_v_from, @run_from_ns: virtual times and run_ns at that point
 * @due_lag_ns, @due_run_ns, @due_var_us2: lag, run and variance since the last correction
 * @due_broken: was not busy all that time
 *
 * Windows:
 * @left_ns: budget left in the period that ends at @period_end_ns; < 0 = overrun
 * @deadline_ns: its key: @period_end_ns, one period less while it has a missed budget; if ranked
 *               the virtual time at which it would have what it ran
 * @heap, @heap_at: which heap it is in (CORE_HEAP_*) and where
 * @aside: budget.c's own
 * @phase: where its TSGs' rotation was cut at the end of its last window
 */
struct core_tenant {
	struct core_settings asked;
	u32 index;
	enum core_place place;
	u32 share_ppm, floor_ppm, shown_ppm;
	u64 cycle_slice_ns;
	u64 period_ns, budget_ns;
	bool capped;
	s32 trim_ppm;
	bool held;
	struct core_part part;

	bool misfit;
	s64 excess_ns, fit_lag_ns, fit_joined_ns, fit_level_v, fit_round_ns;
	u64 fit_left_ns;
	u64 fit_v, fit_run_ns, fit_began_ns, fit_shared_v, fit_changes, levelled_v;
	u64 gap_ns, gap_run_ns, gap_from_ns, observed_ns;
	u32 loud_count, quiet_looks;
	u64 drained_ns, fit_var_us2;
	u64 misfit_from_ns, stay_ns;
	u32 clean, gaps_ppm;
	u64 hangs;

	struct core_tsg *tsgs;
	u32 tsg_count, listed_count, awake_count, work_count;

	u64 run_ns;
	u64 edge_ns, var_us2;
	u64 had_work_ns, work_from_ns, wait_shown_ns;
	bool waiting;
	u64 wait_from_ns, wait_throttled_ns, wait_max_ns;
	struct core_hist waits, tails;
	u64 throttled_ns, throttled_from_ns;
	bool throttled, sharing;
	u64 press_ns;
	struct core_tenant *next_promised;
	u64 slept_at_ns;
	u32 slept_ppm;
	u64 windows, preempts, overruns;
	enum core_source source;

	s64 lag_ns;
	u64 v_from, floor_v_from, run_from_ns;
	s64 due_lag_ns;
	u64 due_run_ns, due_var_us2;
	bool due_broken;

	s64 left_ns;
	u64 period_end_ns, deadline_ns;
	u8 heap;
	u32 heap_at;
	struct core_tenant *aside;
	struct core_phase phase;
};

/* A binary heap of tenants, earliest deadline on top, ties by shortest period, then index;
 * @budgets_ns: sum of their budgets, which change only while they are in none. */
struct core_heap {
	struct core_tenant **at;
	u32 count;
	u64 budgets_ns;
	u8 id;
};

/* On the clock with budget; without budget, on the clock or under a ceiling; taking turns by lag.
 */
enum { CORE_HEAP_NONE, CORE_HEAP_READY, CORE_HEAP_WAITING, CORE_HEAP_RANKED };

/**
 * struct core_claim - one tenant as share.c sees it
 * @weight, @guarantee_ppm, @ceiling_ppm, @class_: as asked
 * @share_ppm: what it gets
 */
struct core_claim {
	u32 weight, guarantee_ppm, ceiling_ppm;
	enum core_class class_;
	u32 share_ppm;
	u64 remainder; /* share.c's own */
};

/* Kinds of windows: which TSGs are admitted. Nobody's are always. */
enum core_window_kind {
	CORE_WINDOW_DRIVER,    /* all listed, the driver's slices and order (best-effort) */
	CORE_WINDOW_ROTATION,  /* planned slices: all tenants, endless; or the rotation's members */
	CORE_WINDOW_EXCLUSIVE, /* the owner's, until its budget is used or it has no work */
	CORE_WINDOW_ONLINE,    /* all online and the owner, whose slices are short */
	CORE_WINDOW_QUIET,     /* no busy owner has budget: those not busy who have some */
};

/**
 * struct core_window - what is on
 * @kind, @owner: owner under EXCLUSIVE and ONLINE; under ROTATION &core.rotation when it has an
 * end; or NULL: it goes on until somebody waits
 * @budget_ns: most that the owner may run in it
 * @spent_ns: what it ran in it
 * @from_ns: when it was decided, or when the tail before it was seen last
 * @idle_ns: for how long the engine was idle after somebody had run in it; @gap: and its owner came
 *           back
 * @looks: that found its owner running
 * @fresh: the chip has had no image of it yet
 * @pressed: its owner had waited for as long as it may
 */
struct core_window {
	enum core_window_kind kind;
	struct core_tenant *owner;
	s64 budget_ns, spent_ns, idle_ns;
	u64 from_ns;
	bool gap, fresh, pressed;
	u32 looks;
};

/* Why somebody is no longer on the engine. */
enum core_visit_end {
	CORE_END_SLICE,	  /* its slice was over, or it gave way to the next of the rotation */
	CORE_END_NO_WORK, /* the engine idled behind it */
	CORE_END_WINDOW,  /* somebody else's window began */
	CORE_END_BUDGET,  /* it had used up its budget or ceiling */
	CORE_END_TAIL,	  /* work that could not be cut ended, late */
};

/**
 * struct core_visit - a time in which the looks found the same on the engine
 * @seen, @tenant: what and, with CORE_SEEN_TSG, whose; NULL: it was removed meanwhile
 * @from_ns, @to_ns: halfway between the looks that differ
 * @end: with CORE_SEEN_TSG, of one that is over
 * @kind, @due: the window that was on at its end, and its owner; NULL: whoever is next
 */
struct core_visit {
	enum core_seen seen;
	const struct core_tenant *tenant;
	u64 from_ns, to_ns;
	enum core_visit_end end;
	enum core_window_kind kind;
	const struct core_tenant *due;
};

/**
 * struct core_totals - the runlist's, cumulative, ns: with all tenants' run_ns they add up to the
 *                      elapsed time
 */
struct core_totals {
	u64 switch_ns, idle_ns, nobody_ns;
};

/**
 * struct core - the scheduler's state for one runlist
 *
 * @params, @policy, @cycle_asked_ns: as given
 * @tenants, @tenant_count, @tenant_max: all of them; @claims: scratch of one for each
 * @rotation: the rotation as one server: share, run, lag and work_count are the sums over its busy
 *            members, those without windows of their own; not among @tenants
 *
 * Plan:
 * @cycle_ns: C in force; 0 = nobody of the group is awake
 * @online_count: tenants of class online that are there; @other_slice_ns: slice of the one other
 * @awake_tenants, @awake_tsgs: who has slices by activity; M = awake_tsgs
 * @dirty: who is awake or what was asked changed since the plan; @urgent: the policy did, so the
 *         plan in force is one of the former, or somebody woke who can wait for no later one
 * @judged: whose turn it was to be judged without a look that found it
 * @stale: the image in the slot is not what the window and the plan say; @let_go: somebody whose
 *         ceiling's period ended is to be in it again
 * @limited: somebody awake has a budget; @turns: does not fit the rotation
 * @planned_at_ns, @trimmed_at_ns: when that was last done
 * @keep_ns: least time to the next plan, so that a wait that was promised has two at most in it
 * @promised: the first of those whose waits are kept beside windows by lag; @press_at_ns: nobody of
 *            them has waited for as long as it may before; @press_room_ns: what all of them, one
 * after the other, may run then
 *
 * Ledger:
 * @looked_ns, @seen, @seen_tsg, @seen_tenant: the last look
 * @seen_before: the look before the last saw the same
 * @on_visit, @listener: who is told of each time on the engine when it is over; NULL: nobody; may
 *                       not sleep; @seen_from_ns: when the one that is on began
 * @tail: somebody outside the image is still computing (set by turn.c): looked at closely
 * @draining: the engine is to leave whom the look found and cannot (set by turn.c); @drain_ns: for
 *            how long; @drain_told: that was longer than it may; @hangs, @hung: how often so far,
 *            and whose it was last
 * @followed: a tail was on, and nobody has been seen on the engine since
 * @busy_tenants: how many; @contended_from_ns: since when two of the rotation are
 * @sharing_count: tenants of the group that are sharing
 * @v: virtual time; @busy_ppm: sum of shares of the sharing; @busy_recip: 10^6 * 2^20 / busy_ppm
 * @floor_v, @floor_busy_ppm, @floor_recip: the same by floors, for windows without online
 * @floor_lag_ns: what the group is behind its floors; @protecting: so it has windows without online
 * @online_busy, @online_from_ns: busy online tenants, and since when there are any
 * @member_v, @member_recip: the same of the rotation's members; the sum is @rotation.share_ppm
 * @member_changes: how often the members changed, less those who were back at once; never the same
 *                  again after a change that stayed
 * @levelled_v: what of @member_v no member ran: what those who left had run too little, and what
 *              newcomers ran before they had a share
 * @visit, @visit_from_ns: who was last seen running, and since when without a break
 * @visit_met: a look found it running, so a switch ends the visit
 * @look_cell_ns, @look_at_ns, @rng: the cell of the grid the next look is in; when; the jitter
 */
struct core {
	struct core_params params;
	enum core_policy policy;
	u64 cycle_asked_ns;

	struct core_tenant **tenants;
	u32 tenant_count, tenant_max;
	struct core_claim *claims;
	struct core_tenant rotation;

	u64 cycle_ns;
	u32 online_count, judged;
	u64 other_slice_ns;
	u32 awake_tenants, awake_tsgs;
	bool dirty, urgent, stale, let_go, limited, turns;
	u64 planned_at_ns, trimmed_at_ns, keep_ns;
	struct core_tenant *promised;
	u64 press_at_ns, press_room_ns;

	u64 looked_ns;
	enum core_seen seen;
	struct core_tsg *seen_tsg;
	struct core_tenant *seen_tenant;
	bool seen_before, tail, draining, drain_told, followed;
	u64 drain_ns;
	u64 hangs;
	struct core_tenant *hung;
	struct core_totals totals;
	void (*on_visit)(void *listener, const struct core_visit *visit);
	void *listener;
	u64 seen_from_ns;
	u32 busy_tenants;
	u64 contended_from_ns;
	u32 sharing_count;
	u64 v, busy_recip;
	u64 floor_v, floor_recip;
	u32 floor_busy_ppm;
	s64 floor_lag_ns;
	bool protecting;
	u32 online_busy;
	u64 online_from_ns;
	u64 member_v, levelled_v, member_recip, member_changes;
	u32 busy_ppm;
	struct core_tsg *visit;
	u64 visit_from_ns;
	bool visit_met;
	u64 look_cell_ns, look_at_ns, rng;

	struct core_window window;
	struct core_heap ready, waiting, ranked;
};

#endif
