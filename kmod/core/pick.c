// SPDX-License-Identifier: GPL-2.0
/*
 * pick.c - what is on and what follows: windows and whose they are. Called by turn.c after every
 * look. Computes no share, charges no time, keeps no budget.
 */
#include "core/core_inside.h"

/* A window whose owner has less than this left is over: a turn costs more. */
#define WINDOW_RESIDUE_NS 5000
/* A window of a server is at least so many switches long. */
#define WINDOW_LEAST_SWITCHES 5u

/* ---- beside online ---- */

u64 core_leave_ns(const struct core *core)
{
	return core->online_busy ? core->online_from_ns + CORE_LEAVE_NS : U64_MAX;
}

/* Online works without a break: the others have what protected windows give them, no more. */
static bool others_left(const struct core *core)
{
	return !core->protecting && core->looked_ns >= core_leave_ns(core);
}

/* May it have a window now? */
static bool may_own(const struct core *core, const struct core_tenant *tenant)
{
	if (!core->online_count)
		return true;
	if (core->protecting)
		return tenant->floor_ppm != 0;
	return !others_left(core);
}

/* The others together are behind what they would get if all online were busy, or no longer. */
static void update_protecting(struct core *core)
{
	s64 limit_ns = (s64)(core->params.smooth_ns >> 1);

	if (!core->online_count || !core->floor_busy_ppm) {
		core->protecting = false;
		/* Nobody is there who is owed anything. */
		core->floor_lag_ns = min(core->floor_lag_ns, 0ll);
		return;
	}
	if (core->floor_lag_ns >= limit_ns)
		core->protecting = true;
	else if (core->floor_lag_ns <= -limit_ns)
		core->protecting = false;
}

/* What the others may run without online until they are as far ahead as they were behind. */
static s64 protected_budget(const struct core *core)
{
	s64 most_ns = core->floor_lag_ns + (s64)(core->params.smooth_ns >> 1);
	u32 rest_ppm = max(CORE_PPM - min(core->floor_busy_ppm, CORE_PPM), 1u);

	return (s64)env_mul_div((u64)max(most_ns, 0ll), CORE_PPM, rest_ppm);
}

u64 core_pressed_from_ns(const struct core *core, const struct core_tenant *owner)
{
	u64 needs_ns = core_window_cost_ns(core) + (u64)max(owner->left_ns, 0ll);

	return owner->deadline_ns > needs_ns ? owner->deadline_ns - needs_ns : 0;
}

u64 core_ready_from_ns(const struct core *core)
{
	const struct core_tenant *first = core->ready.at[0];
	u64 from_ns = core_pressed_from_ns(core, first);
	u64 others_ns = core->ready.budgets_ns - first->budget_ns +
			(core->ready.count - 1) * core_window_cost_ns(core);

	return from_ns > others_ns ? from_ns - others_ns : 0;
}

static bool is_pressed(const struct core *core, const struct core_tenant *owner, u64 now_ns)
{
	return now_ns >= core_pressed_from_ns(core, owner);
}

/* ---- promised waits beside windows by lag ---- */

/* Who has waited for as long as it may, longest first; O(1) until somebody has, then O(promises).
 */
static struct core_tenant *most_pressed(struct core *core, u64 now_ns)
{
	struct core_tenant *tenant, *first = NULL;
	u64 from_ns, first_ns = U64_MAX;

	if (now_ns < core->press_at_ns)
		return NULL;
	for (tenant = core->promised; tenant; tenant = tenant->next_promised) {
		from_ns = core_presses_from_ns(tenant);
		if (tenant->heap != CORE_HEAP_RANKED || from_ns >= first_ns)
			continue;
		first_ns = from_ns;
		first = tenant;
	}
	core->press_at_ns = first_ns;
	return now_ns >= first_ns ? first : NULL;
}

/* So much that all of them are in time, one after the other, each with as long gaps. */
static s64 pressed_budget(const struct core *core, const struct core_tenant *owner)
{
	u64 room_ns = env_mul_div(core->press_room_ns, owner->share_ppm, 2 * CORE_PPM);

	return (s64)max(room_ns, core->params.switch_ns >> 1);
}

/* ---- windows ---- */

/* Held gaps are the owner's own time to lose once another owner can wait no longer. */
static bool outstays(const struct core *core, u64 now_ns)
{
	return core->ready.count && is_pressed(core, core->ready.at[0], now_ns) &&
	       now_ns >= core->window.from_ns + (u64)core->window.budget_ns +
				 core_window_cost_ns(core);
}

/* And are lost where only such windows are on, or if that one goes on missing its budgets, not only
 * after a tail. */
static bool makes_others_miss(const struct core *core, u64 now_ns)
{
	const struct core_tenant *other;

	if (!core_tenant_busy(core->window.owner) || !outstays(core, now_ns))
		return false;
	other = core->ready.at[0];
	return core_on_clock(core) ||
	       other->left_ns > (s64)(CORE_CARRY_PERIODS * other->budget_ns / 2);
}

bool core_window_used_up(const struct core *core)
{
	return core->window.spent_ns + WINDOW_RESIDUE_NS >= core->window.budget_ns;
}

/* Its owner has held it for too long. Beside online that is who has work, and leaves the engine
 * idle: its TSGs that have some found no room in the image. */
static bool dawdles(const struct core *core, u64 now_ns)
{
	if (core->window.kind != CORE_WINDOW_EXCLUSIVE &&
	    (core->window.kind != CORE_WINDOW_ONLINE || core->seen != CORE_SEEN_IDLE))
		return false;
	return core->window.owner && now_ns >= core_gaps_end_ns(core);
}

static void close_window(struct core *core, u64 now_ns)
{
	struct core_tenant *owner = core->window.owner;
	s64 unspent_ns;

	core_cut_keep(core, now_ns);
	if (!owner)
		return;
	if (owner->misfit && owner->place == CORE_RANKED)
		core_fit_window(core, now_ns);
	if (core->window.spent_ns > core->window.budget_ns + (s64)core->params.takeoff_ns)
		owner->overruns++;
	unspent_ns = max(core->window.budget_ns - core->window.spent_ns, 0ll);
	if (owner->place == CORE_CLOCKED && makes_others_miss(core, now_ns))
		owner->left_ns -= unspent_ns;
	if (owner->place == CORE_RANKED && owner != &core->rotation && dawdles(core, now_ns))
		owner->lag_ns -= min(unspent_ns, core->window.idle_ns);
	core->window.owner = NULL;
	core_budget_roll(owner, now_ns);
	if (core_tenant_busy(owner))
		core_budget_had_turn(core, owner, now_ns);
}

/* So long that switching costs little, but for small shares short enough to come in time. */
static s64 window_least(const struct core *core, const struct core_tenant *server)
{
	u64 soft_ns = env_mul_div(core->params.soft_wake_ns, server->share_ppm, CORE_PPM);

	return (s64)clamp(soft_ns, 2 * core->params.switch_ns,
			  WINDOW_LEAST_SWITCHES * core->params.switch_ns);
}

/*
 * Its part of a cycle, more or less by what it is behind or ahead. A server that gets its share is
 * behind by half of what the others run in a cycle when its window opens.
 */
static s64 server_budget(const struct core *core, const struct core_tenant *server)
{
	s64 least_ns = window_least(core, server);
	s64 part_ns = (s64)env_mul_div(core->cycle_ns, server->share_ppm, CORE_PPM);
	s64 others_ns = (s64)env_mul_div((u64)part_ns, CORE_PPM - min(server->share_ppm, CORE_PPM),
					 CORE_PPM);
	s64 budget_ns = part_ns + core_lag_ns(core, server) - (others_ns >> 1);
	s64 low_ns = server == &core->rotation && server->work_count > 1 ? part_ns : part_ns >> 1;

	return max(clamp(budget_ns, low_ns, 2 * part_ns), least_ns);
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
	window->idle_ns = 0;
	window->gap = false;
	window->pressed = false;
	window->looks = 0;
	if (!owner)
		return;
	if (owner->place == CORE_CLOCKED)
		window->budget_ns = min(owner->left_ns, (s64)(2 * owner->budget_ns));
	else
		window->budget_ns = server_budget(core, owner);
	if (core->protecting && owner->place == CORE_RANKED)
		window->budget_ns = min(window->budget_ns, protected_budget(core));
	window->pressed = now_ns >= core_presses_from_ns(owner);
	if (window->pressed)
		window->budget_ns = min(window->budget_ns, pressed_budget(core, owner));
	owner->windows++;
}

/* Is what the window is for over? */
static bool window_over(const struct core *core, u64 now_ns)
{
	const struct core_tenant *owner = core->window.owner;
	bool online = core->window.kind == CORE_WINDOW_ONLINE;

	if (!core_tenant_busy(owner) || core_window_used_up(core) || owner->heap != CORE_HEAP_NONE)
		return true;
	if (owner->place == CORE_CLOCKED)
		return !owner->period_ns || outstays(core, now_ns) ||
		       (online && (core->protecting || is_pressed(core, owner, now_ns)));
	if (!owner->share_ppm || online != (core->online_count && !core->protecting))
		return true;
	return !may_own(core, owner) || dawdles(core, now_ns);
}

/* Does an owner on the clock end the window that is on, or one who has waited for as long as it
 * may? At the ends of windows they are first. */
static bool interrupts(struct core *core, u64 now_ns)
{
	const struct core_tenant *owner = core->window.owner;

	if (owner && owner->place == CORE_CLOCKED)
		return false;
	if (core->ready.count && (!owner || now_ns >= core_ready_from_ns(core)))
		return true;
	return !core->window.pressed && most_pressed(core, now_ns);
}

/* Members of the rotation and servers, if any of the latter is busy. */
static bool servers_wait(const struct core *core)
{
	return core->sharing_count > core->rotation.work_count;
}

/* The window without an owner: nobody waits beside it who may run. */
static enum core_window_kind endless(const struct core *core)
{
	if (core->online_count)
		return CORE_WINDOW_ONLINE;
	return core_on_clock(core) ? CORE_WINDOW_QUIET : CORE_WINDOW_ROTATION;
}

static struct core_tenant *take_server(struct core *core, u64 now_ns)
{
	struct core_tenant *rotation = &core->rotation, *pressed = most_pressed(core, now_ns);

	if (pressed) {
		core_budget_unqueue(core, pressed);
		return pressed;
	}
	if (!servers_wait(core) || !core_tenant_busy(rotation))
		core_budget_unqueue(core, rotation);
	if (!servers_wait(core))
		return NULL;
	if (core_tenant_busy(rotation))
		core_budget_queue(core, rotation, now_ns);
	return core_budget_take_ranked(core, may_own);
}

/* Owners on the clock first, but one that can wait behind what the others are owed. */
static struct core_tenant *next_owner(struct core *core, u64 now_ns)
{
	struct core_tenant *clocked = core_budget_take_ready(core, now_ns), *server;

	if (clocked && (!core->protecting || is_pressed(core, clocked, now_ns)))
		return clocked;
	server = take_server(core, now_ns);
	if (!server)
		return clocked;
	if (clocked)
		core_budget_queue(core, clocked, now_ns);
	return server;
}

static enum core_window_kind kind_of(const struct core *core, const struct core_tenant *owner,
				     u64 now_ns)
{
	if (!owner)
		return endless(core);
	if (owner == &core->rotation)
		return CORE_WINDOW_ROTATION;
	if (!core->online_count)
		return CORE_WINDOW_EXCLUSIVE;
	if (owner->place == CORE_CLOCKED ? is_pressed(core, owner, now_ns) : core->protecting)
		return CORE_WINDOW_EXCLUSIVE;
	return CORE_WINDOW_ONLINE;
}

static void choose(struct core *core, u64 now_ns)
{
	struct core_tenant *next = next_owner(core, now_ns);

	open_window(core, kind_of(core, next, now_ns), next, now_ns);
}

bool core_rests(const struct core *core)
{
	if (core->window.owner || core->ready.count || core->window.kind != endless(core))
		return false;
	if (!core->online_count)
		return !servers_wait(core);
	return !core->ranked.count || others_left(core);
}

static void pick_window(struct core *core, u64 now_ns)
{
	struct core_window former = core->window;

	core_budget_refill(core, now_ns);
	update_protecting(core);
	if (former.owner ? !window_over(core, now_ns) && !interrupts(core, now_ns) :
			   core_rests(core))
		return;
	close_window(core, now_ns);
	choose(core, now_ns);
	core->window.fresh = former.kind != core->window.kind || former.owner != core->window.owner;
	core->stale |= core->window.fresh;
	/* Nobody is waited for: the next looks tell when the rotation goes on. A trace tells anyway. */
	core->followed |= former.owner && core_rotates_endlessly(core) &&
			  core->params.window_look_ns != U64_MAX;
}

static void pick_driver(struct core *core, u64 now_ns)
{
	if (core->window.kind == CORE_WINDOW_DRIVER)
		return;
	close_window(core, now_ns);
	open_window(core, CORE_WINDOW_DRIVER, NULL, now_ns);
	core->stale = true;
}

bool core_pick(struct core *core, u64 now_ns)
{
	core_fit_turn(core, now_ns);
	if (core_ledger_trim(core, now_ns))
		core->dirty = true;
	if (core_plan_due(core, now_ns))
		core_plan_make(core, now_ns);
	if (core->policy == CORE_BEST_EFFORT)
		pick_driver(core, now_ns);
	else
		pick_window(core, now_ns);
	return core->stale;
}

/* ---- objects ---- */

void core_pick_replanned(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	struct core_window *window = &core->window;

	/* Of a window that is on no more than of one that opens now. */
	if (window->owner == tenant && tenant->place == CORE_RANKED)
		window->budget_ns =
			min(window->budget_ns, window->spent_ns + server_budget(core, tenant));
	/* Who is ahead waits the longer the smaller its share is; others keep their place. */
	if (tenant->heap == CORE_HEAP_RANKED && core_lag_ns(core, tenant) < 0) {
		core_budget_unqueue(core, tenant);
		core_budget_queue(core, tenant, now_ns);
	}
	if (core_tenant_busy(tenant) && tenant != &core->rotation)
		core_budget_queue(core, tenant, now_ns);
}

void core_pick_forget(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	struct core_tenant **at;

	if (core->window.owner == tenant) {
		close_window(core, now_ns);
		open_window(core, CORE_WINDOW_QUIET, NULL, now_ns);
		core->stale = true;
	}
	core_budget_unqueue(core, tenant);
	for (at = &core->promised; *at; at = &(*at)->next_promised) {
		if (*at == tenant) {
			*at = tenant->next_promised;
			break;
		}
	}
}
