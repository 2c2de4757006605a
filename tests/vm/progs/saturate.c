// SPDX-License-Identifier: GPL-2.0
/*
 * saturate KERNEL_US SECONDS [TSGS [SLICE_US [PREEMPTION]]] - a tenant that always has work: keeps
 * the rings of TSGS TSGs (default 1) full of equal kernels and prints once a second "second
 * completed", at the end "total completed". SLICE_US (0 = none): the slice it asks the driver for.
 * PREEMPTION: 0 = its kernels cannot be cut, 2 (default) = anywhere. Sleeps, never spins.
 */
#include "rm.h"

#define DEPTH 32u
#define TSGS_MAX 8
#define PAUSE_MAX_NS 100000000 /* so that seconds are told of in time */

struct worker {
	struct rm_tenant tenant;
	struct rm_channel channel;
	uint32_t done; /* kernels known to be complete */
};

static bool refill(struct worker *w, uint64_t kernel_ns, uint32_t preemption)
{
	bool pushed = false;

	while (w->done < w->channel.put &&
	       rm_completion(&w->channel, w->done)->payload == (uint64_t)w->done + 1)
		w->done++;
	while (w->channel.put - w->done < DEPTH) {
		rm_push(&w->channel, kernel_ns, preemption);
		pushed = true;
	}
	return pushed;
}

int main(int argc, char **argv)
{
	uint64_t kernel_ns = argc > 1 ? strtoull(argv[1], NULL, 0) * 1000 : 0;
	uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
	int tsgs = argc > 3 ? atoi(argv[3]) : 1, i;
	struct rm_timeslice_params slice = { argc > 4 ? strtoull(argv[4], NULL, 0) : 0 };
	uint32_t preemption = argc > 5 ? (uint32_t)atoi(argv[5]) : 2;
	static struct worker workers[TSGS_MAX];
	uint64_t start, pause_ns, second = 1, total;

	if (!kernel_ns || !seconds || tsgs < 1 || tsgs > TSGS_MAX) {
		fprintf(stderr, "usage: saturate KERNEL_US SECONDS [TSGS [SLICE_US [PREEMPTION]]]\n");
		return 2;
	}
	for (i = 0; i < tsgs; i++) {
		if (rm_tenant_open(&workers[i].tenant, 0) ||
		    rm_channel_create(&workers[i].tenant, &workers[i].channel) ||
		    rm_tenant_schedule(&workers[i].tenant))
			return 1;
		if (slice.timeslice_us &&
		    rm_control(workers[i].tenant.ctl, workers[i].tenant.client,
			       workers[i].tenant.tsg, RM_CTRL_TSG_SET_TIMESLICE, &slice,
			       sizeof(slice)))
			return 1;
	}
	pause_ns = kernel_ns * DEPTH / 4;
	if (pause_ns > PAUSE_MAX_NS)
		pause_ns = PAUSE_MAX_NS;
	start = now_ns();
	while (now_ns() - start < seconds * 1000000000) {
		for (total = 0, i = 0; i < tsgs; i++) {
			if (refill(&workers[i], kernel_ns, preemption))
				rm_ring(&workers[i].tenant, &workers[i].channel);
			total += workers[i].done;
		}
		if (now_ns() - start >= second * 1000000000) {
			printf("%llu %llu\n", (unsigned long long)second++,
			       (unsigned long long)total);
			fflush(stdout);
		}
		sleep_ns(pause_ns);
	}
	for (total = 0, i = 0; i < tsgs; i++)
		total += workers[i].done;
	printf("total %llu\n", (unsigned long long)total);
	return 0;
}
