// SPDX-License-Identifier: GPL-2.0
/*
 * plan.c - from settings and who is awake to numbers: shares, the rotation's cycle and slices,
 * budgets and periods of exclusive windows. Called by pick.c when a plan is due, by turn.c when
 * settings changed. Decides nothing about who runs now.
 */
#include "core/core.h"

/* Work that finding the least biased cycle may cost: roundings in all, and candidates. */
#define CANDIDATE_ROUNDINGS 2048u
#define CANDIDATES_MAX 64u
/* A cycle asked for gives nobody a slice below this on average. */
#define SLICE_FLOOR_NS 20000ull

static u64 plan_gap(const struct core *core)
{
	return max(CORE_REPLAN_NS, core->cycle_ns >> 2);
}

bool core_plan_due(const struct core *core, u64 now_ns)
{
	return core->dirty && (core->urgent || now_ns >= core->planned_at_ns + plan_gap(core));
}

static bool present(const struct core_tenant *tenant)
{
	return tenant->listed_count != 0;
}

static void claim(const struct core *core, const struct core_tenant *tenant, struct core_claim *out)
{
	/* All that are there are alike, whatever they asked for under other policies. */
	bool alike = core->policy == CORE_EQUAL_SHARE;

	out->weight = alike ? 1 : tenant->asked.weight;
	out->guarantee_ppm = alike ? 0 : tenant->asked.guarantee_ppm;
	out->ceiling_ppm = tenant->asked.ceiling_ppm;
	out->class_ = tenant->asked.class_;
	out->share_ppm = 0;
}

/* Does it take part in the split? Under fixed-share a share of one's own does not depend on who
 * is there; what is unassigned is split among those who are. */
static bool claims_share(const struct core *core, const struct core_tenant *tenant)
{
	if (core->policy == CORE_FIXED_SHARE)
		return tenant->asked.guarantee_ppm || present(tenant);
	if (core->policy == CORE_EQUAL_SHARE)
		return present(tenant);
	return core->policy == CORE_BURST_SHARE && core_tenant_awake(tenant);
}

static void plan_shares(struct core *core)
{
	struct core_tenant *tenant;
	u32 i, n = 0, share_ppm;
	bool held;

	for (i = 0; i < core->tenant_count; i++)
		if (claims_share(core, core->tenants[i]))
			claim(core, core->tenants[i], &core->claims[n++]);
	if (core_on_clock(core))
		core_share_windows(core->claims, n);
	else
		core_share_split(core->claims, n);
	for (i = 0, n = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		core_ledger_settle(core, tenant);
		share_ppm = claims_share(core, tenant) ? core->claims[n++].share_ppm : 0;
		/* What was corrected among others is worth half as much now. */
		if (share_ppm != tenant->share_ppm)
			tenant->trim_ppm /= 2;
		tenant->share_ppm = share_ppm;
		held = core->policy == CORE_BURST_SHARE && core_tenant_awake(tenant) &&
		       !tenant->share_ppm;
		core->stale |= held != tenant->held;
		tenant->held = held;
	}
}

/* Who has windows of its own. Alone, or asleep, everybody fits the rotation. */
static void plan_servers(struct core *core, u64 now_ns)
{
	struct core_tenant *tenant;
	bool windowed;
	u32 i;

	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		windowed = core->policy == CORE_BURST_SHARE && tenant->misfit &&
			   core_tenant_awake(tenant) && core->awake_tenants >= 2;
		core->stale |= windowed != tenant->windowed;
		tenant->windowed = windowed;
	}
	core_ledger_busy_sum(core, now_ns);
	core_fit_planned(core);
}

/* The longest cycle that keeps loss, smoothness and waits; core.h, ROTATION. */
static u64 longest_cycle(const struct core *core)
{
	const struct core_params *p = &core->params;
	u64 switches_ns = core->awake_tsgs * p->switch_ns; /* M * s */
	u64 loss_ns, smooth_ns, wake_ns, spread_ppm = 0;
	u32 i, share, least = CORE_PPM;

	if (core->cycle_asked_ns)
		return max(core->cycle_asked_ns, core->awake_tsgs * SLICE_FLOOR_NS);
	if (core->awake_tsgs <= 1)
		return CORE_CYCLE_LONE_NS;
	for (i = 0; i < core->tenant_count; i++) {
		share = core->tenants[i]->share_ppm;
		if (!share)
			continue;
		least = min(least, share);
		spread_ppm = max(spread_ppm, env_div((u64)share * (CORE_PPM - share), CORE_PPM));
	}
	loss_ns = env_mul_div(switches_ns, CORE_PPM - p->loss_ppm, max(p->loss_ppm, 1u));
	smooth_ns = env_mul_div(p->smooth_ns, CORE_PPM, max(spread_ppm, 1ull));
	smooth_ns = smooth_ns > switches_ns ? smooth_ns - switches_ns : 0;
	wake_ns = p->soft_wake_ns > switches_ns ? p->soft_wake_ns - switches_ns : 0;
	wake_ns = least < CORE_PPM ? env_mul_div(wake_ns, CORE_PPM, CORE_PPM - least) : U64_MAX;

	smooth_ns = max(smooth_ns, 19 * switches_ns);
	wake_ns = max(wake_ns, env_div(17 * switches_ns, 3));
	return min(loss_ns, min(smooth_ns, wake_ns));
}

/* T of a tenant at cycle @cycle_ns. */
static u64 part_of(const struct core_tenant *tenant, u64 cycle_ns)
{
	u64 part_ns = env_div(cycle_ns * tenant->share_ppm, CORE_PPM);

	return env_div(part_ns * (u64)((s64)CORE_PPM + tenant->trim_ppm), CORE_PPM);
}

/* How far the written slices at @cycle_ns are from the parts asked, in parts per 2^30. */
static u64 bias_of(const struct core *core, u64 cycle_ns)
{
	u64 total = 0, wanted = 0, worst = 0, have, want, off;
	struct core_tenant *tenant;
	int pass;
	u32 i;

	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < core->tenant_count; i++) {
			tenant = core->tenants[i];
			if (!tenant->share_ppm || !tenant->awake_count)
				continue;
			want = part_of(tenant, cycle_ns);
			have = tenant->awake_count *
			       core->params.slice_round(env_div(want, tenant->awake_count));
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

static u64 least_biased(const struct core *core, u64 longest_ns)
{
	u64 best_ns = longest_ns, best = U64_MAX, bias, step_ns, cycle_ns;
	u32 i, n;

	if (core->awake_tenants < 2 || core->cycle_asked_ns)
		return longest_ns;
	n = (u32)env_div(CANDIDATE_ROUNDINGS, core->awake_tenants);
	n = clamp(n, 1u, CANDIDATES_MAX);
	step_ns = env_div(longest_ns, 10 * n);
	for (i = 0; i < n && best; i++) {
		cycle_ns = longest_ns - i * step_ns;
		bias = bias_of(core, cycle_ns);
		if (bias < best) {
			best = bias;
			best_ns = cycle_ns;
		}
	}
	return best_ns;
}

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

static void plan_rotation(struct core *core, u64 now_ns)
{
	struct core_tenant *tenant;
	u64 budget_ns, period_ns;
	u32 i;

	core->cycle_ns = least_biased(core, longest_cycle(core));
	core->rotation.budget_ns = core->cycle_ns;
	core_pick_replanned(core, &core->rotation, 0, 0, now_ns);
	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		budget_ns = tenant->budget_ns;
		period_ns = tenant->period_ns;
		tenant->period_ns = 0;
		tenant->cycle_slice_ns = tenant->share_ppm ? part_of(tenant, core->cycle_ns) : 0;
		tenant->budget_ns = tenant->windowed ? tenant->cycle_slice_ns : 0;
		core_pick_replanned(core, tenant, budget_ns, period_ns, now_ns);
		plan_tsgs(core, tenant, tenant->cycle_slice_ns);
	}
}

static u64 period_of(const struct core_tenant *tenant, u64 least_budget_ns)
{
	return max(CORE_PERIOD_MIN_NS, env_div(least_budget_ns * CORE_PPM, tenant->share_ppm));
}

static void plan_windows(struct core *core, u64 now_ns)
{
	const struct core_params *p = &core->params;
	u64 least_ns = max(CORE_BUDGET_MIN_NS, 10 * p->switch_ns);
	u64 cost_ns = p->switch_ns + p->takeoff_ns;
	u64 sum_ppm = 0, over_ppm = 0, have_ppm;
	struct core_tenant *tenant;
	u64 budget_ns, period_ns;
	u32 i;

	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		if (!tenant->share_ppm)
			continue;
		sum_ppm += tenant->share_ppm;
		over_ppm += env_div(cost_ns * CORE_PPM, period_of(tenant, least_ns)) + 1;
	}
	/* Budgets are scaled where windows and switching together would pass the whole. */
	have_ppm = CORE_PPM > over_ppm ? CORE_PPM - over_ppm : 1;
	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		budget_ns = tenant->budget_ns;
		period_ns = tenant->period_ns;
		tenant->trim_ppm = 0;
		tenant->cycle_slice_ns = 0;
		tenant->period_ns = tenant->share_ppm ? period_of(tenant, least_ns) : 0;
		tenant->budget_ns = env_mul_div(tenant->period_ns, tenant->share_ppm, CORE_PPM);
		if (sum_ppm > have_ppm)
			tenant->budget_ns = env_mul_div(tenant->budget_ns, have_ppm, sum_ppm);
		core_pick_replanned(core, tenant, budget_ns, period_ns, now_ns);
		plan_tsgs(core, tenant, tenant->budget_ns);
	}
	core->cycle_ns = 0;
	core->rotation.budget_ns = 0;
	core_pick_replanned(core, &core->rotation, 0, 0, now_ns);
}

void core_plan_make(struct core *core, u64 now_ns)
{
	plan_shares(core);
	plan_servers(core, now_ns);
	if (core_on_clock(core))
		plan_windows(core, now_ns);
	else
		plan_rotation(core, now_ns);
	if (core->policy == CORE_BEST_EFFORT)
		core->cycle_ns = 0;
	core->dirty = false;
	core->urgent = false;
	core->planned_at_ns = now_ns;
}
