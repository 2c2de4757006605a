// SPDX-License-Identifier: GPL-2.0
/*
 * core.c - the core's own life: memory, tenants, settings. Called by turn.c. Changes memory only;
 * what follows from a change is decided by plan.c and pick.c at the next turn.
 */
#include "core/core_inside.h"

void core_params_default(struct core_params *params)
{
	memset(params, 0, sizeof(*params));
	params->switch_ns = 100000;
	params->takeoff_ns = 50000;
	params->sample_ns = 500000;
	params->window_look_ns = 125000;
	params->idle_look_ns = 5000000;
	params->loss_ppm = 10000;
	params->smooth_ns = 5000000;
	params->soft_wake_ns = 50000000;
	params->period_min_ns = 20000000;
	params->tenure_ns = 20000000;
}

int core_init(struct core *core, const struct core_params *params, u32 tenant_max, u64 seed,
	      u64 now_ns)
{
	memset(core, 0, sizeof(*core));
	core->params = *params;
	core->policy = CORE_BURST_SHARE;
	core->tenant_max = tenant_max;
	core->tenants = env_zalloc(tenant_max * sizeof(*core->tenants));
	core->claims = env_zalloc(tenant_max * sizeof(*core->claims));
	core->ready.at = env_zalloc(tenant_max * sizeof(*core->ready.at));
	core->waiting.at = env_zalloc(tenant_max * sizeof(*core->waiting.at));
	/* The rotation is one among those that take turns. */
	core->ranked.at = env_zalloc((tenant_max + 1) * sizeof(*core->ranked.at));
	core->ready.id = CORE_HEAP_READY;
	core->waiting.id = CORE_HEAP_WAITING;
	core->ranked.id = CORE_HEAP_RANKED;
	core->window.kind = CORE_WINDOW_DRIVER;
	core->rotation.index = U32_MAX; /* the last of equals */
	core->rotation.place = CORE_RANKED;
	core->looked_ns = now_ns;
	core->look_at_ns = now_ns;
	core->look_cell_ns = now_ns;
	core->trimmed_at_ns = now_ns;
	core->stale = true;
	core->dirty = true;
	core->rng = seed ? seed : 1; /* 0 would stay 0 */
	if (core->tenants && core->claims && core->ready.at && core->waiting.at && core->ranked.at)
		return 0;
	core_fini(core);
	return -ENOMEM;
}

void core_fini(struct core *core)
{
	env_free(core->tenants);
	env_free(core->claims);
	env_free(core->ready.at);
	env_free(core->waiting.at);
	env_free(core->ranked.at);
	core->tenants = NULL;
	core->claims = NULL;
	core->ready.at = NULL;
	core->waiting.at = NULL;
	core->ranked.at = NULL;
}

void core_settings_default(struct core_settings *settings)
{
	memset(settings, 0, sizeof(*settings));
	settings->weight = 100;
	settings->ceiling_ppm = CORE_PPM;
	settings->class_ = CORE_NORMAL;
}

int core_tenant_add(struct core *core, struct core_tenant *tenant,
		    const struct core_settings *settings)
{
	if (core->tenant_count == core->tenant_max)
		return -ENOSPC;
	memset(tenant, 0, sizeof(*tenant));
	tenant->asked = *settings;
	tenant->index = core->tenant_count;
	tenant->v_from = core->v;
	core->tenants[core->tenant_count++] = tenant;
	core->dirty = true;
	return 0;
}

void core_tenant_set(struct core *core, struct core_tenant *tenant,
		     const struct core_settings *settings)
{
	tenant->asked = *settings;
	core_lag_settle(core, tenant);
	core_ledger_restart_due(tenant);
	tenant->trim_ppm = 0;
	core->dirty = true;
}

void core_tenant_remove(struct core *core, struct core_tenant *tenant)
{
	u32 i;

	env_warn_once(tenant->tsg_count != 0);
	core_pick_forget(core, tenant, core->looked_ns);
	if (core->seen_tenant == tenant) {
		core->seen = CORE_SEEN_SWITCH;
		core->seen_tenant = NULL;
		core->seen_tsg = NULL;
	}
	if (core->hung == tenant)
		core->hung = NULL;
	for (i = tenant->index; i + 1 < core->tenant_count; i++) {
		core->tenants[i] = core->tenants[i + 1];
		core->tenants[i]->index = i;
	}
	core->tenant_count--;
	core->dirty = true;
}

static void forget_lags(struct core *core)
{
	u32 i;

	for (i = 0; i < core->tenant_count; i++) {
		core_lag_settle(core, core->tenants[i]);
		core_ledger_restart_due(core->tenants[i]);
		core->tenants[i]->lag_ns = 0;
	}
	core_lag_settle(core, &core->rotation);
	core->rotation.lag_ns = 0;
}

void core_forgive(struct core *core, u64 from_ns)
{
	u32 i;

	forget_lags(core);
	for (i = 0; i < core->tenant_count; i++) {
		core_fit_forgive(core, core->tenants[i], from_ns);
		core_budget_forgive(core, core->tenants[i], core->looked_ns);
	}
	core->floor_lag_ns = 0;
	core->protecting = false;
	core_lag_sum_busy(core, core->looked_ns);
}

void core_tenure_set(struct core *core, u64 tenure_ns)
{
	core->params.tenure_ns = tenure_ns;
}

void core_policy_set(struct core *core, enum core_policy policy, u64 cycle_ns)
{
	if (core->policy == policy && core->cycle_asked_ns == cycle_ns)
		return;
	/* What one policy owes is no debt under another. */
	if (core->policy != policy)
		forget_lags(core);
	core->urgent |= core->policy != policy;
	core->policy = policy;
	core->cycle_asked_ns = cycle_ns;
	core->dirty = true;
}

void core_tenant_view(const struct core_tenant *tenant, struct core_view *out)
{
	const struct core_tsg *tsg;

	out->share_ppm = tenant->shown_ppm;
	out->window_ns = 0;
	if (tenant->place == CORE_CLOCKED)
		out->window_ns = tenant->budget_ns;
	else if (tenant->place == CORE_RANKED)
		out->window_ns = tenant->cycle_slice_ns;
	out->awake = core_tenant_awake(tenant);
	out->tsgs = tenant->tsg_count;
	out->slice_ns = 0;
	for (tsg = tenant->tsgs; tsg; tsg = tsg->next)
		out->slice_ns = max(out->slice_ns, tsg->slice_ns);
}
