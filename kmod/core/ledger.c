// SPDX-License-Identifier: GPL-2.0
/*
 * ledger.c - what was used: charges the time between looks, keeps its error, who is awake and
 * busy, lag, and the corrections that follow from it. The same numbers bill and decide. Fed by
 * turn.c; never decides who runs.
 */
#include "core/core.h"

#define RECIP_SHIFT 20
/* Below this a product with busy_recip fits 64 bits. */
#define RECIP_SPAN_MAX_NS (1ull << 23)
#define LAG_CAP_NS 1000000000ll
/* A sleeper's debt stands for so long: whoever wakes twice in a second has one tail in it. */
#define DEBT_STANDS_NS 1000000000ull
/* Two looks this near are the edge of a window, measured; further apart they are samples. */
#define EDGE_SPAN_MAX_NS 100000ull
/* So many distances of looks between two of them, with two or more awake, are no sampling. */
#define LOOKS_MISSED 16

static u64 recip(u32 sum_ppm)
{
	return sum_ppm ? env_div((u64)CORE_PPM << RECIP_SHIFT, sum_ppm) : 0;
}

s64 core_scaled(s64 ns, u32 times, u32 by)
{
	u64 out = env_mul_div((u64)(ns < 0 ? -ns : ns), times, max(by, 1u));

	return ns < 0 ? -(s64)out : (s64)out;
}

/* By what a virtual time advances: @delivered_ns over the shares of the busy. O(1), no division. */
static u64 virtual_ns(u64 delivered_ns, u32 sum_ppm, u64 sum_recip)
{
	if (likely(delivered_ns < RECIP_SPAN_MAX_NS))
		return delivered_ns * sum_recip >> RECIP_SHIFT;
	return sum_ppm ? env_mul_div(delivered_ns, CORE_PPM, sum_ppm) : 0;
}

static void set_busy_ppm(struct core *core, u32 busy_ppm, u32 floor_ppm)
{
	core->busy_ppm = busy_ppm;
	core->busy_recip = recip(busy_ppm);
	core->floor_busy_ppm = floor_ppm;
	core->floor_recip = recip(floor_ppm);
}

static void set_members_ppm(struct core *core, u32 share_ppm)
{
	core->rotation.share_ppm = share_ppm;
	core->member_recip = recip(share_ppm);
}

/* What it was entitled to and did not run since its lag was settled; only who shares is. */
static s64 open_lag(const struct core *core, const struct core_tenant *tenant)
{
	u64 entitled_ns = 0;

	if (!core_in_group(tenant))
		return 0;
	if (tenant->sharing) {
		entitled_ns = env_mul_div(core->v - tenant->v_from, tenant->share_ppm, CORE_PPM);
		entitled_ns += env_mul_div(core->floor_v - tenant->floor_v_from, tenant->floor_ppm,
					   CORE_PPM);
	}
	return (s64)entitled_ns - (s64)(tenant->run_ns - tenant->run_from_ns);
}

static s64 lag_cap(const struct core *core)
{
	s64 periods_ns = (s64)(CORE_CARRY_PERIODS * core->cycle_ns);

	return max(periods_ns, LAG_CAP_NS);
}

s64 core_lag_ns(const struct core *core, const struct core_tenant *tenant)
{
	s64 cap_ns = lag_cap(core);

	return clamp(tenant->lag_ns + open_lag(core, tenant), -cap_ns, cap_ns);
}

void core_ledger_settle(struct core *core, struct core_tenant *tenant)
{
	tenant->due_lag_ns += open_lag(core, tenant);
	tenant->lag_ns = core_lag_ns(core, tenant);
	tenant->v_from = core->v;
	tenant->floor_v_from = core->floor_v;
	tenant->run_from_ns = tenant->run_ns;
	core_fit_settle(core, tenant);
}

void core_ledger_restart_due(struct core_tenant *tenant)
{
	tenant->due_lag_ns = 0;
	tenant->due_run_ns = tenant->run_ns;
	tenant->due_var_us2 = tenant->var_us2;
	tenant->due_broken = false;
}

/* The busy of the rotation: whoever runs can be ahead only while there are two. */
static void rotation_busy(struct core *core, u32 count, u64 now_ns)
{
	if (count >= 2 && core->rotation.work_count < 2)
		core->contended_from_ns = now_ns;
	core->rotation.work_count = count;
	core->rotation.sharing = count;
}

/* What one who left ran too much or too little of is not what those who stay lost or won; and a
 * round in which it came or went is no evidence of its own. */
static void level_members(struct core *core, struct core_tenant *tenant)
{
	s64 lag_ns = tenant->fit_lag_ns - tenant->fit_joined_ns;

	if (core->rotation.share_ppm)
		core->member_v += (u64)core_scaled(lag_ns, CORE_PPM, core->rotation.share_ppm);
	tenant->fit_lag_ns -= clamp(lag_ns, 0ll, (s64)tenant->cycle_slice_ns);
}

/* A member has become busy; its lag is settled. */
static void rotation_gains(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	core_ledger_settle(core, &core->rotation);
	tenant->fit_joined_ns = tenant->fit_lag_ns;
	set_members_ppm(core, core->rotation.share_ppm + tenant->share_ppm);
	rotation_busy(core, core->rotation.work_count + 1, now_ns);
}

/* It takes along its part of a window, and what it ran: those who stay owe a cycle at most. */
static void rotation_loses(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	struct core_window *window = &core->window;
	u32 before_ppm = core->rotation.share_ppm;
	u32 share_ppm = before_ppm - min(before_ppm, tenant->share_ppm);
	s64 most_ns = (s64)env_mul_div(core->cycle_ns, share_ppm, CORE_PPM), left_ns;

	core_ledger_settle(core, &core->rotation);
	core->rotation.lag_ns = max(core->rotation.lag_ns, -most_ns);
	set_members_ppm(core, share_ppm);
	level_members(core, tenant);
	rotation_busy(core, core->rotation.work_count - 1, now_ns);
	if (window->owner != &core->rotation || !share_ppm)
		return;
	left_ns = max(window->budget_ns - window->spent_ns, 0ll);
	window->budget_ns -= left_ns - core_scaled(left_ns, share_ppm, before_ppm);
}

static void online_begins(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	tenant->sharing = true;
	if (!core->online_busy++)
		core->online_from_ns = now_ns;
}

void core_ledger_join(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	if (tenant->sharing || tenant->held || tenant->place == CORE_CLOCKED)
		return;
	if (tenant->place == CORE_BESIDE) {
		online_begins(core, tenant, now_ns);
		return;
	}
	/* Only while it shares does entitlement grow. */
	core_ledger_settle(core, tenant);
	tenant->sharing = true;
	core->sharing_count++;
	set_busy_ppm(core, core->busy_ppm + tenant->share_ppm,
		     core->floor_busy_ppm + tenant->floor_ppm);
	if (tenant->place == CORE_ROTATES)
		rotation_gains(core, tenant, now_ns);
}

void core_ledger_leave(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	if (!tenant->sharing)
		return;
	if (tenant->place == CORE_BESIDE) {
		tenant->sharing = false;
		core->online_busy--;
		return;
	}
	core_ledger_settle(core, tenant);
	tenant->sharing = false;
	tenant->due_broken = true;
	core->sharing_count--;
	if (tenant->place == CORE_ROTATES)
		rotation_loses(core, tenant, now_ns);
	set_busy_ppm(core, core->busy_ppm - min(core->busy_ppm, tenant->share_ppm),
		     core->floor_busy_ppm - min(core->floor_busy_ppm, tenant->floor_ppm));
}

/* Who takes turns by lag: lags add up to nothing, whatever those who came and went had. */
static void level_servers(struct core *core)
{
	struct core_tenant *rotation = &core->rotation, *tenant;
	s64 sum_ns = rotation->sharing ? rotation->lag_ns : 0;
	u32 i;

	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		if (tenant->sharing && tenant->place == CORE_RANKED)
			sum_ns += tenant->lag_ns;
	}
	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		if (tenant->sharing && tenant->place == CORE_RANKED)
			tenant->lag_ns -= core_scaled(sum_ns, tenant->share_ppm, core->busy_ppm);
	}
	if (rotation->sharing)
		rotation->lag_ns -= core_scaled(sum_ns, rotation->share_ppm, core->busy_ppm);
}

/* Everything from the tenants afresh: places or shares changed. Their lags are settled. */
void core_ledger_busy_sum(struct core *core, u64 now_ns)
{
	struct core_tenant *rotation = &core->rotation, *tenant;
	u32 busy_ppm = 0, floor_ppm = 0, members_ppm = 0, members = 0, online = 0, i;

	core_ledger_settle(core, rotation);
	core->sharing_count = 0;
	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		tenant->sharing = core_tenant_busy(tenant) && !tenant->held &&
				  tenant->place != CORE_CLOCKED &&
				  tenant->heap != CORE_HEAP_WAITING;
		if (!tenant->sharing)
			continue;
		if (tenant->place == CORE_BESIDE) {
			online++;
			continue;
		}
		core->sharing_count++;
		busy_ppm += tenant->share_ppm;
		floor_ppm += tenant->floor_ppm;
		if (tenant->place != CORE_ROTATES)
			continue;
		members++;
		members_ppm += tenant->share_ppm;
	}
	set_members_ppm(core, members_ppm);
	rotation_busy(core, members, now_ns);
	set_busy_ppm(core, busy_ppm, floor_ppm);
	level_servers(core);
	if (online && !core->online_busy)
		core->online_from_ns = now_ns;
	core->online_busy = online;
}

static void get_work(struct core *core, struct core_tsg *tsg, u64 now_ns)
{
	struct core_tenant *tenant = tsg->tenant;

	tsg->has_work = true;
	if (tenant->work_count++)
		return;
	tenant->work_from_ns = now_ns;
	core->busy_tenants++;
	if (tenant->heap != CORE_HEAP_WAITING)
		core_ledger_join(core, tenant, now_ns);
	core_budget_busy(core, tenant, now_ns);
}

static void lose_work(struct core *core, struct core_tsg *tsg, u64 now_ns)
{
	struct core_tenant *tenant = tsg->tenant;

	tsg->has_work = false;
	if (--tenant->work_count)
		return;
	tenant->due_broken = true;
	tenant->had_work_ns += now_ns > tenant->work_from_ns ? now_ns - tenant->work_from_ns : 0;
	core->busy_tenants--;
	core_ledger_leave(core, tenant, now_ns);
	core_budget_idle(core, tenant, now_ns);
}

/* Throttled up to the last look; work may have been found after it. */
static u64 throttled_so_far(const struct core *core, const struct core_tenant *tenant)
{
	u64 ns = tenant->throttled_ns;

	if (tenant->throttled && core->looked_ns > tenant->throttled_from_ns)
		ns += core->looked_ns - tenant->throttled_from_ns;
	return ns;
}

/* Nobody looked for long, as when the card did not answer. */
static bool missed_looks(const struct core *core, u64 span_ns)
{
	return core->awake_tenants >= 2 && span_ns > LOOKS_MISSED * core->params.sample_ns;
}

static void wait_begins(struct core *core, struct core_tenant *tenant, u64 from_ns)
{
	tenant->waiting = true;
	tenant->wait_from_ns = from_ns;
	core->press_at_ns = min(core->press_at_ns, core_presses_from_ns(tenant));
	tenant->wait_throttled_ns = throttled_so_far(core, tenant);
}

/*
 * It waited up to @now_ns. What its ceiling keeps from it is no wait; budgets of windows on the
 * clock are what is promised there, so that time is.
 */
static void wait_lasts(const struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	u64 wait_ns = now_ns > tenant->wait_from_ns ? now_ns - tenant->wait_from_ns : 0;
	u64 kept_ns = 0;

	if (!tenant->waiting)
		return;
	if (tenant->place != CORE_CLOCKED)
		kept_ns = throttled_so_far(core, tenant) - tenant->wait_throttled_ns;
	tenant->wait_max_ns = max(tenant->wait_max_ns, wait_ns - min(wait_ns, kept_ns));
}

/* A look found work of it, or none, while it was not running. */
static void wait_observed(struct core *core, struct core_tenant *tenant, u64 now_ns,
			  bool was_quiet)
{
	if (!tenant->loud_count)
		tenant->waiting = false;
	else if (core->seen_tenant == tenant)
		return;
	else if (was_quiet || !tenant->waiting)
		wait_begins(core, tenant, now_ns);
	else
		wait_lasts(core, tenant, now_ns);
}

/* Who ran at the last look and who runs now: the change was in the middle of @span_ns. */
static void wait_seen(struct core *core, struct core_tenant *now, u64 span_ns)
{
	u64 change_ns = core->looked_ns + (span_ns >> 1);

	if (core->seen_tenant == now)
		return;
	if (core->seen_tenant && core->seen_tenant->loud_count)
		wait_begins(core, core->seen_tenant, change_ns);
	if (!now)
		return;
	wait_lasts(core, now, missed_looks(core, span_ns) ? core->looked_ns : change_ns);
	now->waiting = false;
}

/* Does a plan depend on whether it is awake? In windows on the clock only beside others of its
 * tenant. */
static bool plan_depends(const struct core *core, const struct core_tsg *tsg)
{
	return core->policy == CORE_BURST_SHARE ||
	       (core_on_clock(core) && tsg->tenant->listed_count > 1);
}

static void wake(struct core *core, struct core_tsg *tsg, u64 now_ns)
{
	struct core_tenant *tenant = tsg->tenant;
	u64 slept_ns;

	tsg->awake = true;
	core->awake_tsgs++;
	core->dirty |= plan_depends(core, tsg);
	if (tenant->awake_count++)
		return;
	core->awake_tenants++;
	/* It has no turn before it has a share. */
	core->urgent |= tenant->press_ns != 0;
	slept_ns = now_ns > tenant->slept_at_ns ? now_ns - tenant->slept_at_ns : 0;
	if (slept_ns > DEBT_STANDS_NS)
		tenant->lag_ns +=
			(s64)env_mul_div(slept_ns - DEBT_STANDS_NS, tenant->slept_ppm, CORE_PPM);
	tenant->lag_ns = min(tenant->lag_ns, 0ll);
	core_ledger_restart_due(tenant);
	/* Whoever only makes its TSG anew does not sleep. */
	if (slept_ns >= CORE_LINGER_NS)
		core_fit_restart(core, tenant);
}

/* What it is owed is forgotten; what it owes goes down by its share of the time it sleeps. */
static void fall_asleep(struct core *core, struct core_tsg *tsg, u64 now_ns)
{
	struct core_tenant *tenant = tsg->tenant;

	tsg->awake = false;
	core->awake_tsgs--;
	core->dirty |= plan_depends(core, tsg);
	if (--tenant->awake_count)
		return;
	core->awake_tenants--;
	core_ledger_settle(core, tenant);
	tenant->lag_ns = min(tenant->lag_ns, 0ll);
	tenant->slept_at_ns = now_ns;
	tenant->slept_ppm = tenant->share_ppm;
	tenant->trim_ppm = min(tenant->trim_ppm, 0);
}

void core_work(struct core *core, struct core_tsg *tsg, u64 now_ns, bool has_work)
{
	struct core_tenant *tenant = tsg->tenant;
	bool was_loud = tsg->loud, tenant_was_quiet;

	if (!tenant || !tsg->listed)
		return;
	tenant_was_quiet = !tenant->loud_count;
	tenant->loud_count += has_work - was_loud;
	tsg->loud = has_work;
	if (was_loud && !has_work)
		tsg->quiet_from_ns = now_ns;
	core_fit_observed(tenant, now_ns, tenant_was_quiet);
	wait_observed(core, tenant, now_ns, tenant_was_quiet);
	if (has_work) {
		tsg->work_seen_ns = now_ns;
		if (!tsg->awake)
			wake(core, tsg, now_ns);
		if (!tsg->has_work)
			get_work(core, tsg, now_ns);
		return;
	}
	if (tsg->has_work && now_ns - tsg->quiet_from_ns >= core_hold_ns(core))
		lose_work(core, tsg, now_ns);
	if (tsg->awake && !tsg->has_work &&
	    now_ns - tsg->work_seen_ns > clamp(core->cycle_ns, CORE_LINGER_NS, CORE_LINGER_MAX_NS))
		fall_asleep(core, tsg, now_ns);
}

/* It is gone from the list: what it was doing ends here. */
static void drop_activity(struct core *core, struct core_tsg *tsg, u64 now_ns)
{
	if (tsg->has_work)
		lose_work(core, tsg, now_ns);
	if (tsg->awake)
		fall_asleep(core, tsg, now_ns);
	tsg->tenant->loud_count -= tsg->loud;
	tsg->loud = false;
	if (!tsg->tenant->loud_count)
		tsg->tenant->waiting = false;
}

/* The others' virtual times; @floor_lag_ns is what they are behind their shares with online busy.
 */
static void charge_group(struct core *core, const struct core_tenant *tenant, u64 span_ns)
{
	s64 cap_ns = lag_cap(core), limit_ns = (s64)(core->params.smooth_ns >> 1);
	bool group = core_in_group(tenant);

	if (core->floor_busy_ppm)
		core->floor_lag_ns += (s64)env_mul_div(span_ns, core->floor_busy_ppm, CORE_PPM);
	if (group)
		core->floor_lag_ns -= (s64)span_ns;
	/* What online does not use is nobody's debt. */
	core->floor_lag_ns = clamp(core->floor_lag_ns, -2 * limit_ns, cap_ns);
	if (!group)
		return;
	if (core->protecting)
		core->floor_v += virtual_ns(span_ns, core->floor_busy_ppm, core->floor_recip);
	else
		core->v += virtual_ns(span_ns, core->busy_ppm, core->busy_recip);
	if (tenant->place != CORE_ROTATES)
		return;
	core->rotation.run_ns += span_ns;
	core->member_v += virtual_ns(span_ns, core->rotation.share_ppm, core->member_recip);
}

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
		charge_group(core, tenant, span_ns);
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
			wait_begins(core, tenant, now_ns);
	}
}

void core_look(struct core *core, u64 now_ns, enum core_seen seen, struct core_tsg *tsg)
{
	struct core_tenant *tenant = seen == CORE_SEEN_TSG ? tsg->tenant : NULL;
	u64 span_ns = now_ns > core->looked_ns ? now_ns - core->looked_ns : 0;
	u64 half_ns = span_ns >> 1;

	core_visit_look(core, now_ns, seen, tenant);
	wait_seen(core, tenant, span_ns);
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
		core->drain_ns = 0;
		core->drain_told = false;
	}
	charge(core, core->seen, core->seen_tenant, span_ns - half_ns, now_ns);
	charge(core, seen, tenant, half_ns, now_ns);

	if (missed_looks(core, span_ns))
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

/* Correct one tenant's T if the ledger is sure that it is off. Return: it changed. */
static bool trim_one(struct core *core, struct core_tenant *tenant)
{
	u64 cycle_ns = core->cycle_ns + core->awake_tsgs * core->params.switch_ns;
	u64 spread_ppm = env_div((u64)tenant->share_ppm * (CORE_PPM - tenant->share_ppm), CORE_PPM);
	u64 sure_ns, off_ns, entitled_ns;
	s32 trim_ppm;

	core_ledger_settle(core, tenant);
	if (tenant->due_broken || !tenant->sharing || tenant->place != CORE_ROTATES) {
		core_ledger_restart_due(tenant);
		return false;
	}
	off_ns = (u64)(tenant->due_lag_ns < 0 ? -tenant->due_lag_ns : tenant->due_lag_ns);
	sure_ns = env_mul_div(cycle_ns, spread_ppm, CORE_PPM) +
		  core_ledger_chance_ns(tenant->var_us2 - tenant->due_var_us2);
	/* Twice what may be chance: then nearly all of it is not, and nobody is corrected in vain.
	 */
	if (off_ns <= 2 * sure_ns)
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

	if (core->window.kind != CORE_WINDOW_ROTATION || core->window.owner ||
	    core->awake_tenants < 2 || now_ns < core->trimmed_at_ns + CORE_TRIM_EVERY_NS)
		return false;
	core->trimmed_at_ns = now_ns;
	for (i = 0; i < core->tenant_count; i++) {
		/* What windows left behind is not the slices' fault. */
		if (core->interrupted)
			core_ledger_restart_due(core->tenants[i]);
		else
			changed |= trim_one(core, core->tenants[i]);
	}
	core->interrupted = false;
	return changed;
}

void core_tsg_add(struct core *core, struct core_tsg *tsg, struct core_tenant *tenant)
{
	memset(tsg, 0, sizeof(*tsg));
	tsg->tenant = tenant;
	if (tenant) {
		tsg->next = tenant->tsgs;
		tenant->tsgs = tsg;
		tenant->tsg_count++;
		tsg->planned_ns = 2 * core->params.switch_ns;
	}
}

void core_tsg_list(struct core *core, struct core_tsg *tsg, bool listed)
{
	if (tsg->listed == listed)
		return;
	tsg->listed = listed;
	core->stale = true;
	if (!tsg->tenant)
		return;
	/* Presence alone changes shares only in windows on the clock. */
	if (listed) {
		core->dirty |= !tsg->tenant->listed_count++;
		return;
	}
	drop_activity(core, tsg, core->looked_ns);
	core->dirty |= !--tsg->tenant->listed_count;
}

static void forget_tsg(struct core *core, struct core_tsg *tsg)
{
	struct core_tsg **at;

	if (core->seen_tsg == tsg)
		core->seen_tsg = NULL;
	if (core->visit == tsg)
		core->visit = NULL;
	if (core->rotation.phase.tsg == tsg)
		core->rotation.phase.tsg = NULL;
	if (!tsg->tenant)
		return;
	if (tsg->tenant->phase.tsg == tsg)
		tsg->tenant->phase.tsg = NULL;
	for (at = &tsg->tenant->tsgs; *at; at = &(*at)->next) {
		if (*at == tsg) {
			*at = tsg->next;
			tsg->tenant->tsg_count--;
			break;
		}
	}
}

void core_tsg_remove(struct core *core, struct core_tsg *tsg)
{
	core_tsg_list(core, tsg, false);
	forget_tsg(core, tsg);
	tsg->tenant = NULL;
	tsg->next = NULL;
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
	out->throttled_ns = throttled_so_far(core, tenant);
	out->windows = tenant->windows;
	out->preempts = tenant->preempts;
	out->overruns = tenant->overruns;
	out->hangs = tenant->hangs;
	out->source = tenant->source;
}
