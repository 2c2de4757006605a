// SPDX-License-Identifier: GPL-2.0
/*
 * weights.c - what those who rotate must have of a plan in sum, so that slices which cannot be
 * shorter bend no share. Called by bound.c; looks at settings only. theory.rst, WAITS.
 */
#include "core/core_inside.h"

/* All that short slices have beyond their shares; docs/policies.md says it of each share. */
#define BENT_MAX_PPM 5000ull
/* Parts of delivered time are in units of this; what a weight is worth, of a ppm. */
#define PART_SHIFT 30
#define LEVEL_SHIFT 20

/* Who is awake together, and what a weight is worth among them. */
struct awake {
	const struct core_crowd *crowd;
	const struct core_settings *sleeper; /* NULL = none */
	bool only_offline;
	u32 total_ppm; /* what windows on the clock leave */
	u64 normal_level, offline_level;
	u64 sum_ppm; /* of shares */
};

static bool is_awake(const struct awake *awake, const struct core_settings *settings)
{
	return settings != awake->sleeper && core_may_rotate(settings) &&
	       (!awake->only_offline || settings->class_ == CORE_OFFLINE);
}

static u64 share_of(const struct awake *awake, const struct core_settings *settings)
{
	bool offline = settings->class_ == CORE_OFFLINE;
	u64 level = offline ? awake->offline_level : awake->normal_level;

	return min((u64)settings->ceiling_ppm,
		   settings->guarantee_ppm + (settings->weight * level >> LEVEL_SHIFT));
}

/* Whoever is at its ceiling leaves the others more; whose level rises stays there.
 * Return: something is left. */
static bool fill(struct awake *awake, bool offline)
{
	u64 *level = offline ? &awake->offline_level : &awake->normal_level;
	const struct core_settings *settings;
	u64 taken_ppm, weights, share_ppm, next;
	u32 i;

	for (;;) {
		taken_ppm = 0;
		weights = 0;
		for (i = 0; i < awake->crowd->count; i++) {
			settings = &awake->crowd->settings[i];
			if (!is_awake(awake, settings))
				continue;
			share_ppm = share_of(awake, settings);
			if ((settings->class_ == CORE_OFFLINE) == offline &&
			    share_ppm < settings->ceiling_ppm) {
				weights += settings->weight;
				share_ppm = settings->guarantee_ppm;
			}
			taken_ppm += share_ppm;
		}
		if (taken_ppm >= awake->total_ppm)
			return false;
		if (!weights)
			return true;
		next = env_div((awake->total_ppm - taken_ppm) << LEVEL_SHIFT, weights);
		if (next <= *level)
			return false;
		*level = next;
	}
}

static void share_out(struct awake *awake)
{
	u32 i;

	awake->normal_level = 0;
	awake->offline_level = 0;
	awake->sum_ppm = 0;
	if (fill(awake, false))
		fill(awake, true);
	for (i = 0; i < awake->crowd->count; i++)
		if (is_awake(awake, &awake->crowd->settings[i]))
			awake->sum_ppm += share_of(awake, &awake->crowd->settings[i]);
}

static u64 part_of(const struct awake *awake, const struct core_settings *settings)
{
	if (!awake->sum_ppm || !is_awake(awake, settings))
		return 0;
	return env_div(share_of(awake, settings) << PART_SHIFT, awake->sum_ppm);
}

/* The largest part of all that the shortest slice may be: what those of smaller parts have beyond
 * them, in sum, is what may be. Each round leaves fewer of those. 0 = there are no two. */
static u64 largest_part(const struct awake *awake)
{
	u64 bent = env_div(BENT_MAX_PPM << PART_SHIFT, CORE_PPM), largest = U64_MAX, part, parts;
	u32 i, count, before = U32_MAX;

	for (;;) {
		count = 0;
		parts = bent;
		for (i = 0; i < awake->crowd->count; i++) {
			part = part_of(awake, &awake->crowd->settings[i]);
			if (!part || part >= largest)
				continue;
			count++;
			parts += part;
		}
		if (count == before)
			return largest;
		if (before == U32_MAX && count < 2)
			return 0;
		before = count;
		largest = env_div(parts, count);
	}
}

/* What all of them must have, less what @self has: nobody waits for itself. */
static u64 others_need(struct awake *awake, const struct core_settings *self)
{
	const u64 one = 1ull << PART_SHIFT;
	u64 largest;

	share_out(awake);
	largest = largest_part(awake);
	if (!largest)
		return 0;
	return env_mul_div(awake->crowd->params->slice_min_ns, one - min(part_of(awake, self), one),
			   largest);
}

u64 core_weights_need_ns(const struct core_crowd *crowd, const struct core_settings *self)
{
	const struct core_params *params = crowd->params;
	struct awake awake = { .crowd = crowd };
	u64 need_ns = 0;
	u32 set;

	for (set = 0; set < 8; set++) {
		awake.sleeper = set & 1 ? self : NULL;
		awake.only_offline = set & 2;
		awake.total_ppm = CORE_PPM;
		if (set & 4)
			awake.total_ppm -= min((u64)CORE_PPM - 1, crowd->clock.sum_ppm);
		need_ns = max(need_ns, others_need(&awake, self));
	}
	/* No cycle is longer, whatever is promised. */
	return min(need_ns, env_mul_div(crowd->members * params->switch_ns,
					CORE_PPM - params->loss_ppm, max(params->loss_ppm, 1u)));
}
