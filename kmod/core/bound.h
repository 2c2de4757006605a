/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bound.h - what can be promised: the longest waits by a plan's numbers and by settings (bound.c),
 * and which settings are refused (check.c). Pure functions of what they are given; theory.rst,
 * WAITS.
 */
#ifndef QGPU_CORE_BOUND_H
#define QGPU_CORE_BOUND_H

#include "core_types.h"

/*
 * bound.c: the longest waits (WAITS)
 */

/**
 * struct core_clock - the windows on the clock of a card
 * @sum_ppm: sum of their shares
 * @over_ppm: sum of what the windows cost beside them
 */
struct core_clock {
	u64 sum_ppm, over_ppm;
};

/* One more with a share of its own; the period of one; its budget, scaled where windows and their
 * costs together would pass the whole. */
void core_clock_add(struct core_clock *clock, const struct core_params *params, u32 share_ppm);
u64 core_clock_period_ns(const struct core_params *params, u32 share_ppm);
u64 core_clock_budget_ns(const struct core_clock *clock, const struct core_params *params,
			 u32 share_ppm);

/**
 * core_on_grid_ns() - the shortest period on a grid of powers of two that is @least_ns long, or the
 * longest up to @most_ns
 *
 * Whose periods divide each other's comes in the same place of each (EXCLUSIVE WINDOWS), and a
 * period that hangs on the cycle seldom changes.
 */
u64 core_on_grid_ns(const struct core_params *params, u64 least_ns, u64 most_ns);

/**
 * struct core_load - what takes the engine from those who wait for it
 * @burst_ns: what of it may come at once
 * @ppm: and how much of the wall it takes beside
 */
struct core_load {
	u64 burst_ns, ppm;
};

/* Windows of @window_ns on the wall in each @period_ns; @ceilings tenants that leave the rotation
 * when theirs is reached, and come back. */
void core_load_window(struct core_load *load, const struct core_params *params, u64 window_ns,
		      u64 period_ns);
void core_load_ceilings(struct core_load *load, const struct core_params *params, u32 ceilings);

/**
 * core_load_stretch() - what a wait of @wait_ns becomes with @load in it; U64_MAX = endless
 * core_load_spare() - what of a wait of @wait_ns is left beside @load
 */
u64 core_load_stretch(const struct core_load *load, u64 wait_ns);
u64 core_load_spare(const struct core_load *load, u64 wait_ns);

/**
 * core_wait_rotating_ns() - the longest wait among @contexts that rotate
 * @slices_ns: what the others have in it
 *
 * core_slices_within_ns() - what the others may have by one plan, so that a wait of @wait_ns is
 * kept among @awake that rotate and @asleep that may wake
 */
u64 core_wait_rotating_ns(const struct core_params *params, u32 contexts, u64 slices_ns);
/* The shortest that can be kept for @count tenants beside windows by lag. */
u64 core_wait_pressed_ns(const struct core_params *params, u32 count);
u64 core_slices_within_ns(const struct core_params *params, u32 awake, u32 asleep, u64 wait_ns);

/**
 * core_wait_clocked_ns() - the longest wait of an owner of windows on the clock
 * @longest_ns: the longest window of any other owner; 0 = there is none
 */
u64 core_wait_clocked_ns(const struct core_params *params, u64 budget_ns, u64 period_ns,
			 u64 longest_ns);

/**
 * core_online_bound_ns() - the shortest wait that can be promised to @online online tenants: the
 * other's slice and the slices of those beside it, and a switch before each and before its own
 */
u64 core_online_bound_ns(const struct core_params *params, u32 online);
/* By how much those slices may be longer when they are written. */
u64 core_online_written_ns(const struct core_params *params, u32 online);

/**
 * core_is_fixed() - guarantee and ceiling are one share of the wall: windows on the clock
 */
bool core_is_fixed(const struct core_settings *settings);
/* Where nobody is online. */
bool core_may_rotate(const struct core_settings *settings);

/**
 * struct core_crowd - all tenants of a card by their settings, under burst-share
 * @params: the card
 * @settings: of all of them, @count
 * @online: how many are online
 * @members: how many rotate where nobody is
 * @capped: of those, how many have a ceiling
 * @guaranteed_ppm: what comes before weights among the members
 * @claimed_ppm: and what comes before offline ones
 * @clock: windows on the clock
 * @load: what they take, with their gaps
 * @longest_ns: the longest of them
 * @second_ns: and the longest of all but that one's owner
 */
struct core_crowd {
	const struct core_params *params;
	const struct core_settings *settings;
	u32 count;
	u32 online, members, capped;
	u64 guaranteed_ppm, claimed_ppm;
	struct core_clock clock;
	struct core_load load;
	u64 longest_ns, second_ns;
};

void core_crowd_of(struct core_crowd *crowd, const struct core_params *params,
		   const struct core_settings *settings, u32 count);

/**
 * core_weights_need_ns() - what those whom @self waits for must have of a plan in sum, so that
 *                          their shares are kept by slices that cannot be shorter (weights.c)
 * @self: one of the crowd's settings
 */
u64 core_weights_need_ns(const struct core_crowd *crowd, const struct core_settings *self);

/* What keeps a wait from being shorter, or from being promised at all: switches; weights; who comes
 * first; claims that may leave it nothing; windows on the clock that may take what is left. */
enum core_hindrance {
	CORE_HINDERED_BY_SWITCHES,
	CORE_HINDERED_BY_WEIGHTS,
	CORE_HINDERED_BY_ONLINE,
	CORE_HINDERED_BY_SHARES,
	CORE_HINDERED_BY_WINDOWS,
};

/**
 * struct core_wake_bound - what can be promised to one of a crowd
 * @ns: the shortest wait; U64_MAX = none
 * @by: why there is none
 */
struct core_wake_bound {
	u64 ns;
	enum core_hindrance by;
};

/* @settings: one of the crowd's, or somebody's who is not in it. */
struct core_wake_bound core_wake_bound_of(const struct core_crowd *crowd,
					  const struct core_settings *settings);

/*
 * check.c: what is refused at configuration time
 */

enum core_field {
	CORE_FIELD_NONE,
	CORE_FIELD_POLICY,
	CORE_FIELD_CYCLE,
	CORE_FIELD_WEIGHT,
	CORE_FIELD_GUARANTEE,
	CORE_FIELD_CEILING,
	CORE_FIELD_CLASS,
	CORE_FIELD_WAKE,
	CORE_FIELD_HANG,
};

/**
 * struct core_refusal - why a plan is refused
 * @error: negative errno, what core_check() returned
 * @tenant: index into the settings given; U32_MAX = the card's own settings
 * @field: the guilty setting
 * @sum_ppm: with -ENOSPC and a guarantee, what they add up to with @tenant's
 * @bound: with -ENOSPC and a wait, the shortest that could be promised
 */
struct core_refusal {
	int error;
	u32 tenant;
	enum core_field field;
	u64 sum_ppm;
	struct core_wake_bound bound;
};

/**
 * core_check() - may this be set? Looks at settings only; changes nothing.
 * @settings: @count settings as they would be after the change, in the order of which the first
 *            one that goes over is named
 *
 * Return: 0; -ERANGE a number outside its range; -EOPNOTSUPP not enforced under this policy;
 * -ENOSPC guarantees over 100 %, or a wait that no plan can keep. @refusal (may be NULL) says
 * which.
 */
int core_check(const struct core_params *params, enum core_policy policy, u64 cycle_ns,
	       const struct core_settings *settings, u32 count, struct core_refusal *refusal);

#endif
