/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User-space version of kmod/env/qgpu_env.h: the contract is written there. Valid as C11 and as
 * C++20, so that tests may include the same headers as the code under test.
 */
#ifndef QGPU_ENV_H
#define QGPU_ENV_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef int32_t s32;
typedef long long s64;

#ifndef U64_MAX
#define U64_MAX ((u64)~0ULL)
#define U32_MAX ((u32)~0U)
#define S64_MAX ((s64)(U64_MAX >> 1))
#define S64_MIN (-S64_MAX - 1)
#endif
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(n) (1UL << (n))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#ifndef container_of
#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#endif

#ifndef __cplusplus
#define min(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) a_ = (a);                                                            \
		__typeof__(b) b_ = (b);                                                            \
		(void)(&a_ == &b_);                                                                \
		a_ < b_ ? a_ : b_;                                                                 \
	})
#define max(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) a_ = (a);                                                            \
		__typeof__(b) b_ = (b);                                                            \
		(void)(&a_ == &b_);                                                                \
		a_ > b_ ? a_ : b_;                                                                 \
	})
#define clamp(v, lo, hi) min(max(v, lo), hi)
#define swap(a, b)                                                                                 \
	do {                                                                                       \
		__typeof__(a) t_ = (a);                                                            \
		(a) = (b);                                                                         \
		(b) = t_;                                                                          \
	} while (0)
#endif

static inline u64 env_div(u64 a, u64 b)
{
	return a / b;
}

static inline bool env_warn_at(bool cond, const char *what, const char *file, int line)
{
	if (cond) {
		fprintf(stderr, "%s:%d: warning: %s\n", file, line, what);
		abort(); /* in a test our own bug is a failure */
	}
	return cond;
}
#define env_warn_once(cond) env_warn_at(!!(cond), #cond, __FILE__, __LINE__)

static inline u64 env_mul_div(u64 a, u64 b, u64 c)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	if (env_warn_once((u64)(product >> 64) >= c))
		return U64_MAX;
	return (u64)(product / c);
}

static inline void *env_zalloc(size_t bytes)
{
	return calloc(1, bytes);
}

static inline void env_free(void *p)
{
	free(p);
}

#endif
