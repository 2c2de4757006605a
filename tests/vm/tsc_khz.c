// SPDX-License-Identifier: GPL-2.0
/*
 * tsc_khz.c - prints how many thousand times a second the host's time stamp counter counts, which a
 * guest of QEMU's reads as its own. Started by run.sh: a guest that measures it beside a busy host finds
 * anything between a quarter and four times that, and its clock goes by it. Prints nothing where there
 * is no such counter.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#if defined(__x86_64__)

/* Both at one instant: of several tries the one that took the least. */
static void read_both(uint64_t *tsc, uint64_t *ns)
{
	uint64_t before, after, least = ~0ull;
	struct timespec t;
	int i;

	for (i = 0; i < 100; i++) {
		before = __builtin_ia32_rdtsc();
		clock_gettime(CLOCK_MONOTONIC_RAW, &t);
		after = __builtin_ia32_rdtsc();
		if (after - before >= least)
			continue;
		least = after - before;
		*tsc = before + least / 2;
		*ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	}
}

int main(void)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	uint64_t tsc, ns, later_tsc, later_ns;

	read_both(&tsc, &ns);
	nanosleep(&pause, NULL);
	read_both(&later_tsc, &later_ns);
	printf("%llu\n", (unsigned long long)((later_tsc - tsc) * 1000000 / (later_ns - ns)));
	return 0;
}

#else

int main(void)
{
	return 0;
}

#endif
