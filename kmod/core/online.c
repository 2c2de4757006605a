// SPDX-License-Identifier: GPL-2.0
/*
 * online.c - the slices of online tenants, and of the one other that a window admits beside them.
 * Called by plan.c; theory.rst, ONLINE.
 */
#include "core/core_inside.h"

/* The slice of a lone online tenant: nobody is to interrupt it. */
#define ONLINE_SLICE_NS 1000000000ull
/* Several online tenants: none has less. */
#define ONLINE_SLICE_MIN_NS 100000ull

static u64 least_ns(const struct core *core)
{
	return max(ONLINE_SLICE_MIN_NS, core->params.slice_min_ns);
}

static u64 slice_of(const struct core *core, const struct core_tenant *tenant, u64 cycle_ns)
{
	return max(env_mul_div(cycle_ns, tenant->share_ppm, CORE_PPM), least_ns(core));
}

static bool is_online(const struct core_tenant *tenant)
{
	return tenant->place == CORE_BESIDE && core_tenant_present(tenant);
}

/* What was asked holds with windows on the clock in it, and with slices as they are written, which
 * may be longer by 1/128; what was not asked, beside both. */
static u64 online_wake(const struct core *core, const struct core_tenant *tenant, u64 bound_ns,
		       u64 windows_ns)
{
	const struct core_params *params = &core->params;
	u64 switches_ns = (core->online_count + 1) * params->switch_ns;
	u64 wake_ns = tenant->asked.wake_ns;

	if (!wake_ns)
		return max(CORE_ONLINE_WAKE_NS, bound_ns);
	windows_ns += core_online_written_ns(params, core->online_count);
	wake_ns -= min(wake_ns, windows_ns);
	wake_ns -= (wake_ns - min(wake_ns, switches_ns)) >> 7;
	return max(wake_ns, bound_ns);
}

/* Of which those beside each have @others_ns at most. */
static u64 cycle_of(struct core *core, u64 others_ns)
{
	struct core_tenant *tenant;
	u32 i;

	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		tenant->part = (struct core_part){ .others_ns = U64_MAX };
		if (is_online(tenant))
			tenant->part =
				(struct core_part){ tenant->share_ppm, least_ns(core), others_ns };
	}
	return core_parts_cycle(core);
}

/*
 * One online tenant waits for the other's slice and two switches. Several wait for each other's
 * slices as well: those together get as much, and half of what is to spare.
 */
void core_online_plan(struct core *core, u64 *online_cycle_ns)
{
	u64 bound_ns = core_online_bound_ns(&core->params, core->online_count);
	u64 windows_ns = core->online_count ? core_windows_load(core).burst_ns : 0;
	const struct core_tenant *tenant;
	u64 wake_ns = U64_MAX, spare_ns, others_ns;
	bool asked = false;
	u32 i;

	*online_cycle_ns = ONLINE_SLICE_NS;
	if (!core->online_count)
		return;
	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		if (!is_online(tenant))
			continue;
		wake_ns = min(wake_ns, online_wake(core, tenant, bound_ns, windows_ns));
		asked |= tenant->asked.wake_ns != 0;
	}
	spare_ns = wake_ns - bound_ns;
	if (core->online_count > 1) {
		spare_ns >>= 1;
		others_ns = (core->online_count - 1) * CORE_OTHER_SLICE_MIN_NS + spare_ns;
		/* At the bound nothing is to spare for how slices are written. */
		if (asked)
			others_ns -= others_ns >> 7;
		*online_cycle_ns = cycle_of(core, others_ns);
	}
	core->stale |= CORE_OTHER_SLICE_MIN_NS + spare_ns != core->other_slice_ns;
	core->other_slice_ns = CORE_OTHER_SLICE_MIN_NS + spare_ns;
}

/* An online tenant has its slice whether it is awake or not: it must not wait for a plan. */
void core_online_slices(struct core *core, struct core_tenant *tenant, u64 cycle_ns)
{
	u64 part_ns = slice_of(core, tenant, cycle_ns);
	struct core_tsg *tsg;

	for (tsg = tenant->tsgs; tsg; tsg = tsg->next) {
		core->stale |= tsg->planned_ns != part_ns;
		tsg->planned_ns = part_ns;
	}
}
