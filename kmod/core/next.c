// SPDX-License-Identifier: GPL-2.0
/*
 * next.c - when to look again: the ledger's samples, ends of windows and budgets, refills, plans.
 * Asked by turn.c at the end of a turn. Changes nothing but the grid of samples.
 */
#include "core/core_inside.h"

static u64 random_below(struct core *core, u64 limit)
{
	/* xorshift64*: looks only have to be unlike the tenants' own periods. */
	core->rng ^= core->rng >> 12;
	core->rng ^= core->rng << 25;
	core->rng ^= core->rng >> 27;
	return ((core->rng * 0x2545f4914f6cdd1dull) >> 32) * limit >> 32;
}

/* It has windows of its own for its gaps, or has been found without work in them. */
static bool has_gaps(const struct core_tenant *owner)
{
	return owner->misfit || (owner->place == CORE_CLOCKED && core_fit_goes_idle(owner));
}

/* Does its owner, who has a budget, run in short pieces? Beside online each lasts a slice. */
static bool runs_in_pieces(const struct core *core)
{
	const struct core_tenant *owner = core->window.owner;

	if (core->window.kind == CORE_WINDOW_ONLINE)
		return owner && owner->place == CORE_CLOCKED && core->online_busy;
	return core->window.kind == CORE_WINDOW_EXCLUSIVE && has_gaps(owner);
}

/* Where gaps are many, work and they change each other faster than looks usually are. */
static u64 window_look(const struct core *core)
{
	u64 look_ns = core->params.window_look_ns;

	return core_fit_gaps_are_many(core->window.owner) ? env_div(look_ns, 3) : look_ns;
}

static u64 next_look(struct core *core, u64 now_ns)
{
	/* The gaps of whoever has a budget are found by sampling, also when it is alone. */
	bool fine = core->awake_tenants >= 2 || core->tail ||
		    core->window.kind == CORE_WINDOW_EXCLUSIVE ||
		    (core->awake_tenants && core->limited);
	u64 cell_ns = fine ? core->params.sample_ns : core->params.idle_look_ns;

	/* What is seen of an owner's gaps decides how long its window is. */
	if (runs_in_pieces(core))
		cell_ns = min(cell_ns, window_look(core));
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
	bool runs = core->seen_tenant && core_owns_window(core, core->seen_tenant);
	u64 from_ns = runs ? core->looked_ns : now_ns;

	if (!core_tenant_busy(window->owner) || core_window_used_up(core))
		return now_ns;
	return from_ns + (u64)(window->budget_ns - window->spent_ns);
}

static u64 allowed_until(const struct core *core, const struct core_tenant *tenant)
{
	if (!tenant->capped || tenant->heap == CORE_HEAP_WAITING || !core_tenant_busy(tenant))
		return U64_MAX;
	return core->looked_ns + (u64)max(tenant->left_ns, 0ll);
}

/* When whoever runs will have used what its ceiling allows. Whoever has a trace does not look at
 * whether anybody that may run does by now. */
static u64 ceiling_end(const struct core *core)
{
	u64 until_ns = U64_MAX;
	u32 i;

	if (core->seen_tenant)
		return allowed_until(core, core->seen_tenant);
	if (!core->limited || core->params.window_look_ns != U64_MAX)
		return U64_MAX;
	for (i = 0; i < core->tenant_count; i++)
		until_ns = min(until_ns, allowed_until(core, core->tenants[i]));
	return until_ns;
}

/* When an owner on the clock has to begin, or somebody has waited for as long as it may. */
static u64 pressed_from(const struct core *core)
{
	const struct core_tenant *owner = core->window.owner;
	u64 from_ns = U64_MAX;

	if (owner && owner->place == CORE_CLOCKED)
		return core->window.kind == CORE_WINDOW_ONLINE ? core_pressed_from_ns(core, owner) :
								 U64_MAX;
	if (core->ready.count)
		from_ns = core_ready_from_ns(core);
	/* Without an owner nobody waits. */
	return !owner || core->window.pressed ? from_ns : min(from_ns, core->press_at_ns);
}

/* An owner without work holds its window for 2 * s + p, and is looked for then. */
static bool owner_holds(const struct core *core)
{
	const struct core_tsg *tsg;

	for (tsg = core->window.owner->tsgs; tsg; tsg = tsg->next)
		if (tsg->loud)
			return false;
	return true;
}

/* Near its end a window is looked at as often as something may end it: what is found there decides
 * when that is, so the half of a long span after it would count for the gap. */
static bool near_end(const struct core *core)
{
	s64 left_ns = core->window.budget_ns - core->window.spent_ns;

	return core->window.owner && left_ns < (s64)core->params.sample_ns;
}

bool core_samples(const struct core *core, u64 now_ns)
{
	return core->window.kind != CORE_WINDOW_EXCLUSIVE || now_ns >= core->look_at_ns ||
	       core->seen != CORE_SEEN_IDLE || near_end(core) || core->followed;
}

/* When an owner by turns has held its window for too long. */
static u64 gaps_end(const struct core *core, u64 now_ns)
{
	const struct core_tenant *owner = core->window.owner;

	if (!owner || owner->place != CORE_RANKED)
		return U64_MAX;
	return max(core_gaps_end_ns(core), now_ns);
}

/*
 * From a window's end to whoever is next: a tail is found to a fifth of its length, the switch
 * after it to half of p. It begins when a look was just made and is much the same each time, so
 * looks at their usual distance would be wrong by much the same each time.
 */
static u64 edge_look(const struct core *core)
{
	if (!core->followed)
		return U64_MAX;
	return core->looked_ns + max(core->drain_ns >> 2, core->params.takeoff_ns >> 1);
}

/*
 * Does the gap of a window's owner go on? One that always launches as long a kernel would be found
 * between two of them again at the same distance, so that is drawn, and five looks find none.
 */
static u64 gap_look(struct core *core, u64 now_ns)
{
	u64 sixth_ns = env_div(core_hold_ns(core), 6);

	return now_ns + sixth_ns + random_below(core, sixth_ns);
}

/* When something is due that is no sample. */
static u64 next_event(struct core *core, u64 now_ns)
{
	u64 next_ns = min(min(ceiling_end(core), pressed_from(core)), edge_look(core));

	/* Somebody got work while the last window was being carried out. */
	if (!core->window.owner && core->policy != CORE_BEST_EFFORT && !core_rests(core))
		return now_ns;
	if (core->dirty)
		next_ns = min(next_ns, core_plan_from_ns(core));
	if (core->window.owner)
		next_ns = min(next_ns, window_end(core, now_ns));
	if (core->window.kind == CORE_WINDOW_EXCLUSIVE)
		next_ns = min(next_ns, gaps_end(core, now_ns));
	if (core->waiting.count)
		next_ns = min(next_ns, core->waiting.at[0]->period_end_ns);
	if (core->window.kind == CORE_WINDOW_EXCLUSIVE && owner_holds(core))
		next_ns = min(next_ns, gap_look(core, now_ns));
	if (core->window.kind == CORE_WINDOW_ONLINE && core->window.owner &&
	    core_leave_ns(core) > core->looked_ns)
		next_ns = min(next_ns, core_leave_ns(core));
	return next_ns;
}

u64 core_next_ns(struct core *core, u64 now_ns)
{
	u64 next_ns = next_look(core, now_ns);

	return max(min(next_ns, next_event(core, now_ns)), now_ns + 1);
}
