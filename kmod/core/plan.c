// SPDX-License-Identifier: GPL-2.0
/*
 * plan.c - from places and shares to numbers: the rotation's cycle, slices, budgets and periods.
 * Called by pick.c when a plan is due, by turn.c when settings changed. Decides nothing about who
 * runs now.
 */
#include "core/core_inside.h"

/* Work that finding the least biased cycle may cost: roundings in all, and candidates. */
#define CANDIDATE_ROUNDINGS 2048u
#define CANDIDATES_MAX 64u
/* A cycle asked for gives nobody a slice below this on average. */
#define SLICE_FLOOR_NS 20000ull

static u64 plan_gap(const struct core *core)
{
	return max(clamp(core->cycle_ns >> 2, CORE_REPLAN_NS, CORE_REPLAN_MAX_NS), core->keep_ns);
}

u64 core_plan_from_ns(const struct core *core)
{
	return core->planned_at_ns + plan_gap(core);
}

bool core_plan_due(const struct core *core, u64 now_ns)
{
	return core->dirty && (core->urgent || now_ns >= core_plan_from_ns(core));
}

/* ---- windows on the clock ---- */

static bool has_windows(const struct core_tenant *tenant)
{
	return tenant->place == CORE_CLOCKED && tenant->share_ppm;
}

static struct core_clock clock_of(const struct core *core)
{
	struct core_clock clock = { 0, 0 };
	u32 i;

	for (i = 0; i < core->tenant_count; i++)
		if (has_windows(core->tenants[i]))
			core_clock_add(&clock, &core->params, core->tenants[i]->share_ppm);
	return clock;
}

struct core_load core_windows_load(const struct core *core)
{
	struct core_clock clock = clock_of(core);
	const struct core_params *params = &core->params;
	struct core_load load = { 0, 0 };
	u32 i, share_ppm;

	for (i = 0; i < core->tenant_count; i++) {
		if (!has_windows(core->tenants[i]))
			continue;
		share_ppm = core->tenants[i]->share_ppm;
		core_load_window(&load, params, 2 * core_clock_budget_ns(&clock, params, share_ppm),
				 core_clock_period_ns(params, share_ppm));
	}
	return load;
}

/* ---- the rotation ---- */

/* What the cycle depends on. */
struct group {
	u32 tsgs;	/* M */
	u32 sleepers;	/* tenants that may get a share: asleep, not there yet, held */
	u32 share_ppm;	/* sum of shares */
	u32 least_ppm;	/* of shares */
	u64 spread_ppm; /* largest phi * (1 - phi), of shares that add up to one */
	u64 wake_ns;	/* longest cycle that keeps the promised waits */
	struct core_load load;
};

struct core_load core_group_load(const struct core *core)
{
	struct core_load load = core_windows_load(core);
	const struct core_tenant *tenant;
	u32 i, ceilings = 0;

	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		ceilings += core_in_group(tenant) && tenant->asked.ceiling_ppm < CORE_PPM;
	}
	core_load_ceilings(&load, &core->params, ceilings);
	return load;
}

static u64 trimmed_ppm(const struct core_tenant *tenant)
{
	return env_div((u64)tenant->share_ppm * (u64)((s64)CORE_PPM + tenant->trim_ppm), CORE_PPM);
}

static u64 least_of(const struct core *core, const struct core_tenant *tenant)
{
	return tenant->awake_count * core->params.slice_min_ns;
}

/* A sleeper with a promise may wake: then it waits for all the others. */
static u64 others_of(const struct core *core, const struct core_tenant *tenant,
		     const struct group *group)
{
	u64 wake_ns = core_load_spare(&group->load, tenant->asked.wake_ns);
	u64 others_ns = core_slices_within_ns(&core->params, group->tsgs, group->sleepers, wake_ns);

	/* Written slices may be longer by 1/256. */
	return others_ns - (others_ns >> 7);
}

/* Who falls asleep or wakes has 2 * s by one plan and its part by the other: what of that is below
 * s counts as s (theory.rst, WAITS). */
static void plan_part(const struct core *core, struct core_tenant *tenant,
		      const struct group *group)
{
	const struct core_params *p = &core->params;

	tenant->part = (struct core_part){ .others_ns = U64_MAX };
	if (!core_in_group(tenant))
		return;
	if (tenant->asked.wake_ns && core_tenant_present(tenant))
		tenant->part.others_ns = others_of(core, tenant, group);
	if (!tenant->share_ppm)
		return;
	tenant->part.share_ppm = trimmed_ppm(tenant);
	tenant->part.least_ns = tenant->awake_count * max(p->slice_min_ns, p->switch_ns);
}

/* The longest cycle of the group that keeps the promised waits. */
static u64 keep_wakes(struct core *core, const struct group *group)
{
	u64 cycle_ns;
	u32 i;

	for (i = 0; i < core->tenant_count; i++)
		plan_part(core, core->tenants[i], group);
	cycle_ns = core_parts_cycle(core);
	if (cycle_ns == U64_MAX)
		return cycle_ns;
	return max(env_mul_div(cycle_ns, group->share_ppm, CORE_PPM), core->params.switch_ns);
}

static struct group survey(struct core *core)
{
	struct group group = { .least_ppm = CORE_PPM, .wake_ns = U64_MAX };
	const struct core_tenant *tenant;
	u64 part_ppm;
	u32 i;

	if (core->policy == CORE_BURST_SHARE)
		group.load = core_group_load(core);
	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		if (!core_in_group(tenant))
			continue;
		group.sleepers += !tenant->share_ppm;
		if (!tenant->share_ppm)
			continue;
		group.tsgs += tenant->awake_count;
		group.share_ppm += tenant->share_ppm;
		group.least_ppm = min(group.least_ppm, tenant->share_ppm);
	}
	for (i = 0; i < core->tenant_count && group.share_ppm; i++) {
		tenant = core->tenants[i];
		if (!core_in_group(tenant))
			continue;
		part_ppm = env_div((u64)tenant->share_ppm * CORE_PPM, group.share_ppm);
		group.spread_ppm =
			max(group.spread_ppm, env_div(part_ppm * (CORE_PPM - part_ppm), CORE_PPM));
	}
	if (group.share_ppm)
		group.wake_ns = keep_wakes(core, &group);
	return group;
}

/* The longest cycle that keeps loss, smoothness and waits, the members' alone; theory.rst,
 * ROTATION. */
static u64 longest_cycle(const struct core *core, const struct group *group)
{
	const struct core_params *p = &core->params;
	u64 switches_ns = group->tsgs * p->switch_ns; /* M * s */
	u64 loss_ns, smooth_ns, wake_ns, least_ppm;

	if (group->tsgs <= 1)
		return min(CORE_CYCLE_LONE_NS, group->wake_ns);
	least_ppm = env_div((u64)group->least_ppm * CORE_PPM, group->share_ppm);
	loss_ns = env_mul_div(switches_ns, CORE_PPM - p->loss_ppm, max(p->loss_ppm, 1u));
	smooth_ns = env_mul_div(p->smooth_ns, CORE_PPM, max(group->spread_ppm, 1ull));
	smooth_ns = smooth_ns > switches_ns ? smooth_ns - switches_ns : 0;
	wake_ns = env_mul_div(p->soft_wake_ns, group->share_ppm, CORE_PPM);
	if (core->turns)
		wake_ns -= wake_ns >> 2;
	wake_ns = wake_ns > switches_ns ? wake_ns - switches_ns : 0;
	wake_ns = least_ppm < CORE_PPM ? env_mul_div(wake_ns, CORE_PPM, CORE_PPM - least_ppm) :
					 U64_MAX;

	smooth_ns = max(smooth_ns, 19 * switches_ns);
	wake_ns = max(wake_ns, env_div(17 * switches_ns, 3));
	return min(min(loss_ns, group->wake_ns), min(smooth_ns, wake_ns));
}

/* T of a tenant at cycle @cycle_ns. */
static u64 part_of(const struct core_tenant *tenant, u64 cycle_ns)
{
	u64 part_ns = env_div(cycle_ns * tenant->share_ppm, CORE_PPM);

	return env_div(part_ns * (u64)((s64)CORE_PPM + tenant->trim_ppm), CORE_PPM);
}

/* How far the written slices at @cycle_ns, none below @least_ns, are from the parts asked, in parts
 * per 2^30. */
static u64 bias_of(const struct core *core, u64 cycle_ns, u64 least_ns)
{
	u64 total = 0, wanted = 0, worst = 0, have, want, off;
	struct core_tenant *tenant;
	int pass;
	u32 i;

	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < core->tenant_count; i++) {
			tenant = core->tenants[i];
			if (!core_in_group(tenant) || !tenant->share_ppm || !tenant->awake_count)
				continue;
			want = part_of(tenant, cycle_ns);
			have = max(env_div(want, tenant->awake_count), least_ns);
			have = tenant->awake_count * core->params.slice_round(have);
			if (!pass) {
				total += have;
				wanted += want;
				continue;
			}
			have = env_mul_div(have, 1 << 30, max(total, 1ull));
			want = env_mul_div(want, 1 << 30, max(wanted, 1ull));
			off = have > want ? have - want : want - have;
			worst = max(worst, off);
		}
	}
	return worst;
}

/* While a wait is promised shares may be bent by slices that are the least there are, and a shorter
 * cycle would bend them more. */
static u64 least_biased(const struct core *core, u64 longest_ns, bool keeps_waits)
{
	u64 least_ns = keeps_waits ? core->params.slice_min_ns : 0;
	u64 best_ns = longest_ns, best = U64_MAX, bias, step_ns, cycle_ns;
	u32 i, n;

	if (core->awake_tenants < 2)
		return longest_ns;
	n = (u32)env_div(CANDIDATE_ROUNDINGS, core->awake_tenants);
	n = clamp(n, 1u, CANDIDATES_MAX);
	step_ns = env_div(longest_ns, 10 * n);
	for (i = 0; i < n && best; i++) {
		cycle_ns = longest_ns - i * step_ns;
		bias = bias_of(core, cycle_ns, least_ns);
		if (bias < best) {
			best = bias;
			best_ns = cycle_ns;
		}
	}
	return best_ns;
}

/* Somebody's gaps make rounds much longer than what is run in them. */
static bool has_many_gaps(const struct core *core)
{
	u32 i;

	for (i = 0; i < core->tenant_count && core->turns; i++)
		if (core->tenants[i]->place == CORE_RANKED &&
		    core_fit_gaps_are_many(core->tenants[i]))
			return true;
	return false;
}

/* C: of every C on the wall each of the group has C * phi, those on the clock the rest. */
static u64 cycle_of(const struct core *core, const struct group *of)
{
	struct group group = *of;
	u64 cycle_ns;

	if (core_on_clock(core) || core->policy == CORE_BEST_EFFORT || !group.share_ppm)
		return 0;
	if (core->online_count)
		return min(env_mul_div(core->params.tenure_ns, CORE_PPM, group.least_ppm),
			   CORE_TENURES_MAX * core->params.tenure_ns);
	if (core->cycle_asked_ns)
		return min(max(core->cycle_asked_ns, group.tsgs * SLICE_FLOOR_NS), group.wake_ns);
	cycle_ns = longest_cycle(core, &group);
	if (group.tsgs <= 1)
		return cycle_ns;
	if (has_many_gaps(core))
		cycle_ns -= cycle_ns >> 2;
	cycle_ns = env_mul_div(cycle_ns, CORE_PPM, group.share_ppm);
	return least_biased(core, cycle_ns, group.wake_ns < U64_MAX);
}

static void plan_cycle(struct core *core)
{
	struct group group = survey(core);
	const struct core_tenant *tenant;
	u64 round_ns = 0;
	u32 i;

	core->cycle_ns = cycle_of(core, &group);
	core->keep_ns = 0;
	if (group.wake_ns == U64_MAX)
		return;
	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		if (core_in_group(tenant) && tenant->share_ppm)
			round_ns += max(part_of(tenant, core->cycle_ns), least_of(core, tenant));
	}
	round_ns = core_wait_rotating_ns(&core->params, group.tsgs + group.sleepers, round_ns);
	core->keep_ns = min(core_load_stretch(&group.load, round_ns), CORE_LINGER_MAX_NS);
}

/* ---- budgets ---- */

/* Two cycles at least, so that a round is never cut by it; not more than ten milliseconds of
 * budget. */
static u64 cap_period(const struct core *core, u32 ceiling_ppm)
{
	u64 least_ns = max(env_div(10 * core->params.switch_ns * CORE_PPM, ceiling_ppm),
			   2 * core->cycle_ns);

	return core_on_grid_ns(&core->params, least_ns,
			       env_div(CORE_CAP_BUDGET_MAX_NS * CORE_PPM, ceiling_ppm));
}

static void plan_budgets(struct core *core, u64 now_ns)
{
	struct core_clock clock = clock_of(core);
	u64 budget_ns, period_ns, ppm;
	struct core_tenant *tenant;
	u32 i;

	core->limited = core_on_clock(core);
	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		budget_ns = 0;
		period_ns = 0;
		ppm = tenant->asked.ceiling_ppm;
		tenant->capped = false;
		if (has_windows(tenant)) {
			period_ns = core_clock_period_ns(&core->params, tenant->share_ppm);
			budget_ns = core_clock_budget_ns(&clock, &core->params, tenant->share_ppm);
		} else if (core->policy == CORE_BURST_SHARE && tenant->place != CORE_CLOCKED &&
			   ppm < CORE_PPM) {
			tenant->capped = true;
			period_ns = cap_period(core, (u32)ppm);
			budget_ns = env_mul_div(period_ns, ppm, CORE_PPM);
		}
		core->limited |= period_ns && core_tenant_awake(tenant);
		core_budget_set(core, tenant, budget_ns, period_ns, now_ns);
		core_budget_settle(core, tenant, now_ns);
	}
}

/* ---- slices ---- */

/* Split a tenant's part over its awake TSGs; those that sleep get 2 * s. */
static void plan_tsgs(struct core *core, struct core_tenant *tenant, u64 part_ns)
{
	struct core_tsg *tsg;
	u64 each_ns = 0, planned_ns;

	if (tenant->awake_count) {
		each_ns = env_div(part_ns, tenant->awake_count);
		each_ns = clamp(each_ns, core->params.slice_min_ns, core->params.slice_max_ns);
	}
	for (tsg = tenant->tsgs; tsg; tsg = tsg->next) {
		planned_ns = tsg->awake && each_ns ? each_ns : 2 * core->params.switch_ns;
		if (tsg->planned_ns == planned_ns)
			continue;
		tsg->planned_ns = planned_ns;
		core->stale |= core->window.kind != CORE_WINDOW_DRIVER && core_admits(core, tsg);
	}
}

static void plan_slices(struct core *core)
{
	struct core_tenant *tenant;
	u64 online_cycle_ns;
	u32 i;

	core_online_plan(core, &online_cycle_ns);
	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		tenant->cycle_slice_ns = 0;
		if (tenant->place == CORE_BESIDE) {
			core_online_slices(core, tenant, online_cycle_ns);
			continue;
		}
		if (tenant->place == CORE_CLOCKED) {
			tenant->trim_ppm = 0;
			plan_tsgs(core, tenant, tenant->budget_ns);
			continue;
		}
		if (tenant->share_ppm)
			tenant->cycle_slice_ns = part_of(tenant, core->cycle_ns);
		plan_tsgs(core, tenant, tenant->cycle_slice_ns);
	}
}

void core_plan_make(struct core *core, u64 now_ns)
{
	u32 i;

	core_place_all(core, now_ns);
	core_place_shares(core);
	plan_cycle(core);
	core_wait_plan(core);
	plan_budgets(core, now_ns);
	core_lag_sum_busy(core, now_ns);
	plan_slices(core);
	for (i = 0; i < core->tenant_count; i++)
		core_pick_replanned(core, core->tenants[i], now_ns);
	core_pick_replanned(core, &core->rotation, now_ns);
	core->dirty = false;
	core->urgent = false;
	core->planned_at_ns = now_ns;
}
