// SPDX-License-Identifier: GPL-2.0
/*
 * front_churn.c - tenants that come, go and misbehave on the card itself: bad work, freeing in any
 * order, racing threads, kill -9 at any moment, work that can't be cut, storms. Prints TAP lines
 * (no plan) and exits with their verdict. That nothing is left is the caller's to check.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "rm.h"

/* A tenant that runs what it should not: the card and the driver must bear it. */
static void bad_work(void)
{
	struct rm_tenant own;
	struct rm_channel c;
	uint32_t i;

	tap_status(rm_tenant_open(&own, 0), 0, "a tenant with bad work");
	tap_status(rm_channel_create(&own, &c), 0, "its channel");
	tap_status(rm_tenant_schedule(&own), 0, "its TSG");
	rm_push(&c, 1000, 2);
	rm_kernel(&c, 0)->semaphore_va = 0x123456789000;
	rm_push(&c, 0, 2);
	rm_push(&c, 1000, 77);
	i = rm_push(&c, 1000, 2);
	rm_ring(&own, &c);
	tap(rm_wait(&c, i, 20000000000), "a wild semaphore, length 0 and type 77 are survived");
	/* GP_PUT beyond the ring, and entries that point nowhere. */
	memset((char *)c.memory.cpu + 4096, 0xff, 4096);
	*(volatile uint32_t *)((char *)c.memory.cpu + 0x8c) = 0xffffffff;
	rm_ring(&own, &c);
	sleep_ns(5000000);
	tap(true, "a wild GP_PUT is survived");
	rm_tenant_close(&own, &c);
}

/* Everything is freed in a random order, under load. */
static void free_in_any_order(void)
{
	uint32_t round, status = 0, i, n;

	for (round = 0; round < 40; round++) {
		struct rm_tenant own;
		struct rm_channel c[3];
		uint32_t handles[16];

		status |= rm_tenant_open(&own, 0);
		for (i = 0; i < 3; i++)
			status |= rm_channel_create(&own, &c[i]);
		status |= rm_tenant_schedule(&own);
		for (i = 0; i < 40; i++)
			rm_push(&c[i % 3], 200000, i % 3);
		rm_ring(&own, &c[0]);
		n = 0;
		handles[n++] = own.device;
		handles[n++] = own.subdevice;
		handles[n++] = own.vaspace;
		handles[n++] = own.virtual;
		handles[n++] = own.usermode;
		handles[n++] = own.tsg;
		for (i = 0; i < 3; i++) {
			handles[n++] = c[i].handle;
			handles[n++] = c[i].memory.handle;
		}
		while (n) {
			i = (uint32_t)rand() % n;
			status |= rm_free(own.ctl, own.client, handles[i]);
			handles[i] = handles[--n];
			if (rand() % 4 == 0)
				sched_yield();
		}
		close(own.bell_fd);
		close(own.card);
		close(own.ctl);
		munmap((void *)own.bell, RM_USERMODE_BYTES);
		for (i = 0; i < 3; i++) {
			close(c[i].memory.fd);
			munmap(c[i].memory.cpu, c[i].memory.bytes);
		}
	}
	tap_status(status, 0, "40 tenants freed in random order under load");
}

static struct rm_tenant tenant;
static volatile int race_stop;

static void *race(void *seed)
{
	unsigned int state = (unsigned int)(uintptr_t)seed;
	struct rm_schedule_params schedule = { .enable = 1 };
	struct rm_channel_params channel = { .gpfifo_entries = 64 };
	struct rm_tsg_params tsg = { .vaspace = 200 };
	struct rm_memory_params memory;
	struct rm_vaspace_params vaspace;
	struct rm_virtual_params virtual = { .vaspace = 200 };
	uint64_t va = 0;

	while (!race_stop) {
		uint32_t handle = 200 + (uint32_t)rand_r(&state) % 8;

		switch (rand_r(&state) % 9) {
		case 0:
			handle = 200;
			memset(&vaspace, 0, sizeof(vaspace));
			rm_alloc(tenant.ctl, tenant.client, tenant.device, &handle,
				 RM_CLASS_VASPACE, &vaspace, sizeof(vaspace));
			break;
		case 1:
			handle = 201;
			rm_alloc(tenant.ctl, tenant.client, tenant.device, &handle, RM_CLASS_TSG,
				 &tsg, sizeof(tsg));
			break;
		case 2:
			handle = 202;
			rm_init_memory_params(&memory, 32768);
			rm_alloc(tenant.ctl, tenant.client, tenant.device, &handle,
				 RM_CLASS_MEMORY_SYSTEM, &memory, sizeof(memory));
			break;
		case 3:
			handle = 203;
			rm_alloc(tenant.ctl, tenant.client, tenant.device, &handle,
				 RM_CLASS_MEMORY_VIRTUAL, &virtual, sizeof(virtual));
			break;
		case 4:
			rm_map_dma(tenant.ctl, tenant.client, tenant.device, 203, 202, 32768, 0, &va);
			break;
		case 5:
			channel.userd_memory[0] = 202;
			channel.gpfifo_va = va;
			handle = 204 + (uint32_t)rand_r(&state) % 4;
			rm_alloc(tenant.ctl, tenant.client, 201, &handle, RM_CLASS_CHANNEL, &channel,
				 sizeof(channel));
			break;
		case 6:
			rm_control(tenant.ctl, tenant.client, 201, RM_CTRL_TSG_SCHEDULE, &schedule,
				   sizeof(schedule));
			break;
		case 7:
			tenant.bell[RM_USERMODE_DOORBELL / 4] = 1;
			break;
		default:
			rm_free(tenant.ctl, tenant.client, handle);
			break;
		}
	}
	return NULL;
}

static void racing_threads(void)
{
	pthread_t threads[2];
	uintptr_t i;

	tap_status(rm_tenant_open(&tenant, 0), 0, "a tenant with two threads");
	race_stop = 0;
	for (i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, race, (void *)(i + 1));
	sleep_ns(2000000000);
	race_stop = 1;
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	tap(true, "two threads race alloc, map, schedule and free");
}

static void killed_in_the_middle(void)
{
	int i, killed = 0, status;

	for (i = 0; i < 40; i++) {
		pid_t child = fork();

		if (!child) {
			for (;;) {
				struct rm_tenant own;
				struct rm_channel c;
				uint32_t k;

				if (rm_tenant_open(&own, 0) || rm_channel_create(&own, &c) ||
				    rm_tenant_schedule(&own))
					_exit(1);
				for (k = 0; k < 20; k++)
					rm_push(&c, 300000, k % 3);
				rm_ring(&own, &c);
				rm_tenant_close(&own, &c);
			}
		}
		sleep_ns(1000000 + (uint64_t)rand() % 20000000);
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		killed += WIFSIGNALED(status);
	}
	tap(killed == 40, "40 tenants killed at any moment");
}

/* What can't be cut is waited for once, for all channels, without holding anybody up. */
static void uncuttable(void)
{
	enum { OTHERS = 100 };
	struct rm_channel_params p = { .gpfifo_entries = 64 };
	struct rm_tenant own;
	struct rm_channel c;
	uint64_t start, took;
	uint32_t i, handle, failed = 0;

	tap_status(rm_tenant_open(&own, 0), 0, "a tenant with a kernel of 5 s that can't be cut");
	tap_status(rm_channel_create(&own, &c), 0, "its channel");
	p.gpfifo_va = c.memory.va + 4096;
	p.userd_memory[0] = c.memory.handle;
	p.userd_offset[0] = 512;
	for (i = 0; i < OTHERS; i++) {
		handle = 1000 + i;
		failed |= rm_alloc(own.ctl, own.client, own.tsg, &handle, RM_CLASS_CHANNEL, &p,
				   sizeof(p));
	}
	tap_status(failed, 0, "a hundred more, which have nothing to do");
	tap_status(rm_tenant_schedule(&own), 0, "its TSG");
	rm_push(&c, 5000000000, 0);
	rm_ring(&own, &c);
	sleep_ns(20000000);
	start = now_ns();
	rm_tenant_close(&own, &c);
	took = now_ns() - start;
	printf("# closing took %llu us\n", (unsigned long long)took / 1000);
	tap(took < 4500000000, "is closed before it ends");
	tap_status(rm_tenant_open(&own, 0), 0, "another tenant opens meanwhile");
	tap_status(rm_channel_create(&own, &c), 0, "makes a channel");
	tap_status(rm_tenant_schedule(&own), 0, "schedules it");
	i = rm_push(&c, 1000, 2);
	rm_ring(&own, &c);
	tap(rm_wait(&c, i, 30000000000), "and runs when the card is free");
	rm_tenant_close(&own, &c);
}

/* More and shorter kernels than the model can follow: the machine must stay usable. */
static void storm(void)
{
	const uint32_t entries = 65536;
	const uint64_t kernel_at = 4096 + entries * 8;
	struct rm_channel_params p = { .gpfifo_entries = entries };
	struct rm_token_params token = { 0 };
	struct rm_tenant own;
	struct rm_channel c = { .entries = entries }, other_channel;
	struct rm_tenant other;
	volatile uint32_t *entry, *userd;
	uint64_t end;
	uint32_t i;

	tap_status(rm_tenant_open(&own, 0), 0, "a tenant with a ring of 65,536");
	tap_status(rm_buffer_create(&own, kernel_at + 4096, &c.memory), 0, "its memory");
	p.gpfifo_va = c.memory.va + 4096;
	p.userd_memory[0] = c.memory.handle;
	tap_status(rm_alloc(own.ctl, own.client, own.tsg, &c.handle, RM_CLASS_CHANNEL, &p,
			    sizeof(p)), 0, "its channel");
	rm_control(own.ctl, own.client, c.handle, RM_CTRL_CHANNEL_GET_TOKEN, &token, sizeof(token));
	c.token = token.token;
	tap_status(rm_tenant_schedule(&own), 0, "its TSG");
	*(struct sim_kernel *)((char *)c.memory.cpu + kernel_at) = (struct sim_kernel){
		.preemption = 2, .semaphore_va = c.memory.va + kernel_at + 64, .payload = 1 };
	entry = (volatile uint32_t *)((char *)c.memory.cpu + 4096);
	for (i = 0; i < entries; i++) {
		entry[2 * i] = (uint32_t)(c.memory.va + kernel_at);
		entry[2 * i + 1] = (uint32_t)((c.memory.va + kernel_at) >> 32) | 8u << 10 | 1u << 31;
	}
	userd = c.memory.cpu;
	end = now_ns() + 1000000000;
	while (now_ns() < end) {
		userd[0x8c / 4] = (userd[0x88 / 4] + entries - 1) % entries;
		rm_ring(&own, &c);
	}
	tap(true, "1 s of the shortest kernels");
	tap_status(rm_tenant_open(&other, 0), 0, "another tenant opens meanwhile");
	tap_status(rm_channel_create(&other, &other_channel), 0, "makes a channel");
	tap_status(rm_tenant_schedule(&other), 0, "schedules it");
	i = rm_push(&other_channel, 1000, 2);
	rm_ring(&other, &other_channel);
	tap(rm_wait(&other_channel, i, 30000000000), "and gets its turn");
	rm_tenant_close(&other, &other_channel);
	rm_tenant_close(&own, &c);
}

int main(void)
{
	printf("# seed 1\n");
	srand(1);
	bad_work();
	free_in_any_order();
	racing_threads();
	killed_in_the_middle();
	uncuttable();
	storm();
	return tap_failed;
}
