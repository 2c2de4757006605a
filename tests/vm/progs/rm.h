/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rm.h - the driver's calls as a tenant makes them, for the test programs: thin wrappers that
 * return the status, and one ready-made tenant with a TSG, a channel and a doorbell page.
 */
#ifndef TESTS_VM_RM_H
#define TESTS_VM_RM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "rm_abi.h"

#define RM_HANDLE_FIRST 0x5c000001u /* as libcuda numbers its objects */
#define RM_IOCTL_FAILED 0xdead0000u /* | errno: the ioctl itself failed */

/* A simulated kernel and what it leaves behind (kmod/sim/chip/chip.h). */
struct sim_kernel {
	uint64_t duration_ns;
	uint32_t preemption; /* 0 WFI, 1 CTA, 2 CILP */
	uint32_t flags;
	uint64_t semaphore_va;
	uint64_t payload;
};

struct sim_completion {
	uint64_t payload, time_ns;
};

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void sleep_ns(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u) };

	nanosleep(&t, NULL);
}

static inline uint32_t rm_call(int fd, uint32_t nr, void *data, size_t bytes)
{
	unsigned long cmd = _IOC(_IOC_READ | _IOC_WRITE, 'F', nr, bytes);

	return ioctl(fd, cmd, data) ? RM_IOCTL_FAILED | (uint32_t)errno : 0;
}

static inline uint32_t rm_alloc(int fd, uint32_t client, uint32_t parent, uint32_t *object,
				uint32_t klass, void *params, uint32_t bytes)
{
	struct rm_alloc call = { .client = client, .parent = parent, .object = *object,
				 .klass = klass, .params = (uintptr_t)params,
				 .params_bytes = bytes };
	uint32_t failed = rm_call(fd, RM_NR_ALLOC, &call, sizeof(call));

	if (failed)
		return failed;
	*object = call.object;
	return call.status;
}

static inline uint32_t rm_free(int fd, uint32_t client, uint32_t object)
{
	struct rm_free call = { .client = client, .object = object };
	uint32_t failed = rm_call(fd, RM_NR_FREE, &call, sizeof(call));

	return failed ? failed : call.status;
}

static inline uint32_t rm_control(int fd, uint32_t client, uint32_t object, uint32_t cmd,
				  void *params, uint32_t bytes)
{
	struct rm_control call = { .client = client, .object = object, .cmd = cmd,
				   .params = (uintptr_t)params, .params_bytes = bytes };
	uint32_t failed = rm_call(fd, RM_NR_CONTROL, &call, sizeof(call));

	return failed ? failed : call.status;
}

static inline uint32_t rm_map(int fd, uint32_t client, uint32_t device, uint32_t memory,
			      uint64_t bytes, int map_fd)
{
	struct rm_map_memory call = { .client = client, .device = device, .memory = memory,
				      .length = bytes, .fd = map_fd };
	uint32_t failed = rm_call(fd, RM_NR_MAP_MEMORY, &call, sizeof(call));

	return failed ? failed : call.status;
}

static inline uint32_t rm_map_dma(int fd, uint32_t client, uint32_t device, uint32_t dma,
				  uint32_t memory, uint64_t bytes, uint32_t flags, uint64_t *va)
{
	struct rm_map_dma call = { .client = client, .device = device, .dma = dma,
				   .memory = memory, .length = bytes, .flags = flags, .va = *va };
	uint32_t failed = rm_call(fd, RM_NR_MAP_DMA, &call, sizeof(call));

	if (failed)
		return failed;
	*va = call.va;
	return call.status;
}

static inline uint32_t rm_unmap_dma(int fd, uint32_t client, uint32_t device, uint32_t dma,
				    uint64_t va, uint64_t bytes)
{
	struct rm_unmap_dma call = { .client = client, .device = device, .dma = dma, .va = va,
				     .bytes = bytes };
	uint32_t failed = rm_call(fd, RM_NR_UNMAP_DMA, &call, sizeof(call));

	return failed ? failed : call.status;
}

/* System memory with its CPU and GPU addresses. */
struct rm_buffer {
	uint32_t handle;
	int fd;
	void *cpu;
	uint64_t va, bytes;
};

/* A tenant: a client with everything up to one TSG; channels are added. */
struct rm_tenant {
	int ctl, card, bell_fd;
	uint32_t client, device, subdevice, vaspace, virtual, usermode, tsg;
	uint32_t objects; /* numbered so far */
	volatile uint32_t *bell;
};

static inline uint32_t rm_next_handle(struct rm_tenant *t)
{
	return RM_HANDLE_FIRST + __atomic_add_fetch(&t->objects, 1, __ATOMIC_RELAXED);
}

struct rm_channel {
	struct rm_buffer memory; /* page 0 USERD, page 1 GPFIFO, then kernels and completions */
	uint32_t handle, token, entries, put;
};

#define RM_TRY(what)                                                                             \
	do {                                                                                     \
		uint32_t status_ = (what);                                                       \
		if (status_) {                                                                   \
			fprintf(stderr, "%s: status %#x\n", #what, status_);                     \
			return status_;                                                          \
		}                                                                                \
	} while (0)

static inline void rm_init_memory_params(struct rm_memory_params *p, uint64_t bytes)
{
	memset(p, 0, sizeof(*p));
	p->attr = RM_ATTR_LOCATION_PCI << RM_ATTR_LOCATION_SHIFT;
	p->bytes = bytes;
}

static inline uint32_t rm_buffer_create(struct rm_tenant *t, uint64_t bytes, struct rm_buffer *b)
{
	struct rm_memory_params p;

	memset(b, 0, sizeof(*b));
	b->handle = rm_next_handle(t);
	rm_init_memory_params(&p, bytes);
	RM_TRY(rm_alloc(t->ctl, t->client, t->device, &b->handle, RM_CLASS_MEMORY_SYSTEM, &p,
			sizeof(p)));
	b->bytes = p.bytes;
	b->fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
	if (b->fd < 0)
		return RM_IOCTL_FAILED | (uint32_t)errno;
	RM_TRY(rm_map(t->ctl, t->client, t->device, b->handle, b->bytes, b->fd));
	b->cpu = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	if (b->cpu == MAP_FAILED)
		return RM_IOCTL_FAILED | (uint32_t)errno;
	RM_TRY(rm_map_dma(t->ctl, t->client, t->device, t->virtual, b->handle, b->bytes, 0,
			  &b->va));
	return 0;
}

/* Open a doorbell page of its own on this client. */
static inline uint32_t rm_bell_open(struct rm_tenant *t, int card, int *fd,
				    volatile uint32_t **page)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/nvidia%d", card);
	*fd = open(path, O_RDWR | O_CLOEXEC);
	if (*fd < 0)
		return RM_IOCTL_FAILED | (uint32_t)errno;
	RM_TRY(rm_map(t->ctl, t->client, t->subdevice, t->usermode, RM_USERMODE_BYTES, *fd));
	*page = mmap(NULL, RM_USERMODE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	return *page == MAP_FAILED ? RM_IOCTL_FAILED | (uint32_t)errno : 0;
}

/* A client with device, subdevice and a doorbell page, and nothing else. */
static inline uint32_t rm_client_open(struct rm_tenant *t, int card)
{
	struct rm_device_params device = { .device_id = (uint32_t)card };
	struct rm_subdevice_params subdevice = { 0 };
	struct rm_register_fd link;
	char path[32];

	memset(t, 0, sizeof(*t));
	snprintf(path, sizeof(path), "/dev/nvidia%d", card);
	t->ctl = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
	t->card = open(path, O_RDWR | O_CLOEXEC);
	if (t->ctl < 0 || t->card < 0)
		return RM_IOCTL_FAILED | (uint32_t)errno;
	link.ctl_fd = t->ctl;
	t->device = rm_next_handle(t);
	t->subdevice = rm_next_handle(t);
	t->usermode = rm_next_handle(t);
	RM_TRY(rm_call(t->card, RM_NR_REGISTER_FD, &link, sizeof(link)));
	RM_TRY(rm_alloc(t->ctl, 0, 0, &t->client, RM_CLASS_ROOT_CLIENT, NULL, 0));
	RM_TRY(rm_alloc(t->ctl, t->client, t->client, &t->device, RM_CLASS_DEVICE, &device,
			sizeof(device)));
	RM_TRY(rm_alloc(t->ctl, t->client, t->device, &t->subdevice, RM_CLASS_SUBDEVICE,
			&subdevice, sizeof(subdevice)));
	RM_TRY(rm_alloc(t->ctl, t->client, t->subdevice, &t->usermode, RM_CLASS_USERMODE, NULL,
			0));
	return rm_bell_open(t, card, &t->bell_fd, &t->bell);
}

static inline uint32_t rm_tenant_open(struct rm_tenant *t, int card)
{
	struct rm_vaspace_params vaspace = { 0 };
	struct rm_virtual_params virtual = { 0 };
	struct rm_tsg_params tsg = { .engine_type = RM_ENGINE_GRAPHICS };

	RM_TRY(rm_client_open(t, card));
	t->vaspace = rm_next_handle(t);
	t->virtual = rm_next_handle(t);
	t->tsg = rm_next_handle(t);
	RM_TRY(rm_alloc(t->ctl, t->client, t->device, &t->vaspace, RM_CLASS_VASPACE, &vaspace,
			sizeof(vaspace)));
	virtual.vaspace = t->vaspace;
	RM_TRY(rm_alloc(t->ctl, t->client, t->device, &t->virtual, RM_CLASS_MEMORY_VIRTUAL,
			&virtual, sizeof(virtual)));
	tsg.vaspace = t->vaspace;
	return rm_alloc(t->ctl, t->client, t->device, &t->tsg, RM_CLASS_TSG, &tsg, sizeof(tsg));
}

static inline uint32_t rm_channel_create(struct rm_tenant *t, struct rm_channel *c)
{
	struct rm_channel_params p = { .engine_type = RM_ENGINE_GRAPHICS };
	struct rm_token_params token = { 0 };

	memset(c, 0, sizeof(*c));
	c->entries = 64;
	c->handle = rm_next_handle(t);
	RM_TRY(rm_buffer_create(t, 16384, &c->memory));
	p.gpfifo_va = c->memory.va + 4096;
	p.gpfifo_entries = c->entries;
	p.userd_memory[0] = c->memory.handle;
	RM_TRY(rm_alloc(t->ctl, t->client, t->tsg, &c->handle, RM_CLASS_CHANNEL, &p, sizeof(p)));
	RM_TRY(rm_control(t->ctl, t->client, c->handle, RM_CTRL_CHANNEL_GET_TOKEN, &token,
			  sizeof(token)));
	c->token = token.token;
	return 0;
}

static inline uint32_t rm_tenant_schedule(struct rm_tenant *t)
{
	struct rm_schedule_params p = { .enable = 1 };

	return rm_control(t->ctl, t->client, t->tsg, RM_CTRL_TSG_SCHEDULE, &p, sizeof(p));
}

/* Give back everything of a tenant with one channel. */
static inline void rm_tenant_close(struct rm_tenant *t, struct rm_channel *c)
{
	close(t->ctl);
	close(t->card);
	close(t->bell_fd);
	close(c->memory.fd);
	munmap((void *)t->bell, RM_USERMODE_BYTES);
	munmap(c->memory.cpu, c->memory.bytes);
}

/* Slot @i of the channel's ring: its kernel, and where its completion goes. */
static inline struct sim_kernel *rm_kernel(struct rm_channel *c, uint32_t i)
{
	return (struct sim_kernel *)((char *)c->memory.cpu + 8192) + i % c->entries;
}

static inline volatile struct sim_completion *rm_completion(struct rm_channel *c, uint32_t i)
{
	return (volatile struct sim_completion *)((char *)c->memory.cpu + 12288) + i % c->entries;
}

/* Put one kernel into the ring, without a doorbell. Return: its number. */
static inline uint32_t rm_push(struct rm_channel *c, uint64_t duration_ns, uint32_t preemption)
{
	uint32_t i = c->put++, slot = i % c->entries;
	volatile uint32_t *entry = (volatile uint32_t *)((char *)c->memory.cpu + 4096) + 2 * slot;
	volatile uint32_t *gp_put = (volatile uint32_t *)((char *)c->memory.cpu + 0x8c);
	uint64_t va = c->memory.va + 8192 + slot * sizeof(struct sim_kernel);

	*rm_kernel(c, i) = (struct sim_kernel){
		.duration_ns = duration_ns,
		.preemption = preemption,
		.semaphore_va = c->memory.va + 12288 + slot * sizeof(struct sim_completion),
		.payload = i + 1,
	};
	entry[0] = (uint32_t)va;
	entry[1] = (uint32_t)(va >> 32) | 8u << 10 | 1u << 31;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*gp_put = c->put % c->entries;
	return i;
}

static inline void rm_ring(struct rm_tenant *t, struct rm_channel *c)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	t->bell[RM_USERMODE_DOORBELL / 4] = c->token;
}

/* Wait for kernel number @i. Return: it completed in time. */
static inline bool rm_wait(struct rm_channel *c, uint32_t i, uint64_t timeout_ns)
{
	uint64_t deadline = now_ns() + timeout_ns;

	while (rm_completion(c, i)->payload != (uint64_t)i + 1) {
		if (now_ns() > deadline)
			return false;
		sleep_ns(50000);
	}
	return true;
}

/* TAP. */
static int tap_count, tap_failed;

static inline void tap(bool good, const char *name)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++tap_count, name);
	fflush(stdout);
	tap_failed |= !good;
}

static inline void tap_status(uint32_t got, uint32_t wanted, const char *name)
{
	if (got != wanted)
		printf("# got %#x, wanted %#x\n", got, wanted);
	tap(got == wanted, name);
}

#endif
