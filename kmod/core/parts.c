// SPDX-License-Identifier: GPL-2.0
/*
 * parts.c - the longest cycle of which nobody's others have more than its wait leaves them. Called
 * by plan.c and online.c, which say what that is.
 */
#include "core/core_inside.h"

/* So often the cycle is made shorter. */
#define FIT_ROUNDS 8

/* Some are the least there are; the others are by share. */
struct sum {
	u64 least_ns, longer_ppm;
};

/* At the cycle that was found last; @cycle_ns 0: as if each had the least and its share beside. */
static struct sum sum_of(const struct core_part *part, u64 cycle_ns)
{
	struct sum sum = { part->least_ns, part->share_ppm };

	if (!cycle_ns)
		return sum;
	if (cycle_ns == U64_MAX || env_mul_div(cycle_ns, part->share_ppm, CORE_PPM) > sum.least_ns)
		sum.least_ns = 0;
	else
		sum.longer_ppm = 0;
	return sum;
}

static u64 cycle_beside(const struct core_part *part, struct sum all, u64 at_ns)
{
	struct sum own = sum_of(part, at_ns);
	u64 least_ns = all.least_ns - own.least_ns, longer_ppm = all.longer_ppm - own.longer_ppm;

	if (part->others_ns == U64_MAX || !longer_ppm)
		return U64_MAX;
	return env_mul_div(part->others_ns - min(part->others_ns, least_ns), CORE_PPM, longer_ppm);
}

static u64 cycle_at(const struct core *core, u64 at_ns)
{
	struct sum all = { 0, 0 }, one;
	u64 cycle_ns = U64_MAX;
	u32 i;

	for (i = 0; i < core->tenant_count; i++) {
		one = sum_of(&core->tenants[i]->part, at_ns);
		all.least_ns += one.least_ns;
		all.longer_ppm += one.longer_ppm;
	}
	for (i = 0; i < core->tenant_count; i++)
		cycle_ns = min(cycle_ns, cycle_beside(&core->tenants[i]->part, all, at_ns));
	return cycle_ns;
}

/* Parts that cannot be shorter leave the less to the longer ones, of which the shorter cycle makes
 * some too short. */
u64 core_parts_cycle(const struct core *core)
{
	u64 cycle_ns = U64_MAX, shorter_ns;
	u32 rounds;

	for (rounds = 0; rounds < FIT_ROUNDS; rounds++) {
		shorter_ns = min(cycle_ns, cycle_at(core, cycle_ns));
		if (shorter_ns == cycle_ns)
			return cycle_ns;
		cycle_ns = max(shorter_ns, 1ull);
	}
	return min(cycle_ns, cycle_at(core, 0));
}
