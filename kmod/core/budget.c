// SPDX-License-Identifier: GPL-2.0
/*
 * budget.c - what a tenant may run in a period, and the three queues: those on the clock with
 * budget, those whose budget is used up, those who take turns by lag. Told by ledger.c who became
 * busy and what was run, by plan.c of new budgets; pick.c takes from the queues.
 */
#include "core/core_inside.h"

/* Virtual time may be less than a lag. */
#define RANK_ORIGIN (1ull << 61)
/* Owners whose period ended, refilled in one go; the others follow at the next turns. */
#define REFILLS 2u

static void set_deadline(struct core_tenant *tenant)
{
	/* With a missed budget it is overdue: due at the end of the period it missed. */
	bool missed = tenant->left_ns > (s64)tenant->budget_ns + CORE_CRUMB_NS;

	tenant->deadline_ns = tenant->period_end_ns - (missed ? tenant->period_ns : 0);
}

/* What may be kept from former periods: only a busy owner carries what it missed, and a ceiling
 * forgives half a budget of what other tenants' turns took from a period. */
static s64 most_left(const struct core_tenant *tenant)
{
	u64 budget_ns = tenant->budget_ns;

	if (tenant->capped)
		return (s64)(budget_ns + (budget_ns >> 1));
	return (s64)(core_tenant_busy(tenant) ? CORE_CARRY_PERIODS * budget_ns : budget_ns);
}

/* Refill for the periods that have ended. */
static void roll(struct core_tenant *tenant, u64 now_ns, s64 most_ns)
{
	u64 periods;

	if (now_ns >= tenant->period_end_ns) {
		periods = env_div(now_ns - tenant->period_end_ns, tenant->period_ns) + 1;
		tenant->period_end_ns += periods * tenant->period_ns;
		tenant->left_ns += (s64)(periods * tenant->budget_ns);
	}
	tenant->left_ns = min(tenant->left_ns, most_ns);
	set_deadline(tenant);
}

static bool has_budget(const struct core_tenant *tenant)
{
	return tenant->left_ns > CORE_CRUMB_NS;
}

bool core_budget_allows(const struct core_tenant *tenant, u64 now_ns)
{
	return !tenant->period_ns || has_budget(tenant) || now_ns >= tenant->period_end_ns;
}

static void throttle_begins(struct core_tenant *tenant, u64 now_ns)
{
	if (tenant->throttled)
		return;
	tenant->throttled = true;
	tenant->throttled_from_ns = now_ns;
}

static void throttle_ends(struct core_tenant *tenant, u64 now_ns)
{
	if (tenant->throttled && now_ns > tenant->throttled_from_ns)
		tenant->throttled_ns += now_ns - tenant->throttled_from_ns;
	tenant->throttled = false;
}

/* The virtual time at which it would have what it ran. */
static u64 rank(const struct core *core, const struct core_tenant *tenant)
{
	s64 lag_ns = core_lag_ns(core, tenant);
	u64 off = env_mul_div((u64)(lag_ns < 0 ? -lag_ns : lag_ns), CORE_PPM,
			      max(tenant->share_ppm, 1u));

	off = min(off, RANK_ORIGIN);
	return RANK_ORIGIN + core->v + (lag_ns < 0 ? off : -off);
}

static void wait_on(struct core *core, struct core_tenant *tenant)
{
	tenant->deadline_ns = tenant->period_end_ns;
	core_heap_push(&core->waiting, tenant);
}

/* Its budget is used: it waits for the next period, and not in the slot. */
static void wait_for_refill(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	core->stale = true;
	wait_on(core, tenant);
	if (core_tenant_busy(tenant))
		throttle_begins(tenant, now_ns);
}

void core_budget_queue(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	if (tenant->heap != CORE_HEAP_NONE || core->window.owner == tenant)
		return;
	if (tenant->place == CORE_CLOCKED && tenant->period_ns) {
		if (has_budget(tenant))
			core_heap_push(&core->ready, tenant);
		else
			wait_for_refill(core, tenant, now_ns);
		return;
	}
	if (tenant->place != CORE_RANKED || !tenant->share_ppm)
		return;
	tenant->deadline_ns = rank(core, tenant);
	core_heap_push(&core->ranked, tenant);
	core->press_at_ns = min(core->press_at_ns, core_presses_from_ns(tenant));
}

void core_budget_had_turn(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	u64 last_ns = RANK_ORIGIN + core->v;

	core_budget_queue(core, tenant, now_ns);
	if (tenant->heap != CORE_HEAP_RANKED || tenant->deadline_ns >= last_ns)
		return;
	core_heap_remove(&core->ranked, tenant);
	tenant->deadline_ns = last_ns;
	core_heap_push(&core->ranked, tenant);
}

void core_budget_unqueue(struct core *core, struct core_tenant *tenant)
{
	switch (tenant->heap) {
	case CORE_HEAP_READY:
		core_heap_remove(&core->ready, tenant);
		break;
	case CORE_HEAP_WAITING:
		core_heap_remove(&core->waiting, tenant);
		break;
	case CORE_HEAP_RANKED:
		core_heap_remove(&core->ranked, tenant);
		break;
	}
}

void core_budget_busy(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	if (core->window.owner == tenant)
		return;
	if (tenant->heap == CORE_HEAP_WAITING) {
		throttle_begins(tenant, now_ns);
		return;
	}
	if (tenant->period_ns)
		roll(tenant, now_ns, tenant->capped ? most_left(tenant) : (s64)tenant->budget_ns);
	core_budget_queue(core, tenant, now_ns);
}

void core_budget_idle(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	/* A ceiling's period goes on while it has no work. */
	if (!(tenant->capped && tenant->heap == CORE_HEAP_WAITING))
		core_budget_unqueue(core, tenant);
	throttle_ends(tenant, now_ns);
}

void core_budget_used(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	if (!tenant->capped || tenant->heap == CORE_HEAP_WAITING || has_budget(tenant))
		return;
	roll(tenant, now_ns, most_left(tenant));
	if (has_budget(tenant))
		return;
	core_budget_unqueue(core, tenant);
	wait_for_refill(core, tenant, now_ns);
	core_lag_leave(core, tenant, now_ns);
}

void core_budget_roll(struct core_tenant *tenant, u64 now_ns)
{
	if (tenant->period_ns)
		roll(tenant, now_ns, most_left(tenant));
}

/* A period's budget is granted when it begins: what of it is for time to come. */
static s64 granted_ahead(const struct core_tenant *tenant, u64 now_ns)
{
	if (!tenant->period_ns || now_ns >= tenant->period_end_ns)
		return 0;
	return (s64)env_mul_div(tenant->budget_ns, tenant->period_end_ns - now_ns,
				tenant->period_ns);
}

void core_budget_set(struct core *core, struct core_tenant *tenant, u64 budget_ns, u64 period_ns,
		     u64 now_ns)
{
	bool had = tenant->period_ns;

	if (tenant->budget_ns == budget_ns && tenant->period_ns == period_ns)
		return;
	/* It may be let go, or wait anew: either way it is not what the slot says. */
	core->stale |= tenant->heap == CORE_HEAP_WAITING;
	core_budget_unqueue(core, tenant);
	if (had)
		roll(tenant, now_ns, most_left(tenant));
	else
		tenant->left_ns = 0;
	tenant->left_ns -= granted_ahead(tenant, now_ns);
	if (period_ns && period_ns != tenant->period_ns)
		tenant->period_end_ns = (env_div(now_ns, period_ns) + 1) * period_ns;
	tenant->budget_ns = budget_ns;
	tenant->period_ns = period_ns;
	if (!period_ns) {
		tenant->left_ns = 0;
		throttle_ends(tenant, now_ns);
		return;
	}
	tenant->left_ns += granted_ahead(tenant, now_ns);
	roll(tenant, now_ns, most_left(tenant));
}

void core_budget_settle(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	if (tenant->heap == CORE_HEAP_WAITING)
		return;
	if (tenant->capped && !has_budget(tenant) && core->window.owner != tenant) {
		core_budget_unqueue(core, tenant);
		wait_for_refill(core, tenant, now_ns);
	} else if (tenant->place != CORE_CLOCKED) {
		throttle_ends(tenant, now_ns);
	}
}

/* It may run again. */
static void let_go(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	throttle_ends(tenant, now_ns);
	if (tenant->capped) {
		core->stale = true;
		core->let_go = true;
		if (core_tenant_busy(tenant))
			core_lag_join(core, tenant, now_ns);
	}
	if (core_tenant_busy(tenant))
		core_budget_queue(core, tenant, now_ns);
}

void core_budget_forgive(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	u8 heap = tenant->heap;

	core_budget_unqueue(core, tenant);
	if (tenant->period_ns)
		roll(tenant, now_ns, (s64)tenant->budget_ns);
	tenant->left_ns = max(tenant->left_ns, 0ll);
	if (heap == CORE_HEAP_WAITING && has_budget(tenant))
		let_go(core, tenant, now_ns);
	else if (heap == CORE_HEAP_WAITING)
		wait_for_refill(core, tenant, now_ns);
	else if (heap != CORE_HEAP_NONE)
		core_budget_queue(core, tenant, now_ns);
}

void core_budget_refill(struct core *core, u64 now_ns)
{
	struct core_tenant *tenant;
	u32 n;

	for (n = 0; n < REFILLS && core->waiting.count; n++) {
		tenant = core->waiting.at[0];
		if (tenant->period_end_ns > now_ns)
			break;
		core_heap_remove(&core->waiting, tenant);
		roll(tenant, now_ns, most_left(tenant));
		if (has_budget(tenant))
			let_go(core, tenant, now_ns);
		else
			wait_on(core, tenant);
	}
	/* A missed period makes its owner overdue, so the order among the ready may change. */
	for (n = 0; n < REFILLS && core->ready.count; n++) {
		tenant = core->ready.at[0];
		if (tenant->period_end_ns > now_ns)
			break;
		core_heap_remove(&core->ready, tenant);
		roll(tenant, now_ns, most_left(tenant));
		core_heap_push(&core->ready, tenant);
	}
}

/* The next owner on the clock. One that ran while it waited, as a tail does, may have used up its
 * budget. */
struct core_tenant *core_budget_take_ready(struct core *core, u64 now_ns)
{
	struct core_tenant *tenant;

	while (core->ready.count) {
		tenant = core->ready.at[0];
		core_heap_remove(&core->ready, tenant);
		if (has_budget(tenant))
			return tenant;
		wait_for_refill(core, tenant, now_ns);
	}
	return NULL;
}

/* The server furthest behind for its share, of those that @may; one that ran while it waited is
 * ranked again. O(log n), and O(log n) more for each that may not and is further behind. */
struct core_tenant *core_budget_take_ranked(struct core *core,
					    bool (*may)(const struct core *core,
							const struct core_tenant *tenant))
{
	struct core_tenant *server, *found = NULL, *aside = NULL;
	u64 rank_ns;

	while (core->ranked.count && !found) {
		server = core->ranked.at[0];
		core_heap_remove(&core->ranked, server);
		rank_ns = rank(core, server);
		if (rank_ns > server->deadline_ns) {
			server->deadline_ns = rank_ns;
			core_heap_push(&core->ranked, server);
		} else if (may(core, server)) {
			found = server;
		} else {
			server->aside = aside;
			aside = server;
		}
	}
	for (; aside; aside = aside->aside)
		core_heap_push(&core->ranked, aside);
	return found;
}
