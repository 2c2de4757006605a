// SPDX-License-Identifier: GPL-2.0
/*
 * bound.c - the longest waits: those of a plan's numbers, and the shortest that settings can be
 * promised. plan.c plans for what was promised by it, check.c refuses by it, qgpud prints by it.
 * Pure functions of what they are given. The derivations are in theory.rst, WAITS.
 */
#include "core/core_inside.h"

/* ---- windows on the clock ---- */

u64 core_on_grid_ns(const struct core_params *params, u64 least_ns, u64 most_ns)
{
	u64 period_ns = params->period_min_ns;

	while (period_ns < least_ns && 2 * period_ns <= most_ns)
		period_ns *= 2;
	return period_ns;
}

u64 core_clock_period_ns(const struct core_params *params, u32 share_ppm)
{
	u64 least_ns = max(CORE_BUDGET_MIN_NS, 10 * params->switch_ns);

	return core_on_grid_ns(params, env_div(least_ns * CORE_PPM, share_ppm), U64_MAX / 2);
}

void core_clock_add(struct core_clock *clock, const struct core_params *params, u32 share_ppm)
{
	u64 cost_ns = params->switch_ns + params->takeoff_ns;

	clock->sum_ppm += share_ppm;
	clock->over_ppm += env_div(cost_ns * CORE_PPM, core_clock_period_ns(params, share_ppm)) + 1;
}

u64 core_clock_budget_ns(const struct core_clock *clock, const struct core_params *params,
			 u32 share_ppm)
{
	u64 have_ppm = CORE_PPM > clock->over_ppm ? CORE_PPM - clock->over_ppm : 1;
	u64 budget_ns = env_mul_div(core_clock_period_ns(params, share_ppm), share_ppm, CORE_PPM);

	return clock->sum_ppm > have_ppm ? env_mul_div(budget_ns, have_ppm, clock->sum_ppm) :
					   budget_ns;
}

u64 core_wait_clocked_ns(const struct core_params *params, u64 budget_ns, u64 period_ns,
			 u64 longest_ns)
{
	u64 rest_ns = period_ns - budget_ns;

	return 2 * rest_ns + max(longest_ns, rest_ns) + params->switch_ns + params->takeoff_ns;
}

/* ---- what takes the engine from a wait ---- */

static u64 cut_ns(const struct core_params *params)
{
	return params->switch_ns + params->takeoff_ns + (params->sample_ns >> 1);
}

void core_load_window(struct core_load *load, const struct core_params *params, u64 window_ns,
		      u64 period_ns)
{
	u64 wall_ns = window_ns + 2 * params->switch_ns + params->takeoff_ns;

	load->burst_ns += 2 * wall_ns;
	load->ppm += env_mul_div(wall_ns, CORE_PPM, period_ns) + 1;
}

/* Who has used it leaves, which takes p; all come back together, two a turn. */
void core_load_ceilings(struct core_load *load, const struct core_params *params, u32 ceilings)
{
	u64 cuts_ns = ceilings * (params->switch_ns + params->takeoff_ns);

	if (!ceilings)
		return;
	cuts_ns += params->sample_ns >> 1;
	load->burst_ns += cuts_ns;
	load->ppm += env_div(cuts_ns * CORE_PPM, params->period_min_ns) + 1;
}

u64 core_load_stretch(const struct core_load *load, u64 wait_ns)
{
	if (!load->ppm)
		return wait_ns;
	if (load->ppm >= CORE_PPM)
		return U64_MAX;
	return env_mul_div(wait_ns + load->burst_ns, CORE_PPM, CORE_PPM - load->ppm) + 1;
}

u64 core_load_spare(const struct core_load *load, u64 wait_ns)
{
	u64 spare_ns;

	if (load->ppm >= CORE_PPM)
		return 0;
	spare_ns = env_mul_div(wait_ns, CORE_PPM - load->ppm, CORE_PPM);
	return spare_ns > load->burst_ns ? spare_ns - load->burst_ns : 0;
}

/* ---- the rotation ---- */

/* A switch before each visit, and two cuts. */
static u64 overhead_ns(const struct core_params *params, u32 contexts)
{
	return contexts * params->switch_ns + 2 * cut_ns(params);
}

u64 core_wait_rotating_ns(const struct core_params *params, u32 contexts, u64 slices_ns)
{
	return slices_ns + overhead_ns(params, contexts);
}

u64 core_wait_pressed_ns(const struct core_params *params, u32 count)
{
	u64 window_ns = 2 * params->switch_ns + params->takeoff_ns;

	return 2 * params->sample_ns + count * window_ns;
}

/* What the shortest slice may be when it is written. */
static u64 shortest_ns(const struct core_params *params)
{
	return params->slice_min_ns + (params->slice_min_ns >> 6);
}

/* What one of them has of a plan at least, on average: no more is lost to switching. */
static u64 least_slice_ns(const struct core_params *params)
{
	return max(params->switch_ns, shortest_ns(params));
}

u64 core_slices_within_ns(const struct core_params *params, u32 awake, u32 asleep, u64 wait_ns)
{
	u32 contexts = awake + asleep;
	u64 over_ns = core_wait_rotating_ns(params, contexts, 2ull * asleep * params->switch_ns);

	return max(wait_ns > over_ns ? (wait_ns - over_ns) >> 1 : 0,
		   contexts * least_slice_ns(params));
}

/* ---- online ---- */

u64 core_online_bound_ns(const struct core_params *params, u32 online)
{
	return online * CORE_OTHER_SLICE_MIN_NS + (online + 1) * params->switch_ns;
}

u64 core_online_written_ns(const struct core_params *params, u32 online)
{
	u64 each_ns = max(CORE_OTHER_SLICE_MIN_NS, shortest_ns(params));

	return online * (each_ns - CORE_OTHER_SLICE_MIN_NS);
}

/* ---- settings ---- */

bool core_is_fixed(const struct core_settings *settings)
{
	return settings->ceiling_ppm < CORE_PPM && settings->guarantee_ppm == settings->ceiling_ppm;
}

bool core_may_rotate(const struct core_settings *settings)
{
	return settings->class_ != CORE_ONLINE && !core_is_fixed(settings);
}

static bool is_clocked(const struct core_settings *settings)
{
	return settings->class_ != CORE_ONLINE && core_is_fixed(settings);
}

static void add_to_group(struct core_crowd *crowd, const struct core_settings *settings)
{
	crowd->members++;
	crowd->guaranteed_ppm += settings->guarantee_ppm;
	crowd->claimed_ppm +=
		settings->class_ == CORE_OFFLINE ? settings->guarantee_ppm : settings->ceiling_ppm;
	crowd->capped += settings->ceiling_ppm < CORE_PPM;
}

static void add_window(struct core_crowd *crowd, const struct core_settings *settings)
{
	const struct core_params *params = crowd->params;
	u64 budget_ns = core_clock_budget_ns(&crowd->clock, params, settings->guarantee_ppm);

	core_load_window(&crowd->load, params, 2 * budget_ns,
			 core_clock_period_ns(params, settings->guarantee_ppm));
	if (2 * budget_ns > crowd->longest_ns) {
		crowd->second_ns = crowd->longest_ns;
		crowd->longest_ns = 2 * budget_ns;
	} else {
		crowd->second_ns = max(crowd->second_ns, 2 * budget_ns);
	}
}

void core_crowd_of(struct core_crowd *crowd, const struct core_params *params,
		   const struct core_settings *settings, u32 count)
{
	u32 i;

	memset(crowd, 0, sizeof(*crowd));
	crowd->params = params;
	crowd->settings = settings;
	crowd->count = count;
	for (i = 0; i < count; i++) {
		if (settings[i].class_ == CORE_ONLINE)
			crowd->online++;
		else if (is_clocked(&settings[i]))
			core_clock_add(&crowd->clock, params, settings[i].guarantee_ppm);
		else
			add_to_group(crowd, &settings[i]);
	}
	for (i = 0; i < count; i++)
		if (is_clocked(&settings[i]))
			add_window(crowd, &settings[i]);
}

/* May the others' claims leave it without any share? Guarantees come first, then weights. */
static bool may_have_nothing(const struct core_crowd *crowd, const struct core_settings *settings)
{
	u64 taken_ppm =
		crowd->clock.sum_ppm +
		(settings->class_ == CORE_OFFLINE ? crowd->claimed_ppm : crowd->guaranteed_ppm);

	return !settings->guarantee_ppm && taken_ppm >= CORE_PPM;
}

/* What those whom @settings waits for have of a plan, beside s for each that is awake. Where a
 * weight says anything one of those is long, and the others have the shortest slice at least. */
static u64 slices_bound(const struct core_crowd *crowd, const struct core_settings *settings,
			enum core_hindrance *by)
{
	u64 least_ns = crowd->members * least_slice_ns(crowd->params);
	u64 spare_ns = crowd->params->switch_ns +
		       min(crowd->params->switch_ns, crowd->params->slice_min_ns);
	u64 need_ns = core_weights_need_ns(crowd, settings);

	/* Of what is left slices are planned for a 128th less. */
	need_ns = env_mul_div(need_ns, 128, 127) + 1;
	if (need_ns <= least_ns + spare_ns)
		return least_ns;
	*by = CORE_HINDERED_BY_WEIGHTS;
	return need_ns - spare_ns;
}

/* All asleep have 2 * s each, beside what two plans give at least. */
static struct core_wake_bound rotating_bound(const struct core_crowd *crowd,
					     const struct core_settings *settings)
{
	struct core_wake_bound bound = { 0, CORE_HINDERED_BY_SWITCHES };
	u64 slices_ns = crowd->members * crowd->params->switch_ns;
	struct core_load load = crowd->load;

	slices_ns += slices_bound(crowd, settings, &bound.by);
	core_load_ceilings(&load, crowd->params, crowd->capped);
	bound.ns = core_wait_rotating_ns(crowd->params, crowd->members, 2 * slices_ns);
	bound.ns = max(bound.ns, core_wait_pressed_ns(crowd->params, crowd->members));
	bound.ns = core_load_stretch(&load, bound.ns);
	if (bound.ns == U64_MAX)
		bound.by = CORE_HINDERED_BY_WINDOWS;
	return bound;
}

static u64 clocked_bound(const struct core_crowd *crowd, u32 share_ppm)
{
	u64 budget_ns = core_clock_budget_ns(&crowd->clock, crowd->params, share_ppm);
	u64 longest_ns = crowd->longest_ns;

	if (2 * budget_ns == longest_ns)
		longest_ns = crowd->second_ns;
	return core_wait_clocked_ns(crowd->params, budget_ns,
				    core_clock_period_ns(crowd->params, share_ppm), longest_ns);
}

struct core_wake_bound core_wake_bound_of(const struct core_crowd *crowd,
					  const struct core_settings *settings)
{
	struct core_wake_bound bound = { U64_MAX, CORE_HINDERED_BY_SWITCHES };

	if (settings->class_ == CORE_ONLINE) {
		bound.ns = core_online_bound_ns(crowd->params, crowd->online) +
			   core_online_written_ns(crowd->params, crowd->online) +
			   crowd->load.burst_ns;
	} else if (is_clocked(settings)) {
		bound.ns = clocked_bound(crowd, settings->guarantee_ppm);
	} else if (crowd->online) {
		bound.by = CORE_HINDERED_BY_ONLINE;
	} else if (may_have_nothing(crowd, settings)) {
		bound.by = CORE_HINDERED_BY_SHARES;
	} else {
		bound = rotating_bound(crowd, settings);
	}
	return bound;
}
