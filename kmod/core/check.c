// SPDX-License-Identifier: GPL-2.0
/*
 * check.c - refusals at configuration time: numbers outside their range, settings that this
 * version does not enforce, promises that cannot be kept together. Called before anything is
 * changed; looks at settings only.
 */
#include "core/core.h"

#define WEIGHT_MAX 10000u
/* A cycle below this would be nothing but switches, above nobody would call it sharing. */
#define CYCLE_MIN_NS 200000ull
#define CYCLE_MAX_NS 1000000000ull

static int refuse(struct core_refusal *out, int error, u32 tenant, enum core_field field,
		  u64 sum_ppm)
{
	if (out) {
		out->error = error;
		out->tenant = tenant;
		out->field = field;
		out->sum_ppm = sum_ppm;
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
	return CORE_FIELD_NONE;
}

/*
 * Under fixed-share a ceiling at or above the guarantee never binds; best-effort promises
 * nothing and equal-share the same to all, so weights and guarantees that wait for another policy
 * may stand.
 */
static enum core_field not_enforced(enum core_policy policy, const struct core_settings *set)
{
	if ((policy == CORE_BURST_SHARE || policy == CORE_EQUAL_SHARE) &&
	    set->ceiling_ppm != CORE_PPM)
		return CORE_FIELD_CEILING;
	if (policy == CORE_FIXED_SHARE && set->ceiling_ppm != CORE_PPM && !set->guarantee_ppm)
		return CORE_FIELD_CEILING;
	if (set->class_ != CORE_NORMAL)
		return CORE_FIELD_CLASS;
	if (set->wake_ns)
		return CORE_FIELD_WAKE;
	if (set->hang_ns)
		return CORE_FIELD_HANG;
	return CORE_FIELD_NONE;
}

int core_check(enum core_policy policy, u64 cycle_ns, const struct core_settings *settings,
	       u32 count, struct core_refusal *refusal)
{
	enum core_field field;
	u64 sum_ppm = 0;
	u32 i;

	refuse(refusal, 0, U32_MAX, CORE_FIELD_NONE, 0);
	if (policy != CORE_BEST_EFFORT && policy != CORE_EQUAL_SHARE &&
	    policy != CORE_FIXED_SHARE && policy != CORE_BURST_SHARE)
		return refuse(refusal, -ERANGE, U32_MAX, CORE_FIELD_POLICY, 0);
	if (cycle_ns && (cycle_ns < CYCLE_MIN_NS || cycle_ns > CYCLE_MAX_NS))
		return refuse(refusal, -ERANGE, U32_MAX, CORE_FIELD_CYCLE, 0);

	for (i = 0; i < count; i++) {
		field = out_of_range(&settings[i]);
		if (field != CORE_FIELD_NONE)
			return refuse(refusal, -ERANGE, i, field, 0);
		field = not_enforced(policy, &settings[i]);
		if (field != CORE_FIELD_NONE)
			return refuse(refusal, -EOPNOTSUPP, i, field, 0);
		sum_ppm += settings[i].guarantee_ppm;
		if (sum_ppm > CORE_PPM)
			return refuse(refusal, -ENOSPC, i, CORE_FIELD_GUARANTEE, sum_ppm);
	}
	return 0;
}
