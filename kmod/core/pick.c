// SPDX-License-Identifier: GPL-2.0
/*
 * pick.c - what is on and what follows: windows, their budgets, where a rotation was cut, when to
 * look again. Called by turn.c after every look. Computes no share and charges no time.
 */
#include "core/core.h"

/* A window whose owner has less than this left is over: a turn costs more. */
#define WINDOW_RESIDUE_NS 5000
/* A window under burst-share is at least so many switches long. */
#define WINDOW_LEAST_SWITCHES 10u
/* Virtual time may be less than a lag. */
#define RANK_ORIGIN (1ull << 61)
/* Owners whose period ended, refilled in one go; the others follow at the next turns. */
#define REFILLS 2u

/* ---- budgets ---- */

static void set_deadline(struct core_tenant *tenant)
{
	/* With a missed budget it is overdue: due at the end of the period it missed. */
	bool missed = tenant->left_ns > (s64)tenant->budget_ns + CORE_CRUMB_NS;

	tenant->deadline_ns = tenant->period_end_ns - (missed ? tenant->period_ns : 0);
}

/* Refill for the periods that have ended. Only a busy owner carries what it missed. */
static void roll(struct core_tenant *tenant, u64 now_ns, u64 carry_periods)
{
	u64 periods;
	s64 most_ns = (s64)(carry_periods * tenant->budget_ns);

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

static void throttle_begins(struct core_tenant *tenant, u64 now_ns)
{
	tenant->throttled = true;
	tenant->throttled_from_ns = now_ns;
}

static void throttle_ends(struct core_tenant *tenant, u64 now_ns)
{
	if (tenant->throttled)
		tenant->throttled_ns += now_ns - tenant->throttled_from_ns;
	tenant->throttled = false;
}

/* Without periods: the virtual time at which it would have what it ran. */
static void set_rank(const struct core *core, struct core_tenant *tenant)
{
	s64 lag_ns = core_lag_ns(core, tenant);
	u64 off = env_mul_div((u64)(lag_ns < 0 ? -lag_ns : lag_ns), CORE_PPM,
			      max(tenant->share_ppm, 1u));

	off = min(off, RANK_ORIGIN);
	tenant->deadline_ns = RANK_ORIGIN + core->v + (lag_ns < 0 ? off : -off);
}

/* A busy tenant waits for its window, or for its budget. */
static void queue(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	if (!tenant->period_ns) {
		set_rank(core, tenant);
		core_heap_push(&core->ready, tenant);
		return;
	}
	if (has_budget(tenant)) {
		core_heap_push(&core->ready, tenant);
		return;
	}
	tenant->deadline_ns = tenant->period_end_ns;
	core_heap_push(&core->waiting, tenant);
	if (!tenant->throttled)
		throttle_begins(tenant, now_ns);
}

static void unqueue(struct core *core, struct core_tenant *tenant)
{
	if (tenant->heap == CORE_HEAP_READY)
		core_heap_remove(&core->ready, tenant);
	else if (tenant->heap == CORE_HEAP_WAITING)
		core_heap_remove(&core->waiting, tenant);
}

void core_pick_busy(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	if (!tenant->budget_ns || core->window.owner == tenant)
		return;
	if (tenant->period_ns)
		roll(tenant, now_ns, 1);
	queue(core, tenant, now_ns);
}

void core_pick_idle(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	unqueue(core, tenant);
	throttle_ends(tenant, now_ns);
}

/* Its budget or period changed. A newcomer gets its part of the period it comes into. */
void core_pick_replanned(struct core *core, struct core_tenant *tenant, u64 former_budget_ns,
			 u64 former_period_ns, u64 now_ns)
{
	u64 begun;

	if (tenant->period_ns && tenant->budget_ns == former_budget_ns &&
	    tenant->period_ns == former_period_ns)
		return;
	unqueue(core, tenant);
	if (!tenant->period_ns) {
		tenant->left_ns = 0;
		throttle_ends(tenant, now_ns);
		/* The rotation is queued when windows are wanted. */
		if (tenant->budget_ns && core_tenant_busy(tenant) && core->window.owner != tenant &&
		    tenant != &core->rotation)
			queue(core, tenant, now_ns);
		return;
	}
	if (tenant->period_ns != former_period_ns) {
		begun = env_div(now_ns, tenant->period_ns);
		tenant->period_end_ns = (begun + 1) * tenant->period_ns;
		if (!former_period_ns)
			tenant->left_ns =
				(s64)env_mul_div(tenant->budget_ns, tenant->period_end_ns - now_ns,
						 tenant->period_ns);
	}
	if (former_period_ns && tenant->left_ns > 0)
		tenant->left_ns =
			(s64)env_mul_div((u64)tenant->left_ns, tenant->budget_ns, former_budget_ns);
	roll(tenant, now_ns, CORE_CARRY_PERIODS);
	if (core_tenant_busy(tenant) && core->window.owner != tenant)
		queue(core, tenant, now_ns);
}

static void refill(struct core *core, u64 now_ns)
{
	struct core_tenant *tenant;
	u32 n;

	for (n = 0; n < REFILLS && core->waiting.count; n++) {
		if (core->waiting.at[0]->period_end_ns > now_ns)
			break;
		tenant = core->waiting.at[0];
		core_heap_remove(&core->waiting, tenant);
		roll(tenant, now_ns, CORE_CARRY_PERIODS);
		if (has_budget(tenant))
			throttle_ends(tenant, now_ns);
		queue(core, tenant, now_ns);
	}
	/* A missed period makes its owner overdue, so the order among the ready may change. */
	for (n = 0; n < REFILLS && core->ready.count; n++) {
		if (core->ready.at[0]->period_end_ns > now_ns)
			break;
		tenant = core->ready.at[0];
		core_heap_remove(&core->ready, tenant);
		roll(tenant, now_ns, CORE_CARRY_PERIODS);
		core_heap_push(&core->ready, tenant);
	}
}

/* ---- windows ---- */

/* Where the rotation inside the window that is on was at @now_ns. */
static void where_now(const struct core *core, u64 now_ns, struct core_phase *out)
{
	struct core_tsg *tsg = core->visit;
	u64 used_ns;

	out->tsg = tsg;
	out->slice_ns = tsg ? tsg->slice_ns : 0;
	used_ns = now_ns > core->visit_from_ns ? now_ns - core->visit_from_ns : 0;
	/* Going idle drops the rest of the slice. */
	if (core->seen == CORE_SEEN_IDLE)
		used_ns = out->slice_ns;
	out->used_ns = min(used_ns, out->slice_ns);
}

static bool window_used_up(const struct core *core)
{
	return core->window.spent_ns + WINDOW_RESIDUE_NS >= core->window.budget_ns;
}

static void close_window(struct core *core, u64 now_ns)
{
	struct core_tenant *owner = core->window.owner;

	if (!owner)
		return;
	if (core->visit && core_in_window(core, core->visit->tenant))
		where_now(core, now_ns, &owner->phase);
	if (owner->windowed)
		core_fit_window(core, !window_used_up(core), now_ns);
	if (core->window.spent_ns > core->window.budget_ns + (s64)core->params.takeoff_ns)
		owner->overruns++;
	core->window.owner = NULL;
	if (!owner->budget_ns)
		return;
	if (owner->period_ns)
		roll(owner, now_ns, core_tenant_busy(owner) ? CORE_CARRY_PERIODS : 1);
	if (core_tenant_busy(owner))
		queue(core, owner, now_ns);
}

/*
 * Its part of a cycle, more or less by what it is behind or ahead. A server that gets its share is
 * behind by half of what the others run in a cycle when its window opens.
 */
static s64 server_budget(const struct core *core, const struct core_tenant *server)
{
	s64 least_ns = (s64)(WINDOW_LEAST_SWITCHES * core->params.switch_ns);
	s64 part_ns = (s64)env_mul_div(core->cycle_ns, server->share_ppm, CORE_PPM);
	s64 others_ns = (s64)env_mul_div((u64)part_ns, CORE_PPM - min(server->share_ppm, CORE_PPM),
					 CORE_PPM);
	s64 budget_ns = part_ns + core_lag_ns(core, server) - (others_ns >> 1);

	return max(clamp(budget_ns, part_ns >> 1, 2 * part_ns), least_ns);
}

static void open_window(struct core *core, enum core_window_kind kind, struct core_tenant *owner,
			u64 now_ns)
{
	struct core_window *window = &core->window;

	window->kind = kind;
	window->owner = owner;
	window->spent_ns = 0;
	window->budget_ns = 0;
	window->from_ns = now_ns;
	window->gap = false;
	if (!owner)
		return;
	if (owner->period_ns)
		window->budget_ns = min(owner->left_ns, (s64)(2 * owner->budget_ns));
	else
		window->budget_ns = server_budget(core, owner);
	owner->windows++;
	core->trimmed_at_ns = now_ns;
	core->interrupted = true;
}

static bool window_over(const struct core *core)
{
	const struct core_tenant *owner = core->window.owner;

	return !owner->budget_ns || !core_tenant_busy(owner) || window_used_up(core);
}

/* The next owner. One that ran while it waited, as a tail does, may have used up its budget. */
static struct core_tenant *take_ready(struct core *core, u64 now_ns)
{
	struct core_tenant *tenant;

	while (core->ready.count) {
		tenant = core->ready.at[0];
		core_heap_remove(&core->ready, tenant);
		if (has_budget(tenant))
			return tenant;
		queue(core, tenant, now_ns);
	}
	return NULL;
}

static void pick_exclusive(struct core *core, u64 now_ns)
{
	struct core_tenant *former = core->window.owner, *next;
	enum core_window_kind kind = core->window.kind;

	refill(core, now_ns);
	if (kind == CORE_WINDOW_EXCLUSIVE && !window_over(core))
		return;
	/* Whoever waits beside a quiet window has no budget: it goes on. */
	if (kind == CORE_WINDOW_QUIET && !core->ready.count)
		return;
	close_window(core, now_ns);
	next = take_ready(core, now_ns);
	if (!next) {
		refill(core, now_ns);
		next = take_ready(core, now_ns);
	}
	if (!next) {
		open_window(core, CORE_WINDOW_QUIET, NULL, now_ns);
		core->stale = true;
		return;
	}
	open_window(core, CORE_WINDOW_EXCLUSIVE, next, now_ns);
	if (kind != CORE_WINDOW_EXCLUSIVE || former != next)
		core->stale = true;
}

static void pick_endless(struct core *core, enum core_window_kind kind, u64 now_ns)
{
	if (core->window.kind == kind && !core->window.owner)
		return;
	close_window(core, now_ns);
	unqueue(core, &core->rotation);
	open_window(core, kind, NULL, now_ns);
	core->stale = true;
}

/* The server furthest behind for its share. One that ran while it waited is ranked again. */
static struct core_tenant *take_server(struct core *core)
{
	struct core_tenant *server;

	while (core->ready.count) {
		server = core->ready.at[0];
		core_heap_remove(&core->ready, server);
		set_rank(core, server);
		if (!core->ready.count || core_heap_before(server, core->ready.at[0]))
			return server;
		core_heap_push(&core->ready, server);
	}
	return NULL;
}

/* The rotation alone, or windows of those who do not fit it and of the rotation. */
static void pick_sharing(struct core *core, u64 now_ns)
{
	struct core_tenant *former = core->window.owner, *rotation = &core->rotation, *next;

	if (core->busy_tenants == rotation->work_count) {
		pick_endless(core, CORE_WINDOW_ROTATION, now_ns);
		return;
	}
	if (former && !window_over(core))
		return;
	close_window(core, now_ns);
	if (!core_tenant_busy(rotation))
		unqueue(core, rotation);
	else if (rotation->heap == CORE_HEAP_NONE)
		queue(core, rotation, now_ns);
	next = take_server(core);
	open_window(core, next && next != rotation ? CORE_WINDOW_EXCLUSIVE : CORE_WINDOW_ROTATION,
		    next, now_ns);
	core->stale |= next != former;
}

bool core_pick(struct core *core, u64 now_ns)
{
	if (core_ledger_trim(core, now_ns))
		core->dirty = true;
	if (core_plan_due(core, now_ns))
		core_plan_make(core, now_ns);
	switch (core->policy) {
	case CORE_FIXED_SHARE:
	case CORE_EQUAL_SHARE:
		pick_exclusive(core, now_ns);
		break;
	case CORE_BURST_SHARE:
		pick_sharing(core, now_ns);
		break;
	case CORE_BEST_EFFORT:
		pick_endless(core, CORE_WINDOW_DRIVER, now_ns);
		break;
	}
	return core->stale;
}

bool core_admits(const struct core *core, const struct core_tsg *tsg)
{
	const struct core_tenant *tenant = tsg->tenant;

	if (!tsg->listed)
		return false;
	if (!tenant)
		return true;
	switch (core->window.kind) {
	case CORE_WINDOW_DRIVER:
		return true;
	case CORE_WINDOW_ROTATION:
		return !tenant->held && (!core->window.owner || !tenant->windowed);
	case CORE_WINDOW_EXCLUSIVE:
		return tenant == core->window.owner;
	case CORE_WINDOW_QUIET:
		break;
	}
	return tenant->budget_ns && !core_tenant_busy(tenant) &&
	       (has_budget(tenant) || core->window.from_ns >= tenant->period_end_ns);
}

void core_cut(const struct core *core, u64 now_ns, struct core_phase *out)
{
	struct core_tenant *owner = core->window.owner;

	if (owner && !(core->visit && core_in_window(core, core->visit->tenant)))
		*out = owner->phase;
	else
		where_now(core, now_ns, out);
}

void core_taken(struct core *core, u64 now_ns, struct core_tsg *first, u64 used_ns)
{
	core->stale = false;
	if (!first)
		return;
	/* A switch comes first, or was half over on average when it was seen. */
	if (core->visit != first)
		now_ns += core->params.switch_ns >> (core->seen == CORE_SEEN_SWITCH);
	core->visit = first;
	core->visit_from_ns = now_ns - used_ns;
	core->visit_met = false;
}

/* ---- when to look again ---- */

static u64 random_below(struct core *core, u64 limit)
{
	/* xorshift64*: looks only have to be unlike the tenants' own periods. */
	core->rng ^= core->rng >> 12;
	core->rng ^= core->rng << 25;
	core->rng ^= core->rng >> 27;
	return ((core->rng * 0x2545f4914f6cdd1dull) >> 32) * limit >> 32;
}

static u64 next_look(struct core *core, u64 now_ns)
{
	/* In a window the gaps of its owner are found by sampling, also when it is alone. */
	bool fine = core->awake_tenants >= 2 || core->tail ||
		    core->window.kind == CORE_WINDOW_EXCLUSIVE;
	u64 cell_ns = fine ? core->params.sample_ns : core->params.idle_look_ns;

	if (now_ns < core->look_at_ns && core->look_at_ns <= now_ns + 2 * cell_ns)
		return core->look_at_ns;
	core->look_cell_ns += cell_ns;
	/* Looks were missed, or the grid became finer. */
	if (core->look_cell_ns + cell_ns <= now_ns || core->look_cell_ns > now_ns + cell_ns)
		core->look_cell_ns = now_ns;
	core->look_at_ns = core->look_cell_ns + random_below(core, cell_ns);
	if (core->look_at_ns <= now_ns)
		core->look_at_ns = now_ns + 1;
	return core->look_at_ns;
}

/* When the owner will have used its budget, if it runs on. */
static u64 window_end(const struct core *core, u64 now_ns)
{
	const struct core_window *window = &core->window;
	bool runs = core->seen_tenant && core_in_window(core, core->seen_tenant);
	u64 from_ns = runs ? core->looked_ns : now_ns;

	if (window_over(core))
		return now_ns;
	return from_ns + (u64)(window->budget_ns - window->spent_ns);
}

/* An owner without work holds its window for 2 * s + p. */
static bool owner_holds(const struct core *core)
{
	const struct core_tsg *tsg;

	for (tsg = core->window.owner->tsgs; tsg; tsg = tsg->next)
		if (tsg->loud)
			return false;
	return true;
}

bool core_samples(const struct core *core, u64 now_ns)
{
	return core->window.kind != CORE_WINDOW_EXCLUSIVE || now_ns >= core->look_at_ns ||
	       core->seen != CORE_SEEN_IDLE || window_end(core, now_ns) <= now_ns;
}

u64 core_next_ns(struct core *core, u64 now_ns)
{
	u64 next_ns = next_look(core, now_ns);

	if (core->dirty)
		next_ns = min(next_ns,
			      core->planned_at_ns + max(CORE_REPLAN_NS, core->cycle_ns >> 2));
	if (core->window.owner)
		next_ns = min(next_ns, window_end(core, now_ns));
	if (core->window.kind == CORE_WINDOW_EXCLUSIVE && owner_holds(core))
		next_ns =
			min(next_ns, now_ns + 2 * core->params.switch_ns + core->params.takeoff_ns);
	if (core->window.kind == CORE_WINDOW_QUIET && core->waiting.count)
		next_ns = min(next_ns, core->waiting.at[0]->period_end_ns);
	return max(next_ns, now_ns + 1);
}

/* ---- objects ---- */

void core_pick_forget(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	if (core->window.owner == tenant) {
		close_window(core, now_ns);
		open_window(core, CORE_WINDOW_QUIET, NULL, now_ns);
		core->stale = true;
	}
	unqueue(core, tenant);
}
