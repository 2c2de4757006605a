// SPDX-License-Identifier: GPL-2.0
/*
 * ledger.c - what was used: charges the time between looks, keeps its error, and the corrections
 * that follow from it. The same numbers bill and decide. Fed by turn.c; never decides who runs.
 */
#include "core/core_inside.h"

/* Two looks this near are the edge of a window, measured; further apart they are samples. */
#define EDGE_SPAN_MAX_NS 100000ull

static void charge(struct core *core, enum core_seen seen, struct core_tenant *tenant, u64 span_ns,
		   u64 now_ns)
{
	switch (seen) {
	case CORE_SEEN_IDLE:
		core->totals.idle_ns += span_ns;
		if (core->window.spent_ns)
			core->window.idle_ns += (s64)span_ns;
		break;
	case CORE_SEEN_SWITCH:
		core->totals.switch_ns += span_ns;
		break;
	case CORE_SEEN_NOBODY:
		core->totals.nobody_ns += span_ns;
		break;
	case CORE_SEEN_TSG:
		tenant->run_ns += span_ns;
		tenant->left_ns -= (s64)span_ns;
		if (core_owns_window(core, tenant))
			core->window.spent_ns += (s64)span_ns;
		core_lag_charge(core, tenant, span_ns);
		core_budget_used(core, tenant, now_ns);
		break;
	}
}

/* The state changed somewhere in the last @span_ns: what that adds to a tenant's error. */
static void add_error(struct core_tenant *tenant, u64 span_ns, bool glimpse)
{
	u64 us = env_div(span_ns, 1000) + 1;

	if (!tenant)
		return;
	if (span_ns <= EDGE_SPAN_MAX_NS) {
		tenant->edge_ns += span_ns >> 1;
		return;
	}
	tenant->var_us2 += glimpse ? us * us : env_div(us * us, 12);
	tenant->source = CORE_BY_SAMPLES;
}

/*
 * When did the visit that @now_ns found begin? It lies between the last two looks; a switch that
 * the last look did not see was in between as well, one that it saw was half over on average.
 */
static u64 visit_begin(const struct core *core, u64 now_ns)
{
	u64 span_ns = now_ns - core->looked_ns;
	u64 switch_ns = min(core->params.switch_ns, span_ns);

	switch (core->seen) {
	case CORE_SEEN_SWITCH:
		return core->looked_ns + (switch_ns >> 1);
	case CORE_SEEN_TSG:
	case CORE_SEEN_NOBODY:
		return core->looked_ns + ((span_ns + switch_ns) >> 1);
	case CORE_SEEN_IDLE:
		break;
	}
	return core->looked_ns + (span_ns >> 1);
}

/* Who runs, and since when without a break, for core_cut(). */
static void follow_visit(struct core *core, u64 now_ns, enum core_seen seen, struct core_tsg *tsg)
{
	const struct core_phase *begun = &core_server(core)->phase;
	u64 begin_ns;

	if (seen != CORE_SEEN_TSG || now_ns < core->looked_ns)
		return;
	if (core->visit == tsg &&
	    (core->seen == CORE_SEEN_TSG ? core->seen_tsg == tsg :
					   core->seen != CORE_SEEN_IDLE && !core->visit_met)) {
		core->visit_met = true;
		return;
	}
	begin_ns = visit_begin(core, now_ns);
	if (core->visit && core->visit != tsg)
		core_fit_visit_ended(core, tsg, begin_ns);
	/* The image's first, after a tail. */
	if (core->followed && begun->tsg == tsg)
		begin_ns -= begun->used_ns;
	core->visit = tsg;
	core->visit_from_ns = begin_ns;
	core->visit_met = true;
	/* Should the window end in an online tenant's visit, the owner's next has its turn. */
	if (core->window.owner == tsg->tenant)
		tsg->tenant->phase = (struct core_phase){ tsg, tsg->slice_ns, tsg->slice_ns };
}

/* From one who has left to the next, who is not there yet. */
static bool is_between(const struct core *core, u64 now_ns, enum core_seen seen)
{
	return (seen == CORE_SEEN_SWITCH || seen == CORE_SEEN_IDLE) &&
	       now_ns < core->window.from_ns + 2 * core_window_cost_ns(core);
}

/* What anybody ran in a time in which nobody looked is a guess, and nothing follows from it. */
static void looks_missed(struct core *core, u64 span_ns, u64 now_ns)
{
	struct core_tenant *tenant;
	u32 i;

	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		if (!core_tenant_awake(tenant))
			continue;
		add_error(tenant, span_ns, true);
		tenant->due_broken = true;
		core_fit_restart(core, tenant);
		if (tenant->waiting)
			core_wait_begins(core, tenant, now_ns);
	}
}

void core_look(struct core *core, u64 now_ns, enum core_seen seen, struct core_tsg *tsg)
{
	struct core_tenant *tenant = seen == CORE_SEEN_TSG ? tsg->tenant : NULL;
	u64 span_ns = now_ns > core->looked_ns ? now_ns - core->looked_ns : 0;
	u64 half_ns = span_ns >> 1;

	core_visit_look(core, now_ns, seen, tenant);
	core_wait_seen(core, tenant, span_ns);
	/* Work first: whoever is charged is busy. */
	if (tenant) {
		core_work(core, tsg, now_ns, true);
		tenant->waiting = false;
	}
	follow_visit(core, now_ns, seen, tsg);
	if (tenant && core_owns_window(core, tenant)) {
		core->window.looks++;
		core->window.gap |= core->window.idle_ns != 0;
	}
	/* A tail is not its owner's time. */
	if (core->tail)
		core->window.from_ns = now_ns;
	core->followed = core->tail || (core->followed && is_between(core, now_ns, seen));
	if (tenant && core->draining) {
		core_fit_drains(core, tenant, span_ns, now_ns);
	} else {
		/* Whoever drained is who was seen last. */
		if (core->drain_ns && core->seen_tenant)
			core_hist_add(&core->seen_tenant->tails, core->drain_ns);
		core->drain_ns = 0;
		core->drain_told = false;
	}
	charge(core, core->seen, core->seen_tenant, span_ns - half_ns, now_ns);
	charge(core, seen, tenant, half_ns, now_ns);

	if (core_looks_missed(core, span_ns))
		looks_missed(core, span_ns, now_ns);
	if (seen != core->seen || tenant != core->seen_tenant) {
		add_error(core->seen_tenant, span_ns, !core->seen_before);
		add_error(tenant, span_ns, !core->seen_before);
		core->seen_before = false;
	} else {
		core->seen_before = true;
	}
	core->looked_ns = now_ns;
	core->seen = seen;
	core->seen_tsg = tsg;
	core->seen_tenant = tenant;
}

/* Integer square root, rounded up. */
static u64 root(u64 value)
{
	u64 r = 0, bit = 1ull << 62;

	while (bit > value)
		bit >>= 2;
	for (; bit; bit >>= 2) {
		if (value >= r + bit) {
			value -= r + bit;
			r = (r >> 1) + bit;
		} else {
			r >>= 1;
		}
	}
	return r + (value != 0);
}

u64 core_ledger_chance_ns(u64 var_us2)
{
	return 3000 * root(var_us2);
}

void core_ledger_restart_due(struct core_tenant *tenant)
{
	tenant->due_lag_ns = 0;
	tenant->due_run_ns = tenant->run_ns;
	tenant->due_var_us2 = tenant->var_us2;
	tenant->due_broken = false;
}

/* Correct one tenant's T if the ledger is sure that it is off. Return: it changed. */
static bool trim_one(struct core *core, struct core_tenant *tenant)
{
	u64 cycle_ns = core->cycle_ns + core->awake_tsgs * core->params.switch_ns;
	u64 spread_ppm = env_div((u64)tenant->share_ppm * (CORE_PPM - tenant->share_ppm), CORE_PPM);
	u64 sure_ns, off_ns, entitled_ns, chance_ns;
	s32 trim_ppm;

	core_lag_settle(core, tenant);
	/* Who was not busy all that time, or has no share yet, is off nothing. */
	if (tenant->due_broken || !tenant->sharing || !tenant->share_ppm ||
	    tenant->place != CORE_ROTATES) {
		core_ledger_restart_due(tenant);
		return false;
	}
	off_ns = (u64)(tenant->due_lag_ns < 0 ? -tenant->due_lag_ns : tenant->due_lag_ns);
	chance_ns = core_ledger_chance_ns(tenant->var_us2 - tenant->due_var_us2);
	sure_ns = env_mul_div(cycle_ns, spread_ppm, CORE_PPM);
	/* Twice what may be chance: then nearly all of it is not, and nobody is corrected in vain.
	 * Who goes idle in its slices loses by that: a sigma is enough. */
	sure_ns = core->turns || core_fit_goes_idle(tenant) ? sure_ns + chance_ns / 3 :
							      2 * (sure_ns + chance_ns);
	if (off_ns <= sure_ns)
		return false;
	entitled_ns = tenant->run_ns - tenant->due_run_ns + (u64)max(tenant->due_lag_ns, 0ll);
	off_ns = min(env_mul_div(off_ns, CORE_PPM, max(entitled_ns, 1ull)), (u64)CORE_TRIM_MAX_PPM);
	trim_ppm = tenant->trim_ppm + (tenant->due_lag_ns < 0 ? -(s32)off_ns : (s32)off_ns);
	trim_ppm = clamp(trim_ppm, -CORE_TRIM_MAX_PPM, CORE_TRIM_MAX_PPM);
	core_ledger_restart_due(tenant);
	if (trim_ppm == tenant->trim_ppm)
		return false;
	tenant->trim_ppm = trim_ppm;
	return true;
}

bool core_ledger_trim(struct core *core, u64 now_ns)
{
	bool changed = false;
	u32 i;

	if (core->policy != CORE_BURST_SHARE || core->rotation.work_count < 2 ||
	    now_ns < core->trimmed_at_ns + CORE_TRIM_EVERY_NS)
		return false;
	core->trimmed_at_ns = now_ns;
	for (i = 0; i < core->tenant_count; i++)
		changed |= trim_one(core, core->tenants[i]);
	return changed;
}

void core_tenant_counters(const struct core *core, struct core_tenant *tenant,
			  struct core_counters *out)
{
	u64 work_ns = tenant->had_work_ns;

	/* Work may have been found after the last look. */
	if (core_tenant_busy(tenant) && core->looked_ns > tenant->work_from_ns)
		work_ns += core->looked_ns - tenant->work_from_ns;
	if (work_ns > tenant->run_ns)
		tenant->wait_shown_ns = max(tenant->wait_shown_ns, work_ns - tenant->run_ns);
	out->run_ns = tenant->run_ns;
	out->run_err_ns = tenant->edge_ns + core_ledger_chance_ns(tenant->var_us2);
	out->wait_ns = tenant->wait_shown_ns;
	out->wait_max_ns = tenant->wait_max_ns;
	out->throttled_ns = core_throttled_ns(core, tenant);
	out->windows = tenant->windows;
	out->preempts = tenant->preempts;
	out->overruns = tenant->overruns;
	out->hangs = tenant->hangs;
	out->source = tenant->source;
	out->waits = tenant->waits;
	out->tails = tenant->tails;
}
