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
/* So often their cycle is made shorter for slices that are the least there are. */
#define FIT_ROUNDS 8

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

/* What was asked holds with windows on the clock in it, what was not asked beside them. */
static u64 online_wake(const struct core_tenant *tenant, u64 bound_ns, u64 windows_ns)
{
	u64 wake_ns = tenant->asked.wake_ns;

	if (!wake_ns)
		return max(CORE_ONLINE_WAKE_NS, bound_ns);
	return max(wake_ns > windows_ns ? wake_ns - windows_ns : 0, bound_ns);
}

/*
 * A cycle of which those beside @self have @rest_ns, or a shorter one. Slices at @cycle_ns that
 * cannot be shorter leave the less to the longer ones. @everybody: as if all had the least, and
 * their parts beside.
 */
static u64 cycle_beside(const struct core *core, const struct core_tenant *self, u64 rest_ns,
			u64 cycle_ns, bool everybody)
{
	const struct core_tenant *tenant;
	u64 short_ns = 0, longer_ppm = 0;
	bool is_short;
	u32 i;

	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		if (tenant == self || !is_online(tenant))
			continue;
		is_short = slice_of(core, tenant, cycle_ns) == least_ns(core);
		if (is_short || everybody)
			short_ns += least_ns(core);
		if (!is_short || everybody)
			longer_ppm += tenant->share_ppm;
	}
	if (!longer_ppm)
		return cycle_ns;
	rest_ns -= min(rest_ns, short_ns);
	return min(cycle_ns, env_mul_div(rest_ns, CORE_PPM, longer_ppm));
}

/* Who has the least share waits for the most of the others. */
static u64 cycle_of(const struct core *core, const struct core_tenant *least, u64 rest_ns)
{
	u64 cycle_ns = env_mul_div(rest_ns, CORE_PPM, CORE_PPM - least->share_ppm), shorter_ns;
	u32 rounds;

	for (rounds = 0; rounds <= FIT_ROUNDS; rounds++) {
		shorter_ns = cycle_beside(core, least, rest_ns, cycle_ns, rounds == FIT_ROUNDS);
		if (shorter_ns == cycle_ns)
			break;
		cycle_ns = shorter_ns;
	}
	return cycle_ns;
}

/*
 * One online tenant waits for the other's slice and two switches. Several wait for each other's
 * slices as well: those together get as much, and half of what is to spare.
 */
void core_online_plan(struct core *core, u64 *online_cycle_ns)
{
	u64 bound_ns = core_online_bound_ns(&core->params, core->online_count);
	u64 windows_ns = core->online_count ? core_windows_load(core).burst_ns : 0;
	const struct core_tenant *tenant, *least = NULL;
	u64 wake_ns = U64_MAX, spare_ns, others_ns;
	u32 i;

	*online_cycle_ns = ONLINE_SLICE_NS;
	if (!core->online_count)
		return;
	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		if (!is_online(tenant))
			continue;
		wake_ns = min(wake_ns, online_wake(tenant, bound_ns, windows_ns));
		if (!least || tenant->share_ppm < least->share_ppm)
			least = tenant;
	}
	spare_ns = wake_ns - bound_ns;
	if (core->online_count > 1) {
		spare_ns >>= 1;
		others_ns = (core->online_count - 1) * CORE_OTHER_SLICE_MIN_NS + spare_ns;
		*online_cycle_ns = cycle_of(core, least, others_ns);
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
