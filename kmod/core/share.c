// SPDX-License-Identifier: GPL-2.0
/*
 * share.c - who gets which part of the engine: splits CORE_PPM among claims. Called by plan.c for
 * those who are awake. Pure: knows no time, no TSG and no window; every split adds up exactly.
 */
#include "core/core_inside.h"

static bool may_take(const struct core_claim *claim, bool offline)
{
	return (claim->class_ == CORE_OFFLINE) == offline;
}

/* Give one more to the @extra claims with the largest remainders; ties by order. */
static void give_remainders(struct core_claim *claims, u32 count, u64 extra, u64 most)
{
	u64 low = 0, high = most; /* the threshold lies in low ... high */
	u64 middle, above;
	u32 i;

	if (!extra)
		return;
	/* Smallest threshold with at most @extra remainders above it. */
	while (low < high) {
		middle = low + ((high - low) >> 1);
		above = 0;
		for (i = 0; i < count; i++)
			above += claims[i].remainder > middle;
		if (above > extra)
			low = middle + 1;
		else
			high = middle;
	}
	for (i = 0; i < count; i++) {
		if (claims[i].remainder > low) {
			claims[i].share_ppm++;
			extra--;
		}
	}
	for (i = 0; i < count && extra; i++) {
		if (claims[i].remainder == low && low) {
			claims[i].share_ppm++;
			extra--;
		}
	}
}

/*
 * Split @left over those of a class that are below their ceiling, by weight; each at most up to
 * its ceiling. Return: what nobody could take.
 */
static u64 fill(struct core_claim *claims, u32 count, u64 left, bool offline)
{
	bool capped = true;
	u64 weights = 0, given = 0, part;
	u32 i;

	/* Whoever would pass its ceiling at the present level is filled; that raises the level for
	 * the others, so the filled stay filled. */
	while (capped && left) {
		capped = false;
		weights = 0;
		for (i = 0; i < count; i++)
			if (may_take(&claims[i], offline) &&
			    claims[i].share_ppm < claims[i].ceiling_ppm)
				weights += claims[i].weight;
		if (!weights)
			return left;
		part = left;
		for (i = 0; i < count; i++) {
			u64 room = claims[i].ceiling_ppm - claims[i].share_ppm;

			if (!may_take(&claims[i], offline) ||
			    claims[i].share_ppm >= claims[i].ceiling_ppm)
				continue;
			if (room * weights <= part * claims[i].weight) {
				claims[i].share_ppm = claims[i].ceiling_ppm;
				left -= room;
				capped = true;
			}
		}
	}
	if (!left)
		return 0;

	for (i = 0; i < count; i++) {
		claims[i].remainder = 0;
		if (!may_take(&claims[i], offline) || claims[i].share_ppm >= claims[i].ceiling_ppm)
			continue;
		part = env_div(left * claims[i].weight, weights);
		claims[i].remainder = left * claims[i].weight - part * weights;
		claims[i].share_ppm += (u32)part;
		given += part;
	}
	give_remainders(claims, count, left - given, weights);
	return 0;
}

/* Bring shares that add up to @sum to @total. */
static void scale(struct core_claim *claims, u32 count, u64 sum, u64 total)
{
	u64 given = 0, part;
	u32 i;

	for (i = 0; i < count; i++) {
		part = env_div(claims[i].share_ppm * total, sum);
		claims[i].remainder = claims[i].share_ppm * total - part * sum;
		claims[i].share_ppm = (u32)part;
		given += part;
	}
	give_remainders(claims, count, total - given, sum);
}

void core_share_split(struct core_claim *claims, u32 count, u32 total_ppm)
{
	u64 sum = 0, left;
	u32 i;

	for (i = 0; i < count; i++) {
		claims[i].share_ppm = min(claims[i].guarantee_ppm, claims[i].ceiling_ppm);
		sum += claims[i].share_ppm;
	}
	if (sum >= total_ppm) {
		if (sum)
			scale(claims, count, sum, total_ppm);
		return;
	}
	left = fill(claims, count, total_ppm - sum, false);
	if (left)
		fill(claims, count, left, true);
}

void core_share_windows(struct core_claim *claims, u32 count)
{
	u64 sum = 0, rest;
	u32 i;

	for (i = 0; i < count; i++) {
		claims[i].share_ppm = claims[i].guarantee_ppm;
		sum += claims[i].guarantee_ppm;
		/* Whoever has a share of its own has that and no more. */
		if (claims[i].guarantee_ppm)
			claims[i].ceiling_ppm = claims[i].guarantee_ppm;
		claims[i].class_ = CORE_NORMAL;
	}
	rest = sum + CORE_REST_MIN_PPM < CORE_PPM ? CORE_PPM - sum : CORE_REST_MIN_PPM;
	fill(claims, count, rest, false);
}
