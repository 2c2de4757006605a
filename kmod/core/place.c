// SPDX-License-Identifier: GPL-2.0
/*
 * place.c - how each tenant is scheduled, and its share: from settings and who is awake. Called by
 * plan.c, which makes numbers of both.
 */
#include "core/core_inside.h"

/* ---- places ---- */

/* Alone, or asleep, everybody fits the rotation. */
static bool needs_turns(const struct core *core, const struct core_tenant *tenant)
{
	return tenant->misfit && core_tenant_awake(tenant) && core->awake_tenants >= 2;
}

static enum core_place place_of(const struct core *core, const struct core_tenant *tenant)
{
	if (core->policy == CORE_FIXED_SHARE || core->policy == CORE_EQUAL_SHARE)
		return CORE_CLOCKED;
	if (core->policy == CORE_BEST_EFFORT)
		return CORE_ROTATES;
	if (tenant->asked.class_ == CORE_ONLINE)
		return CORE_BESIDE;
	if (core_is_fixed(&tenant->asked))
		return CORE_CLOCKED;
	if (core->online_count)
		return CORE_RANKED;
	if (needs_turns(core, tenant))
		return CORE_RANKED;
	/* A wait is kept for a tenant, not for whoever is next among the rotation's members. */
	return tenant->asked.wake_ns && core->turns ? CORE_RANKED : CORE_ROTATES;
}

/* What one kind of windows owes is no debt in another, but for who does not fit the rotation and is
 * in it while asleep or alone. */
static void set_place(struct core *core, struct core_tenant *tenant, enum core_place place,
		      u64 now_ns)
{
	bool is_news = tenant->misfit_from_ns >= core->planned_at_ns;

	core_budget_unqueue(core, tenant);
	core_lag_settle(core, tenant);
	if (tenant->place == CORE_ROTATES && tenant->sharing)
		core_fit_leaves(core, tenant);
	core_lag_leave(core, tenant, now_ns);
	if (place > CORE_RANKED || tenant->place > CORE_RANKED || !tenant->misfit) {
		tenant->lag_ns = 0;
	} else if (is_news) {
		tenant->lag_ns = core_fit_debt_ns(tenant);
		core->rotation.lag_ns -= tenant->lag_ns;
	}
	tenant->place = place;
	/* What it did in windows says nothing about the rotation. */
	core_fit_restart(core, tenant);
	core->stale = true;
}

void core_place_all(struct core *core, u64 now_ns)
{
	struct core_tenant *tenant;
	enum core_place place;
	bool moved = false;
	u32 i, online = 0;

	core->turns = false;
	core->member_changes++;
	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		online += core->policy == CORE_BURST_SHARE && tenant->asked.class_ == CORE_ONLINE &&
			  core_tenant_present(tenant);
		core->turns |= needs_turns(core, tenant);
		core_lag_settle(core, tenant);
	}
	core->stale |= online != core->online_count;
	core->online_count = online;
	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		place = place_of(core, tenant);
		if (place == tenant->place)
			continue;
		set_place(core, tenant, place, now_ns);
		moved = true;
	}
	/* What those who left had lost is credited by the shares they leave behind. What was
	 * corrected in other company; who loses by its own gaps does in any. */
	for (i = 0; i < core->tenant_count && moved; i++) {
		core_lag_settle(core, core->tenants[i]);
		core_ledger_restart_due(core->tenants[i]);
		if (!core_fit_goes_idle(core->tenants[i]))
			core->tenants[i]->trim_ppm = 0;
	}
}

/* ---- shares ---- */

/* Who takes part in a split. */
enum claimants {
	CLAIM_CLOCK,  /* fixed-share and equal-share */
	CLAIM_GROUP,  /* the awake who share what windows on the clock leave */
	CLAIM_ONLINE, /* the online among themselves */
	CLAIM_FLOOR,  /* the group if all online were busy */
};

/* Under fixed-share a share of one's own does not depend on who is there; what is unassigned is
 * split among those who are. */
static bool claims(const struct core *core, const struct core_tenant *tenant, enum claimants who)
{
	bool online = tenant->place == CORE_BESIDE && core_tenant_present(tenant);
	bool group = core_in_group(tenant) && core_tenant_awake(tenant);

	switch (who) {
	case CLAIM_CLOCK:
		return core_tenant_present(tenant) ||
		       (core->policy == CORE_FIXED_SHARE && tenant->asked.guarantee_ppm);
	case CLAIM_GROUP:
		return group;
	case CLAIM_ONLINE:
		return online;
	case CLAIM_FLOOR:
		return group || online;
	}
	return false;
}

static void claim(const struct core *core, const struct core_tenant *tenant, enum claimants who,
		  struct core_claim *out)
{
	/* All that are there are alike, whatever they asked for under other policies. */
	bool alike = core->policy == CORE_EQUAL_SHARE;

	out->weight = alike ? 1 : tenant->asked.weight;
	out->guarantee_ppm = alike || who == CLAIM_ONLINE ? 0 : tenant->asked.guarantee_ppm;
	out->ceiling_ppm = who == CLAIM_ONLINE ? CORE_PPM : tenant->asked.ceiling_ppm;
	out->class_ = tenant->asked.class_;
	out->share_ppm = 0;
}

/* Split @total_ppm among @who; their parts are in core->claims then, in order. */
static void split(struct core *core, enum claimants who, u32 total_ppm)
{
	u32 i, n = 0;

	for (i = 0; i < core->tenant_count; i++)
		if (claims(core, core->tenants[i], who))
			claim(core, core->tenants[i], who, &core->claims[n++]);
	if (who == CLAIM_CLOCK)
		core_share_windows(core->claims, n);
	else
		core_share_split(core->claims, n, total_ppm);
}

static void set_share(struct core *core, struct core_tenant *tenant, u32 share_ppm)
{
	bool held = core->policy == CORE_BURST_SHARE && core_in_group(tenant) &&
		    core_tenant_awake(tenant) && !share_ppm;

	/* What was corrected among others is worth half as much now. */
	if (share_ppm != tenant->share_ppm)
		tenant->trim_ppm /= 2;
	/* Until now it was entitled to nothing, and ran. */
	if (!tenant->share_ppm)
		core_ledger_restart_due(tenant);
	tenant->share_ppm = share_ppm;
	core->stale |= held != tenant->held;
	tenant->held = held;
}

/* The part of the wall that windows on the clock take from the group. */
static u32 clocked_ppm(const struct core *core)
{
	u64 sum_ppm = 0;
	u32 i;

	for (i = 0; i < core->tenant_count; i++)
		if (core->tenants[i]->place == CORE_CLOCKED && core_tenant_awake(core->tenants[i]))
			sum_ppm += core->tenants[i]->asked.guarantee_ppm;
	return (u32)min(sum_ppm, (u64)CORE_PPM - 1);
}

static void set_shares(struct core *core, enum claimants who)
{
	struct core_tenant *tenant;
	u32 i, n = 0;

	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		if (claims(core, tenant, who))
			set_share(core, tenant, core->claims[n++].share_ppm);
	}
}

/* Shares by policy; those of sleepers and floors are zero. */
static void plan_own_shares(struct core *core)
{
	bool none = core->policy == CORE_BEST_EFFORT;
	struct core_tenant *tenant;
	u32 i;

	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		tenant->floor_ppm = 0;
		if (none || (core_in_group(tenant) && !core_tenant_awake(tenant)))
			set_share(core, tenant, 0);
		else if (tenant->place == CORE_CLOCKED)
			set_share(core, tenant,
				  core_on_clock(core) ? 0 : tenant->asked.guarantee_ppm);
	}
}

static void plan_floors(struct core *core, u32 group_ppm)
{
	u32 i, n = 0;

	split(core, CLAIM_ONLINE, CORE_PPM);
	set_shares(core, CLAIM_ONLINE);
	split(core, CLAIM_FLOOR, group_ppm);
	for (i = 0; i < core->tenant_count; i++)
		if (claims(core, core->tenants[i], CLAIM_FLOOR))
			core->tenants[i]->floor_ppm = core->claims[n++].share_ppm;
}

static void plan_shown(struct core *core)
{
	struct core_tenant *tenant;
	bool online = false;
	u32 i;

	for (i = 0; i < core->tenant_count; i++)
		online |= core->tenants[i]->place == CORE_BESIDE &&
			  core_tenant_awake(core->tenants[i]);
	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		tenant->shown_ppm = tenant->share_ppm;
		if (tenant->place == CORE_BESIDE || (online && core_in_group(tenant)))
			tenant->shown_ppm = tenant->floor_ppm;
	}
}

void core_place_shares(struct core *core)
{
	u32 group_ppm = CORE_PPM - clocked_ppm(core);

	plan_own_shares(core);
	if (core_on_clock(core)) {
		split(core, CLAIM_CLOCK, CORE_PPM);
		set_shares(core, CLAIM_CLOCK);
	} else if (core->policy == CORE_BURST_SHARE) {
		split(core, CLAIM_GROUP, group_ppm);
		set_shares(core, CLAIM_GROUP);
		if (core->online_count)
			plan_floors(core, group_ppm);
	}
	plan_shown(core);
}
