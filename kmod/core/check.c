// SPDX-License-Identifier: GPL-2.0
/*
 * check.c - refusals at configuration time: numbers outside their range, settings that this
 * version does not enforce, promises that cannot be kept together. Called before anything is
 * changed; looks at settings only.
 */
#include "core/core_inside.h"

#define WEIGHT_MAX 10000u
/* A cycle below this would be nothing but switches, above nobody would call it sharing. */
#define CYCLE_MIN_NS 200000ull
#define CYCLE_MAX_NS 1000000000ull
/* Longer promises are none. */
#define WAKE_MAX_NS 10000000000ull
#define HANG_MAX_NS 3600000000000ull

static int refuse(struct core_refusal *out, int error, u32 tenant, enum core_field field)
{
	if (out) {
		out->error = error;
		out->tenant = tenant;
		out->field = field;
	}
	return error;
}

static enum core_field out_of_range(const struct core_settings *set)
{
	if (set->weight < 1 || set->weight > WEIGHT_MAX)
		return CORE_FIELD_WEIGHT;
	if (set->guarantee_ppm > CORE_PPM)
		return CORE_FIELD_GUARANTEE;
	if (set->ceiling_ppm < 1 || set->ceiling_ppm > CORE_PPM ||
	    set->ceiling_ppm < set->guarantee_ppm)
		return CORE_FIELD_CEILING;
	if (set->class_ != CORE_NORMAL && set->class_ != CORE_ONLINE && set->class_ != CORE_OFFLINE)
		return CORE_FIELD_CLASS;
	if (set->wake_ns > WAKE_MAX_NS)
		return CORE_FIELD_WAKE;
	if (set->hang_ns > HANG_MAX_NS)
		return CORE_FIELD_HANG;
	return CORE_FIELD_NONE;
}

/* Best-effort promises nothing, so whatever waits for another policy may stand. In windows on the
 * clock nobody takes the engine from anybody, and nobody is promised when its period begins. */
static enum core_field not_enforced(enum core_policy policy, const struct core_settings *set)
{
	if (policy == CORE_BEST_EFFORT || policy == CORE_BURST_SHARE)
		return CORE_FIELD_NONE;
	if (set->class_ != CORE_NORMAL)
		return CORE_FIELD_CLASS;
	if (set->wake_ns)
		return CORE_FIELD_WAKE;
	return CORE_FIELD_NONE;
}

static int check_wakes(const struct core_params *params, const struct core_settings *settings,
		       u32 count, struct core_refusal *refusal)
{
	struct core_wake_bound bound;
	struct core_crowd crowd;
	u32 i;

	core_crowd_of(&crowd, params, settings, count);
	for (i = 0; i < count; i++) {
		if (!settings[i].wake_ns)
			continue;
		bound = core_wake_bound_of(&crowd, &settings[i]);
		if (settings[i].wake_ns >= bound.ns)
			continue;
		if (refusal)
			refusal->bound = bound;
		return refuse(refusal, -ENOSPC, i, CORE_FIELD_WAKE);
	}
	return 0;
}

int core_check(const struct core_params *params, enum core_policy policy, u64 cycle_ns,
	       const struct core_settings *settings, u32 count, struct core_refusal *refusal)
{
	enum core_field field;
	u64 sum_ppm = 0;
	u32 i;

	if (refusal)
		memset(refusal, 0, sizeof(*refusal));
	refuse(refusal, 0, U32_MAX, CORE_FIELD_NONE);
	if (policy != CORE_BEST_EFFORT && policy != CORE_EQUAL_SHARE &&
	    policy != CORE_FIXED_SHARE && policy != CORE_BURST_SHARE)
		return refuse(refusal, -ERANGE, U32_MAX, CORE_FIELD_POLICY);
	if (cycle_ns && (cycle_ns < CYCLE_MIN_NS || cycle_ns > CYCLE_MAX_NS))
		return refuse(refusal, -ERANGE, U32_MAX, CORE_FIELD_CYCLE);

	for (i = 0; i < count; i++) {
		field = out_of_range(&settings[i]);
		if (field != CORE_FIELD_NONE)
			return refuse(refusal, -ERANGE, i, field);
		field = not_enforced(policy, &settings[i]);
		if (field != CORE_FIELD_NONE)
			return refuse(refusal, -EOPNOTSUPP, i, field);
		sum_ppm += settings[i].guarantee_ppm;
		if (sum_ppm <= CORE_PPM)
			continue;
		if (refusal)
			refusal->sum_ppm = sum_ppm;
		return refuse(refusal, -ENOSPC, i, CORE_FIELD_GUARANTEE);
	}
	return policy == CORE_BURST_SHARE ? check_wakes(params, settings, count, refusal) : 0;
}
