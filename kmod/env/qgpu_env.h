/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What portable code (core/, hw/, sim/chip/, sched_step.c) may use of its surroundings, kernel
 * version. The user-space version with the same names is tests/env/qgpu_env.h; the include path
 * decides which one is found. Anything that is not named here is not portable.
 *
 * Contract, the same on both sides:
 *   u8 u16 u32 u64 s32 s64 bool      fixed-size integers
 *   -E* errno values, ARRAY_SIZE, BIT, container_of, likely, unlikely
 *   min, max, clamp (both arguments of one type), swap
 *   memset, memcpy, memmove, memcmp
 *   env_div(a, b)                    u64 / u64
 *   env_mul_div(a, b, c)             a * b / c over 128 bits, rounded down; U64_MAX, and reported once,
 *                                    where that does not fit (c = 0 included)
 *   env_zalloc(bytes), env_free(p)   may sleep; only at create and destroy; NULL when out of memory
 *   env_warn_once(cond)              our own bug: reported once with a stack, value is cond
 */
#ifndef QGPU_ENV_H
#define QGPU_ENV_H

#include <linux/types.h>
#include <linux/bug.h>
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/mm.h>
#include <linux/string.h>

static inline u64 env_div(u64 a, u64 b)
{
	return div64_u64(a, b);
}

static inline u64 env_mul_div(u64 a, u64 b, u64 c)
{
	/* The processor's division would trap. */
	if (WARN_ON_ONCE(mul_u64_u64_shr(a, b, 64) >= c))
		return U64_MAX;
	return mul_u64_u64_div_u64(a, b, c);
}

static inline void *env_zalloc(size_t bytes)
{
	return kvzalloc(bytes, GFP_KERNEL);
}

static inline void env_free(void *p)
{
	kvfree(p);
}

#define env_warn_once(cond) WARN_ON_ONCE(cond)

#endif
