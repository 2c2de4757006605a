// SPDX-License-Identifier: GPL-2.0
/*
 * front_fuzz SECONDS [SEED] - two processes, each with two threads, that throw random calls at the
 * simulated driver: mostly well-formed ones with handles that exist, in orders that make no sense,
 * and a part of them bent. Whatever happens, the driver has to answer, nothing may hang, and nothing
 * may be left when they are gone: that is the caller's to check. Prints TAP lines (no plan).
 */
#include <pthread.h>
#include <sys/wait.h>

#include "rm_exec.h"

#define THREADS 2
#define HANDLES 64u

static struct rm_tenant tenant;
static struct rm_channel channel;
static struct exec_trace trace;
static uint64_t deadline_ns;
static uint32_t foreign; /* the other process's client, or near it */

struct fuzzer {
	uint64_t state;
	uint64_t calls;
};

static uint32_t next(struct fuzzer *f)
{
	f->state = f->state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(f->state >> 33);
}

static uint32_t any_handle(struct fuzzer *f)
{
	switch (next(f) % 8) {
	case 0:
		return tenant.client;
	case 1:
		return tenant.tsg;
	case 2:
		return channel.handle;
	case 3:
		return trace.buffer;
	case 4:
		return tenant.subdevice;
	case 5:
		return foreign + next(f) % 4;
	case 6:
		return next(f);
	default:
		return RM_HANDLE_FIRST + next(f) % HANDLES;
	}
}

static void fill(struct fuzzer *f, void *data, size_t bytes)
{
	uint32_t *word = data;
	size_t i;

	for (i = 0; i < bytes / 4; i++)
		word[i] = next(f) % 4 ? next(f) % 3 : next(f) % 2 ? any_handle(f) : next(f);
}

static void random_gate(struct fuzzer *f)
{
	struct rm_disable_params p = { .disable = next(f) % 2, .count = 1 + next(f) % 3,
				       .only_scheduling = next(f) % 2 };
	uint32_t i;

	for (i = 0; i < p.count; i++) {
		p.clients[i] = next(f) % 3 ? tenant.client : any_handle(f);
		p.channels[i] = next(f) % 3 ? channel.handle : any_handle(f);
	}
	if (next(f) % 16 == 0)
		fill(f, &p, sizeof(p));
	rm_control(tenant.ctl, tenant.client, tenant.subdevice, RM_CTRL_DISABLE_CHANNELS, &p,
		   sizeof(p));
}

static void random_control(struct fuzzer *f)
{
	static const struct {
		uint32_t cmd, bytes;
	} controls[] = {
		{ RM_CTRL_GET_FEATURES, 4 },	   { RM_CTRL_GPU_GET_ID_INFO, 32 },
		{ RM_CTRL_GET_HANDLE_INFO, 16 },   { RM_CTRL_GPU_GET_ID, 4 },
		{ RM_CTRL_BIND_TRACE, 24 },	   { RM_CTRL_BIND_TRACE_V1, 20 },
		{ RM_CTRL_EVENTS_ENABLE, 8 },	   { RM_CTRL_EVENTS_UPDATE_GET, 8 },
		{ RM_CTRL_EVENTS_FLUSH, 0 },	   { RM_CTRL_TSG_SCHEDULE, 2 },
		{ RM_CTRL_TSG_SET_TIMESLICE, 8 },  { RM_CTRL_TSG_GET_TIMESLICE, 8 },
		{ RM_CTRL_TSG_PREEMPT, 8 },	   { RM_CTRL_TSG_GET_INFO, 4 },
		{ RM_CTRL_CHANNEL_GET_TOKEN, 4 },  { RM_CTRL_DISABLE_CHANNELS, 536 },
	};
	uint32_t i = next(f) % (sizeof(controls) / sizeof(controls[0]));
	uint32_t bytes = next(f) % 16 ? controls[i].bytes : next(f) % 600;
	uint64_t params[76];

	fill(f, params, sizeof(params));
	rm_control(tenant.ctl, next(f) % 8 ? tenant.client : any_handle(f), any_handle(f),
		   controls[i].cmd, bytes ? params : NULL, bytes);
}

/* Event buffers, memory and OS events that come and go, on handles that collide. */
static void random_object(struct fuzzer *f)
{
	struct rm_memory_params memory = {
		.attr = RM_ATTR_COHERENCY_WRITE_BACK << RM_ATTR_COHERENCY_SHIFT,
		.attr2 = RM_ATTR2_USER_READ_ONLY,
		.bytes = next(f) % 20000,
	};
	struct rm_event_buffer_params buffer = {
		.record_bytes = 32,
		.record_count = next(f) % 400,
		.records_free_threshold = next(f) % 3,
		.notification = next(f) % 8,
		.subdevice = tenant.subdevice,
		.header_memory = RM_HANDLE_FIRST + 100 + next(f) % 8,
		.record_memory = RM_HANDLE_FIRST + 100 + next(f) % 8,
	};
	struct rm_os_event event = { .client = tenant.client, .device = tenant.subdevice,
				     .fd = (int)(next(f) % 8) };
	uint32_t handle = RM_HANDLE_FIRST + 100 + next(f) % 16;

	if (next(f) % 32 == 0)
		fill(f, &buffer, sizeof(buffer));
	switch (next(f) % 6) {
	case 0:
	case 1:
		rm_alloc(tenant.ctl, tenant.client, tenant.client, &handle,
			 RM_CLASS_MEMORY_DEVICELESS, &memory, sizeof(memory));
		break;
	case 2:
		rm_alloc(tenant.ctl, tenant.client, tenant.client, &handle, RM_CLASS_EVENT_BUFFER,
			 &buffer, sizeof(buffer));
		break;
	case 3:
		rm_free(tenant.ctl, tenant.client, handle);
		break;
	case 4:
		rm_call(trace.event_fd, RM_NR_ALLOC_OS_EVENT, &event, sizeof(event));
		break;
	default:
		rm_call(trace.event_fd, RM_NR_FREE_OS_EVENT, &event, sizeof(event));
	}
}

static void random_map(struct fuzzer *f)
{
	struct rm_map_memory map = { .client = tenant.client, .device = tenant.client,
				     .memory = RM_HANDLE_FIRST + 100 + next(f) % 16,
				     .length = next(f) % 20000, .flags = next(f) % 3 };
	void *at;

	map.fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
	if (map.fd < 0)
		return;
	rm_call(tenant.ctl, RM_NR_MAP_MEMORY, &map, sizeof(map));
	at = mmap(NULL, 4096, next(f) % 4 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, map.fd,
		  0);
	if (at != MAP_FAILED) {
		(void)*(volatile uint32_t *)at;
		munmap(at, 4096);
	}
	close(map.fd);
}

static void *fuzz(void *arg)
{
	struct fuzzer *f = arg;

	while (now_ns() < deadline_ns) {
		switch (next(f) % 8) {
		case 0:
		case 1:
			random_gate(f);
			break;
		case 2:
		case 3:
			random_object(f);
			break;
		case 4:
			random_map(f);
			break;
		case 5:
			tenant.bell[RM_USERMODE_DOORBELL / 4] = next(f) % 2 ? channel.token :
									      next(f);
			break;
		default:
			random_control(f);
		}
		f->calls++;
	}
	return NULL;
}

/* Work that never ends: something is always on the card. */
static void *work(void *arg)
{
	while (now_ns() < deadline_ns) {
		if (channel.put < 60)
			rm_push(&channel, 500000, 2);
		rm_ring(&tenant, &channel);
		sleep_ns(5000000);
	}
	return arg;
}

static int run(uint64_t seed)
{
	struct fuzzer fuzzers[THREADS];
	pthread_t threads[THREADS + 1];
	uint64_t calls = 0;
	int i;

	if (rm_tenant_open(&tenant, 0) || rm_channel_create(&tenant, &channel) ||
	    rm_tenant_schedule(&tenant) || exec_trace_open(&tenant, 256, &trace))
		return 1;
	foreign = tenant.client - 1;
	for (i = 0; i < THREADS; i++) {
		fuzzers[i] = (struct fuzzer){ .state = seed * 1000 + (uint64_t)i };
		pthread_create(&threads[i], NULL, fuzz, &fuzzers[i]);
	}
	pthread_create(&threads[THREADS], NULL, work, NULL);
	for (i = 0; i <= THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < THREADS; i++)
		calls += fuzzers[i].calls;
	printf("# %llu calls\n", (unsigned long long)calls);
	fflush(stdout);
	return calls > 100 ? 0 : 2;
}

int main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 0) : 5;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : now_ns();
	pid_t pids[2];
	int i, status, failed = 0;

	printf("# repeat with seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	deadline_ns = now_ns() + seconds * 1000000000u;
	for (i = 0; i < 2; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(run(seed + (uint64_t)i));
	}
	for (i = 0; i < 2; i++) {
		waitpid(pids[i], &status, 0);
		failed |= status;
	}
	tap(!failed, "random calls are answered, and none hangs");
	return tap_failed;
}
