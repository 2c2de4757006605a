// SPDX-License-Identifier: GPL-2.0
/*
 * wait.c - how long each had work and was not seen running: from looks, for the counters and for
 * the waits that were promised; how long a promise is waited for beside windows by lag. Told by
 * ledger.c and activity.c, and by plan.c when it plans.
 */
#include "core/core_inside.h"

/* So many distances of looks between two of them, with two or more awake, are no sampling. */
#define LOOKS_MISSED 16

/* Throttled up to the last look; work may have been found after it. */
u64 core_throttled_ns(const struct core *core, const struct core_tenant *tenant)
{
	u64 ns = tenant->throttled_ns;

	if (tenant->throttled && core->looked_ns > tenant->throttled_from_ns)
		ns += core->looked_ns - tenant->throttled_from_ns;
	return ns;
}

/* Nobody looked for long, as when the card did not answer. */
bool core_looks_missed(const struct core *core, u64 span_ns)
{
	return core->awake_tenants >= 2 && span_ns > LOOKS_MISSED * core->params.sample_ns;
}

void core_hist_add(struct core_hist *hist, u64 ns)
{
	u64 rest = ns >> CORE_HIST_SHIFT;
	u32 bin = 0;

	while (rest && bin < CORE_HIST_BINS - 1) {
		rest >>= 1;
		bin++;
	}
	hist->bins[bin]++;
	hist->sum_ns += ns;
}

void core_wait_begins(struct core *core, struct core_tenant *tenant, u64 from_ns)
{
	tenant->waiting = true;
	tenant->wait_from_ns = from_ns;
	core->press_at_ns = min(core->press_at_ns, core_presses_from_ns(tenant));
	tenant->wait_throttled_ns = core_throttled_ns(core, tenant);
}

/*
 * It waited up to @now_ns. What its ceiling keeps from it is no wait; budgets of windows on the
 * clock are what is promised there, so that time is.
 */
static u64 wait_lasts(const struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	u64 wait_ns = now_ns > tenant->wait_from_ns ? now_ns - tenant->wait_from_ns : 0;
	u64 kept_ns = 0;

	if (!tenant->waiting)
		return 0;
	if (tenant->place != CORE_CLOCKED)
		kept_ns = core_throttled_ns(core, tenant) - tenant->wait_throttled_ns;
	wait_ns -= min(wait_ns, kept_ns);
	tenant->wait_max_ns = max(tenant->wait_max_ns, wait_ns);
	return wait_ns;
}

/* A look found work of it, or none, while it was not running. */
void core_wait_observed(struct core *core, struct core_tenant *tenant, u64 now_ns, bool was_quiet)
{
	if (!tenant->loud_count)
		tenant->waiting = false;
	else if (core->seen_tenant == tenant)
		return;
	else if (was_quiet || !tenant->waiting)
		core_wait_begins(core, tenant, now_ns);
	else
		wait_lasts(core, tenant, now_ns);
}

/* Who ran at the last look and who runs now: the change was in the middle of @span_ns. */
void core_wait_seen(struct core *core, struct core_tenant *now, u64 span_ns)
{
	u64 change_ns = core->looked_ns + (span_ns >> 1), wait_ns;

	if (core->seen_tenant == now)
		return;
	if (core->seen_tenant && core->seen_tenant->loud_count)
		core_wait_begins(core, core->seen_tenant, change_ns);
	if (!now)
		return;
	wait_ns = wait_lasts(core, now,
			     core_looks_missed(core, span_ns) ? core->looked_ns : change_ns);
	if (now->waiting)
		core_hist_add(&now->waits, wait_ns);
	now->waiting = false;
}

/* ---- promised waits beside windows by lag ---- */

/* What of a promise is left to those who come before it: it is noticed a look later, and each of
 * @count has a window. */
static u64 press_room(const struct core *core, const struct core_load *load, u64 wake_ns, u32 count)
{
	u64 spare_ns = core_load_spare(load, wake_ns);
	u64 over_ns = 2 * core->params.sample_ns + count * core_window_cost_ns(core);

	return spare_ns > over_ns ? spare_ns - over_ns : 0;
}

/* Who has waited so long that the room of the shortest promise is what is left of its own takes the
 * engine (theory.rst, WAITS). */
void core_wait_plan(struct core *core)
{
	struct core_load load = core_group_load(core);
	u64 room_ns, least_ns = U64_MAX;
	struct core_tenant *tenant;
	u32 i, count = 0;

	core->promised = NULL;
	core->press_at_ns = 0;
	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		tenant->press_ns = 0;
		if (core->online_count || !core->turns || !tenant->asked.wake_ns ||
		    tenant->place != CORE_RANKED || !core_tenant_present(tenant))
			continue;
		tenant->next_promised = core->promised;
		core->promised = tenant;
		count++;
	}
	for (tenant = core->promised; tenant; tenant = tenant->next_promised)
		least_ns = min(least_ns, press_room(core, &load, tenant->asked.wake_ns, count));
	core->press_room_ns = max(least_ns >> 1, count * core->params.switch_ns);
	for (tenant = core->promised; tenant; tenant = tenant->next_promised) {
		room_ns = press_room(core, &load, tenant->asked.wake_ns, count);
		tenant->press_ns =
			room_ns > core->press_room_ns ? room_ns - core->press_room_ns : 1;
	}
}
