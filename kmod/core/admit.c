// SPDX-License-Identifier: GPL-2.0
/*
 * admit.c - whom the window that is on admits, with which slices, and where its rotation was cut
 * and goes on. Asked by turn.c for each image.
 */
#include "core/core_inside.h"

/* Nobody waits beside it: an idle tenant may begin at once. */
static bool may_begin(const struct core *core, const struct core_tenant *tenant)
{
	return !core->window.owner && !core_tenant_busy(tenant) && !tenant->held &&
	       (tenant->place != CORE_CLOCKED || tenant->period_ns) &&
	       core_budget_allows(tenant, core->window.from_ns);
}

bool core_admits(const struct core *core, const struct core_tsg *tsg)
{
	const struct core_tenant *tenant = tsg->tenant, *owner = core->window.owner;

	if (!tsg->listed)
		return false;
	if (!tenant || core->window.kind == CORE_WINDOW_DRIVER || tenant == owner)
		return true;
	if (tenant->heap == CORE_HEAP_WAITING)
		return false;
	switch (core->window.kind) {
	case CORE_WINDOW_ROTATION:
		if (tenant->place == CORE_ROTATES)
			return !tenant->held;
		return may_begin(core, tenant);
	case CORE_WINDOW_ONLINE:
		return tenant->place == CORE_BESIDE || may_begin(core, tenant);
	case CORE_WINDOW_QUIET:
		return may_begin(core, tenant);
	default:
		return false;
	}
}

u64 core_slice_ns(const struct core *core, const struct core_tsg *tsg)
{
	bool other = core->window.kind == CORE_WINDOW_ONLINE && tsg->tenant->place != CORE_BESIDE;

	return other ? core->other_slice_ns : tsg->planned_ns;
}

/* In whose order does a TSG run in the window that is on? The rotation may have guests. */
static struct core_tenant *server_of(struct core *core, const struct core_tsg *tsg)
{
	return core->window.kind == CORE_WINDOW_ROTATION ? &core->rotation : tsg->tenant;
}

/* Is the engine idle because it has just loaded the image's first and not begun its work? */
static bool is_put_on(const struct core *core, u64 now_ns)
{
	return !core->visit_met && now_ns < core->visit_from_ns + core->params.switch_ns;
}

/* Where the rotation inside the window that is on was at @now_ns. */
static void where_now(const struct core *core, u64 now_ns, struct core_phase *out)
{
	struct core_tsg *tsg = core->visit;
	u64 used_ns;

	out->tsg = tsg;
	out->slice_ns = tsg ? tsg->slice_ns : 0;
	used_ns = now_ns > core->visit_from_ns ? now_ns - core->visit_from_ns : 0;
	/* Going idle drops the rest of the slice. */
	if (core->seen == CORE_SEEN_IDLE && !is_put_on(core, now_ns))
		used_ns = out->slice_ns;
	out->used_ns = min(used_ns, out->slice_ns);
}

/* Is who runs there by the image of the window that is on? A tail of somebody else is not. */
static bool follows_image(const struct core *core)
{
	return !core->window.fresh && core->visit && core->visit->slice_ns;
}

void core_cut_keep(struct core *core, u64 now_ns)
{
	if (follows_image(core))
		where_now(core, now_ns, &server_of(core, core->visit)->phase);
}

/* The online TSG that is to begin: the one that runs, or one with work, or any; or NULL. */
static struct core_tsg *online_first(const struct core *core)
{
	struct core_tsg *tsg = core->seen_tsg, *any = NULL;
	u32 i;

	if (core->seen == CORE_SEEN_TSG && tsg && tsg->tenant->place == CORE_BESIDE)
		return tsg;
	for (i = 0; i < core->tenant_count; i++) {
		if (core->tenants[i]->place != CORE_BESIDE)
			continue;
		for (tsg = core->tenants[i]->tsgs; tsg; tsg = tsg->next) {
			if (tsg->listed && tsg->has_work)
				return tsg;
			if (tsg->listed)
				any = tsg;
		}
	}
	return any;
}

void core_cut(const struct core *core, u64 now_ns, struct core_phase *out)
{
	const struct core_tenant *server = core->window.owner;
	bool runs = core->seen == CORE_SEEN_TSG && core->seen_tsg == core->visit;
	struct core_tsg *first = NULL;

	/* While a tail is still on an online tenant may wake: it is not to wait for another as
	 * well. One that sleeps is skipped at no cost. */
	if (core->window.kind == CORE_WINDOW_ONLINE)
		first = online_first(core);
	if (first && !(runs && first == core->visit))
		*out = (struct core_phase){ .tsg = first, .slice_ns = first->planned_ns };
	else if (first || follows_image(core))
		where_now(core, now_ns, out);
	else
		*out = server ? server->phase : core->rotation.phase;
}

void core_cut_other(const struct core *core, u64 now_ns, struct core_phase *out)
{
	const struct core_tsg *visit = core->visit;

	if (visit && visit->tenant && visit->tenant->place != CORE_BESIDE &&
	    core_admits(core, visit))
		where_now(core, now_ns, out);
	else
		*out = core->window.owner ? core->window.owner->phase : core->rotation.phase;
}

void core_taken(struct core *core, u64 now_ns, struct core_tsg *first, u64 used_ns)
{
	core->stale = false;
	core->window.fresh = false;
	if (!first)
		return;
	/* Should somebody's tail be on for longer than this image, the next begins like it. */
	if (core->window.kind != CORE_WINDOW_ONLINE)
		core_server(core)->phase = (struct core_phase){ first, used_ns, first->slice_ns };
	/* A switch comes first, or was half over on average when it was seen. */
	if (core->visit != first)
		now_ns += core->params.switch_ns >> (core->seen == CORE_SEEN_SWITCH);
	core->visit = first;
	core->visit_from_ns = now_ns - used_ns;
	core->visit_met = false;
}
