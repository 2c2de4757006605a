// SPDX-License-Identifier: GPL-2.0
/*
 * doorbell.c - the doorbell page as a tenant meets it: every ring is noticed, whoever did what
 * with the page before. Prints TAP lines (no plan) and exits with their verdict. A ring is noticed
 * when the kernel that was pushed before it completes.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include <linux/mman.h>

#include "rm.h"

#define SECOND 1000000000ull
#define PATIENCE (20 * SECOND) /* what is lost never comes; a busy machine may be late */

static struct rm_tenant tenant;
static struct rm_channel channel;
static volatile int stop;

static bool push_ring_wait(void)
{
	uint32_t i = rm_push(&channel, 1000, 2);

	rm_ring(&tenant, &channel);
	return rm_wait(&channel, i, PATIENCE);
}

static void rings_one_by_one(void)
{
	int lost = 0, i;

	for (i = 0; i < 300; i++)
		lost += !push_ring_wait();
	tap(!lost, "each of 300 rings is noticed");
}

static void read_first(void)
{
	volatile uint32_t *page;
	uint32_t before, i;
	uint64_t end;
	int fd;

	tap_status(rm_bell_open(&tenant, 0, &fd, &page), 0, "a second page on a file of its own");
	before = page[RM_USERMODE_TIME_0 / 4];
	tap(page[RM_USERMODE_DOORBELL / 4] == 0, "the doorbell word reads 0");
	i = rm_push(&channel, 1000, 2);
	page[RM_USERMODE_DOORBELL / 4] = channel.token;
	tap(rm_wait(&channel, i, PATIENCE), "read first, then ring");
	/* A pass that came before the store was retried rings too; the store's own comes later. */
	for (end = now_ns() + PATIENCE; page[RM_USERMODE_DOORBELL / 4] && now_ns() < end;)
		sleep_ns(100000);
	tap(page[RM_USERMODE_DOORBELL / 4] == 0, "the doorbell word reads 0 after a ring");
	tap(page[RM_USERMODE_TIME_0 / 4] != before, "the page's clock went on");
	munmap((void *)page, RM_USERMODE_BYTES);
	close(fd);
	tap(push_ring_wait(), "the first page rings after the second is gone");
}

static void *store_forever(void *count)
{
	while (!stop) {
		tenant.bell[RM_USERMODE_DOORBELL / 4] = channel.token;
		++*(uint64_t *)count;
	}
	return NULL;
}

static void *read_forever(void *count)
{
	while (!stop) {
		(void)tenant.bell[RM_USERMODE_TIME_0 / 4];
		++*(uint64_t *)count;
	}
	return NULL;
}

static bool all_went_on(const volatile uint64_t *counts, int n)
{
	bool all = true;

	while (n--)
		all &= counts[n] > 10;
	return all;
}

static void two_threads(void)
{
	uint64_t counts[3] = { 0 }, end;
	pthread_t threads[3];
	int i;

	stop = 0;
	pthread_create(&threads[0], NULL, store_forever, &counts[0]);
	pthread_create(&threads[1], NULL, store_forever, &counts[1]);
	pthread_create(&threads[2], NULL, read_forever, &counts[2]);
	sleep_ns(SECOND);
	for (end = now_ns() + PATIENCE; now_ns() < end && !all_went_on(counts, 3);)
		sleep_ns(SECOND / 10);
	stop = 1;
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("# stores %llu and %llu, reads %llu\n", (unsigned long long)counts[0],
	       (unsigned long long)counts[1], (unsigned long long)counts[2]);
	tap(all_went_on(counts, 3), "two storing threads and a reader");
	tap(push_ring_wait(), "a ring after the storm is noticed");
}

static void rings_among_readers(void)
{
	uint64_t counts[2] = { 0 };
	pthread_t threads[2];
	int lost = 0, i;

	stop = 0;
	for (i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, read_forever, &counts[i]);
	for (i = 0; i < 200; i++)
		lost += !push_ring_wait();
	stop = 1;
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	tap(!lost, "no ring is lost among readers of the page");
}

static bool rings_through(volatile uint32_t *page)
{
	uint32_t i = rm_push(&channel, 1000, 2);

	page[RM_USERMODE_DOORBELL / 4] = channel.token;
	return rm_wait(&channel, i, PATIENCE);
}

static bool dies_of_bus_error(const volatile uint32_t *where)
{
	pid_t child = fork();
	int status;

	if (!child) {
		(void)*where;
		_exit(0);
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS;
}

/* What a tenant may do to the mapping itself, each between a store and the pass that sees it. */
static void mapping_changes(void)
{
	volatile uint32_t *page;
	void *place, *moved;
	int fd, i, lost = 0;

	tap_status(rm_bell_open(&tenant, 0, &fd, &page), 0, "a page to play with");
	for (i = 0; i < 50; i++) {
		place = mmap(NULL, RM_USERMODE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		page[RM_USERMODE_DOORBELL / 4] = channel.token;
		moved = mremap((void *)page, RM_USERMODE_BYTES, RM_USERMODE_BYTES,
			       MREMAP_MAYMOVE | MREMAP_FIXED, place);
		if (moved == MAP_FAILED)
			break;
		page = moved;
		lost += !rings_through(page);
	}
	tap(i == 50 && !lost, "it rings wherever it is moved to");
	tap(dies_of_bus_error(page + 4096 / 4), "there is nothing behind the first 4 KiB");
	for (i = 0, lost = 0; i < 50; i++) {
		page[RM_USERMODE_DOORBELL / 4] = channel.token;
		mprotect((void *)page, 4096, PROT_READ);
		mprotect((void *)page, 4096, PROT_READ | PROT_WRITE);
		lost += !rings_through(page);
		page[RM_USERMODE_DOORBELL / 4] = channel.token;
		madvise((void *)page, 4096, MADV_DONTNEED);
		lost += !rings_through(page);
	}
	tap(!lost, "it rings after it was read-only or dropped");
	munmap((char *)page + 4096, RM_USERMODE_BYTES - 4096);
	tap(rings_through(page), "it rings when only its first 4 KiB are left");
	close(fd);
	tap(rings_through(page), "and when its file is closed");
	munmap((void *)page, 4096);
}

static void fork_rings(void)
{
	uint32_t i = rm_push(&channel, 1000, 2);
	pid_t child = fork();

	if (!child) {
		rm_ring(&tenant, &channel);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	tap(rm_wait(&channel, i, PATIENCE), "a child rings through the inherited page");
	tap(push_ring_wait(), "its parent rings afterwards");
}

static void kill_while_writable(void)
{
	int i, status, killed = 0;

	for (i = 0; i < 30; i++) {
		pid_t child = fork();

		if (!child) {
			struct rm_tenant own;
			struct rm_channel c;

			if (rm_tenant_open(&own, 0) || rm_channel_create(&own, &c) ||
			    rm_tenant_schedule(&own))
				_exit(1);
			for (;;) {
				if (c.put < 60)
					rm_push(&c, 100000, 2);
				rm_ring(&own, &c);
			}
		}
		sleep_ns(3000000 + (uint64_t)i * 700000);
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		killed += WIFSIGNALED(status);
	}
	tap(killed == 30, "kill -9 while the page is writable");
	tap(push_ring_wait(), "another tenant rings afterwards");
}

static void refusals(void)
{
	tap(mmap(NULL, RM_USERMODE_BYTES, PROT_READ, MAP_PRIVATE, tenant.bell_fd, 0) == MAP_FAILED,
	    "a private mapping is refused");
	tap(mmap(NULL, RM_USERMODE_BYTES, PROT_READ, MAP_SHARED, tenant.bell_fd, 4096) == MAP_FAILED,
	    "an offset is refused");
	tap(mmap(NULL, 4096, PROT_READ, MAP_SHARED, tenant.bell_fd, 0) == MAP_FAILED &&
		    errno == ENXIO,
	    "another length is refused");
	tap(mremap((void *)tenant.bell, RM_USERMODE_BYTES, 2 * RM_USERMODE_BYTES,
		   MREMAP_MAYMOVE) == MAP_FAILED,
	    "the mapping can't grow");
}

int main(void)
{
	tap_status(rm_tenant_open(&tenant, 0), 0, "a tenant opens the card");
	tap_status(rm_channel_create(&tenant, &channel), 0, "it makes a channel");
	tap_status(rm_tenant_schedule(&tenant), 0, "it schedules its TSG");
	if (tap_failed)
		return 1;
	tap(push_ring_wait(), "ring first: no read before it");
	rings_one_by_one();
	read_first();
	two_threads();
	rings_among_readers();
	mapping_changes();
	fork_rings();
	kill_while_writable();
	refusals();
	return tap_failed;
}
