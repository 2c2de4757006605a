// SPDX-License-Identifier: GPL-2.0
/*
 * activity.c - who is awake and who is busy: from the looks at channels and the driver's list. Told
 * by turn.c; tells lag.c and budget.c. Never decides who runs.
 */
#include "core/core_inside.h"

/* A sleeper's debt stands for so long: whoever wakes twice in a second has one tail in it. */
#define DEBT_STANDS_NS 1000000000ull

static void get_work(struct core *core, struct core_tsg *tsg, u64 now_ns)
{
	struct core_tenant *tenant = tsg->tenant;

	tsg->has_work = true;
	if (tenant->work_count++)
		return;
	tenant->work_from_ns = now_ns;
	core->busy_tenants++;
	if (tenant->heap != CORE_HEAP_WAITING)
		core_lag_join(core, tenant, now_ns);
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
	core_lag_leave(core, tenant, now_ns);
	core_budget_idle(core, tenant, now_ns);
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
	core_lag_settle(core, tenant);
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
	tenant->quiet_looks += !has_work;
	core_fit_observed(tenant, now_ns, tenant_was_quiet);
	core_wait_observed(core, tenant, now_ns, tenant_was_quiet);
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
