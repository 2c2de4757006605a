/* SPDX-License-Identifier: GPL-2.0 */
/*
 * core.h - the scheduling core: who may use an engine, for how long, and what was used.
 *
 * Pure decisions: time, looks at the chip and settings go in; an admitted set, its slices and an
 * end come out. turn.c feeds it and carries its answers to the chip. No lock, no I/O, and no
 * allocation after core_init(). Everything on one struct core is serialised by the caller.
 */
#ifndef QGPU_CORE_H
#define QGPU_CORE_H

#include "core_types.h"

/* Awake = had work within the longer of this and one cycle. */
#define CORE_LINGER_NS 20000000ull
/* Shortest period of an exclusive window, and shortest budget (10 * s if that is longer). */
#define CORE_PERIOD_MIN_NS 20000000ull
#define CORE_BUDGET_MIN_NS 2000000ull
/* What those without a share of their own get together under fixed-share, at least. */
#define CORE_REST_MIN_PPM 10000u

struct core_tenant;

/* What a look found on the engine. */
enum core_seen {
	CORE_SEEN_IDLE,         /* nobody computes, nothing is being switched */
	CORE_SEEN_SWITCH,       /* save or load: charged to nobody */
	CORE_SEEN_NOBODY,       /* work of a TSG that belongs to no tenant */
	CORE_SEEN_TSG,          /* a tenant's TSG computes */
};

/**
 * struct core_tsg - one TSG; embedded in the caller's
 * @tenant: whose it is; NULL = nobody's: never planned, in every image
 * @next: next TSG of the same tenant
 * @listed: the driver's list has it; else it takes part in nothing
 * @awake: had work within the linger; counts in M and gets its part of the tenant's slice
 * @has_work: at its last observation
 * @work_seen_ns: when work was last seen; 0 = never
 * @planned_ns: its slice by the plan in force; 0 = not admitted by any window
 * @slice_ns: its slice in the slot, as the chip took it; 0 = not in the slot
 */
struct core_tsg {
	struct core_tenant *tenant;
	struct core_tsg *next;
	bool listed, awake, has_work;
	u64 work_seen_ns;
	u64 planned_ns;
	u64 slice_ns;
};

/* How a run time's error is kept; see "Ledger" above. */
struct core_error {
	u64 bound_ns;           /* sum of what every measured edge may be off */
	u64 var_us2;            /* variance of what was sampled, in square microseconds */
};

/**
 * struct core_tenant - one tenant on one runlist; embedded in the caller's
 *
 * Settings and plan:
 * @asked: settings as given
 * @share_ppm: of delivered time among those awake (rotation), of wall time (windows); 0 asleep
 * @cycle_slice_ns: T, its part of the rotation's cycle, over all its TSGs; 0 = not in rotation
 * @period_ns, @budget_ns: F and b of its exclusive windows after scaling; 0 = no windows
 * @trim_ppm: correction of T by the ledger, -100000 ... 100000
 * @trim_next_ppm: what it becomes at the next plan
 *
 * Objects and activity:
 * @tsgs: its TSGs
 * @tsg_count, @listed_count, @awake_count, @work_count: of its TSGs
 * @awake: awake_count != 0 at the last observation
 * @busy: had work at the last observation of one of its TSGs
 * @work_seen_ns: newest of its TSGs
 *
 * Ledger; all cumulative in ns:
 * @run_ns, @error: time on the engine and how far it may be off
 * @had_work_ns, @work_from_ns: closed spans of having work, and where the open one began
 * @throttled_ns, @throttled_from_ns: the same for having work without budget; 0 = not throttled
 * @windows, @preempts, @overruns: exclusive windows opened, cuts, ends later than p
 * @source: worst source used
 *
 * Lag (see above), settled at @v_from:
 * @lag_ns: entitled - run up to then
 * @v_from, @run_from_ns: virtual time and run_ns at that point
 * @due_ns, @due_var_us2: entitlement and variance since the last correction
 *
 * Windows:
 * @left_ns: budget left in the period that ends at @period_end_ns; < 0 = overrun
 * @heap_at, @heap: where it is in the heap it is in
 */
struct core_tenant {
	struct core_settings asked;
	u32 index;
	u32 share_ppm;
	u64 cycle_slice_ns;
	u64 period_ns, budget_ns;
	s32 trim_ppm, trim_next_ppm;

	struct core_tsg *tsgs;
	u32 tsg_count, listed_count, awake_count, work_count;
	bool awake, busy;
	u64 work_seen_ns;

	u64 run_ns;
	struct core_error error;
	u64 had_work_ns, work_from_ns;
	u64 wait_shown_ns;
	u64 throttled_ns, throttled_from_ns;
	u64 windows, preempts, overruns;
	enum core_source source;

	s64 lag_ns;
	u64 v_from, run_from_ns;
	s64 due_ns;
	u64 due_run_ns;
	u64 due_var_us2;

	s64 left_ns;
	u64 period_end_ns;
	u32 heap_at;
	u8 heap;
};

struct core;

/* What the glue shows of a tenant. */
struct core_view {
	u32 share_ppm;          /* effective */
	u64 slice_ns;           /* of each of its TSGs, as the chip took it; 0 = none in the slot */
	u64 window_ns;          /* budget a period under exclusive windows; 0 = in rotation */
	bool awake;
	u32 tsgs;
};

/**
 * core_settings_default() - weight 100, no guarantee, no ceiling, class normal
 */
void core_settings_default(struct core_settings *settings);

/**
 * core_tenant_view() - what is in force for a tenant now
 */
void core_tenant_view(const struct core_tenant *tenant, struct core_view *out);

/**
 * core_tenant_counters() - its counters as of the last look; none ever goes back
 */
void core_tenant_counters(struct core_tenant *tenant, struct core_counters *out);

/* check.c: what is refused at configuration time. */
enum core_field {
	CORE_FIELD_NONE,
	CORE_FIELD_POLICY,
	CORE_FIELD_CYCLE,
	CORE_FIELD_WEIGHT,
	CORE_FIELD_GUARANTEE,
	CORE_FIELD_CEILING,
	CORE_FIELD_CLASS,
	CORE_FIELD_WAKE,
	CORE_FIELD_HANG,
};

/**
 * struct core_refusal - why a plan is refused
 * @error: negative errno, what core_check() returned
 * @tenant: index into the settings given; U32_MAX = the card's own settings
 * @field: the guilty setting
 * @sum_ppm: with -ENOSPC, what the guarantees add up to with @tenant's
 */
struct core_refusal {
	int error;
	u32 tenant;
	enum core_field field;
	u64 sum_ppm;
};

/**
 * core_check() - may this be set? Looks at settings only; changes nothing.
 * @settings: @count settings as they would be after the change, in the order of which the first
 *            one that goes over is named
 *
 * Return: 0; -ERANGE a number outside its range; -EOPNOTSUPP understood, not enforced by this
 * version; -ENOSPC guarantees over 100 %. @refusal (may be NULL) says which.
 */
int core_check(const struct core_params *params, enum core_policy policy, u64 cycle_ns,
	       const struct core_settings *settings, u32 count, struct core_refusal *refusal);

#endif
