// SPDX-License-Identifier: GPL-2.0
/*
 * lag.c - what each is entitled to and did not run: virtual times, who shares in them, the rotation
 * as one of those who take turns. Told by activity.c who has work, by ledger.c what was run. Never
 * decides who runs.
 */
#include "core/core_inside.h"

#define RECIP_SHIFT 20
/* Below this a product with busy_recip fits 64 bits. */
#define RECIP_SPAN_MAX_NS (1ull << 23)
#define LAG_CAP_NS 1000000000ll
/* Who is back within so many looks did not leave. */
#define BACK_LOOKS 4

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

void core_lag_settle(struct core *core, struct core_tenant *tenant)
{
	tenant->lag_ns = core_lag_ns(core, tenant);
	tenant->v_from = core->v;
	tenant->floor_v_from = core->floor_v;
	tenant->run_from_ns = tenant->run_ns;
	core_fit_settle(core, tenant);
}

/* The busy of the rotation: whoever runs can be ahead only while there are two. */
static void rotation_busy(struct core *core, u32 count, u64 now_ns)
{
	if (count >= 2 && core->rotation.work_count < 2)
		core->contended_from_ns = now_ns;
	core->rotation.work_count = count;
	core->rotation.sharing = count;
}

static void level_by(struct core *core, s64 level_v)
{
	core->member_v += (u64)level_v;
	core->levelled_v += (u64)level_v;
}

/* What one who left ran too much or too little of is not what those who stay lost or won; and a
 * round in which it came or went is no evidence of its own. */
static void level_members(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	s64 lag_ns = tenant->fit_lag_ns - tenant->fit_joined_ns;

	tenant->fit_level_v = 0;
	if (core->rotation.share_ppm)
		tenant->fit_level_v = core_scaled(lag_ns, CORE_PPM, core->rotation.share_ppm);
	level_by(core, tenant->fit_level_v);
	tenant->fit_round_ns = clamp(lag_ns, 0ll, (s64)tenant->cycle_slice_ns);
	tenant->fit_lag_ns -= tenant->fit_round_ns;
	tenant->fit_left_ns = now_ns;
	tenant->fit_changes = ++core->member_changes;
}

/* It is back at once, as when two looks met two of its gaps: what was known of it and of the others
 * is known. Only if the others are those who were credited: nobody came or went meanwhile, but for
 * those who are back themselves. */
static bool comes_back(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	if (!tenant->fit_left_ns || tenant->fit_changes != core->member_changes ||
	    now_ns > tenant->fit_left_ns + BACK_LOOKS * core->params.sample_ns)
		return false;
	core->member_changes--;
	level_by(core, -tenant->fit_level_v);
	tenant->fit_v -= (u64)tenant->fit_level_v;
	tenant->levelled_v -= (u64)tenant->fit_level_v;
	tenant->fit_lag_ns += tenant->fit_round_ns;
	return true;
}

/* A member has become busy; its lag is settled. */
static void rotation_gains(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	core_lag_settle(core, &core->rotation);
	if (!comes_back(core, tenant, now_ns)) {
		tenant->fit_joined_ns = tenant->fit_lag_ns;
		core->member_changes++;
	}
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

	core_lag_settle(core, &core->rotation);
	core->rotation.lag_ns = max(core->rotation.lag_ns, -most_ns);
	/* Nobody is left who is owed anything. */
	if (!share_ppm)
		core->rotation.lag_ns = 0;
	set_members_ppm(core, share_ppm);
	level_members(core, tenant, now_ns);
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

void core_lag_join(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	if (tenant->sharing || tenant->held || tenant->place == CORE_CLOCKED)
		return;
	if (tenant->place == CORE_BESIDE) {
		online_begins(core, tenant, now_ns);
		return;
	}
	/* Only while it shares does entitlement grow. */
	core_lag_settle(core, tenant);
	tenant->sharing = true;
	core->sharing_count++;
	set_busy_ppm(core, core->busy_ppm + tenant->share_ppm,
		     core->floor_busy_ppm + tenant->floor_ppm);
	if (tenant->place == CORE_ROTATES)
		rotation_gains(core, tenant, now_ns);
}

void core_lag_leave(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	if (!tenant->sharing)
		return;
	if (tenant->place == CORE_BESIDE) {
		tenant->sharing = false;
		core->online_busy--;
		return;
	}
	core_lag_settle(core, tenant);
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
void core_lag_sum_busy(struct core *core, u64 now_ns)
{
	struct core_tenant *rotation = &core->rotation, *tenant;
	u32 busy_ppm = 0, floor_ppm = 0, members_ppm = 0, members = 0, online = 0, i;

	core_lag_settle(core, rotation);
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

/* The others' virtual times; @floor_lag_ns is what they are behind their shares with online busy.
 */
void core_lag_charge(struct core *core, const struct core_tenant *tenant, u64 span_ns)
{
	s64 cap_ns = lag_cap(core), limit_ns = (s64)(core->params.smooth_ns >> 1);
	bool group = core_in_group(tenant);
	u64 member_v;

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
	member_v = virtual_ns(span_ns, core->rotation.share_ppm, core->member_recip);
	core->member_v += member_v;
	/* One that just came and has no share yet: the others' slices are not off by that. */
	if (!tenant->share_ppm)
		core->levelled_v += member_v;
}
