// SPDX-License-Identifier: GPL-2.0
/*
 * visit.c - who was on the engine, from when to when, and why no longer: told to whoever listens
 * (the scheduler's log), and who is on it now. Called by core_look() before anything is charged;
 * changes no decision.
 */
#include "core/core_inside.h"

static enum core_visit_end end_of(const struct core *core, enum core_seen seen,
				  const struct core_tenant *tenant)
{
	const struct core_window *window = &core->window;

	if (core->tail || core->draining)
		return CORE_END_TAIL;
	if (tenant && tenant->throttled)
		return CORE_END_BUDGET;
	if (window->owner && tenant && !core_owns_window(core, tenant))
		return CORE_END_WINDOW;
	return seen == CORE_SEEN_IDLE ? CORE_END_NO_WORK : CORE_END_SLICE;
}

static const struct core_tenant *due_of(const struct core *core)
{
	/* The rotation is no tenant. */
	return core->window.owner == &core->rotation ? NULL : core->window.owner;
}

void core_visit_now(const struct core *core, struct core_visit *visit)
{
	*visit = (struct core_visit){
		.seen = core->seen,
		.tenant = core->seen_tenant,
		.from_ns = core->seen_from_ns,
		.to_ns = core->looked_ns,
		.kind = core->window.kind,
		.due = due_of(core),
	};
}

void core_visit_look(struct core *core, u64 now_ns, enum core_seen seen,
		     const struct core_tenant *tenant)
{
	u64 at_ns = now_ns;
	struct core_visit visit;

	if (!core->on_visit || (seen == core->seen && tenant == core->seen_tenant))
		return;
	if (now_ns > core->looked_ns)
		at_ns = core->looked_ns + ((now_ns - core->looked_ns) >> 1);
	core_visit_now(core, &visit);
	visit.to_ns = at_ns;
	visit.end = end_of(core, seen, core->seen_tenant);
	core->seen_from_ns = at_ns;
	core->on_visit(core->listener, &visit);
}
