/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rm_exec.h - the driver's calls as an executor makes them: a client of its own, another process's
 * objects through a duplicate of its file, and the context-switch trace.
 */
#ifndef TESTS_VM_RM_EXEC_H
#define TESTS_VM_RM_EXEC_H

#include <poll.h>
#include <sys/syscall.h>

#include "rm.h"

#define EXEC_CHANNELS_MAX 8
#define EXEC_OBJECTS 0x100u

/* Another process as the executor knows it. */
struct exec_target {
	int fd; /* a duplicate of its control file */
	uint32_t client, subdevice, tsg, tsg_id;
	uint32_t channels[EXEC_CHANNELS_MAX], tokens[EXEC_CHANNELS_MAX], count;
};

/* A trace that is bound. */
struct exec_trace {
	int event_fd;
	uint32_t buffer, slots, get;
	const volatile struct rm_event_header *header;
	const struct rm_trace_record *records;
	int header_fd, records_fd;
};

static inline void exec_close(struct rm_tenant *t)
{
	munmap((void *)t->bell, RM_USERMODE_BYTES);
	close(t->bell_fd);
	close(t->card);
	close(t->ctl);
}

/* A duplicate of @pid's first open control file. */
static inline int exec_duplicate(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), fd, found = -1;
	char path[64], name[64];
	ssize_t bytes;

	if (pidfd < 0)
		return -1;
	for (fd = 0; fd < 64 && found < 0; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		bytes = readlink(path, name, sizeof(name) - 1);
		if (bytes <= 0)
			continue;
		name[bytes] = '\0';
		if (!strcmp(name, "/dev/nvidiactl"))
			found = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	}
	close(pidfd);
	return found;
}

static inline uint32_t exec_probe_client(int fd, uint32_t client)
{
	struct rm_features_params features;

	return rm_control(fd, client, client, RM_CTRL_GET_FEATURES, &features, sizeof(features));
}

/* The client behind @fd: down from @from. Return: 0 if there is none. */
static inline uint32_t exec_find_client(int fd, uint32_t from)
{
	for (; from >= RM_CLIENT_HANDLE_BASE; from--) {
		if (!exec_probe_client(fd, from))
			return from;
	}
	return 0;
}

static inline void exec_scan(struct exec_target *t)
{
	struct rm_tsg_info_params info;
	struct rm_token_params token;
	struct rm_gpu_id_params gpu;
	uint32_t i, handle;

	for (i = 0; i < EXEC_OBJECTS; i++) {
		handle = RM_HANDLE_FIRST + i;
		if (!rm_control(t->fd, t->client, handle, RM_CTRL_TSG_GET_INFO, &info,
				sizeof(info))) {
			t->tsg = handle;
			t->tsg_id = info.tsg_id;
		} else if (!rm_control(t->fd, t->client, handle, RM_CTRL_GPU_GET_ID, &gpu,
				       sizeof(gpu))) {
			t->subdevice = handle;
		} else if (t->count < EXEC_CHANNELS_MAX &&
			   !rm_control(t->fd, t->client, handle, RM_CTRL_CHANNEL_GET_TOKEN, &token,
				       sizeof(token))) {
			t->channels[t->count] = handle;
			t->tokens[t->count++] = token.token;
		}
	}
}

static inline bool exec_adopt(struct exec_target *t, pid_t pid, uint32_t from)
{
	memset(t, 0, sizeof(*t));
	t->fd = exec_duplicate(pid);
	if (t->fd < 0)
		return false;
	t->client = exec_find_client(t->fd, from);
	if (t->client)
		exec_scan(t);
	return t->client && t->tsg && t->subdevice && t->count;
}

static inline uint32_t exec_gate(const struct exec_target *t, bool disable, bool only)
{
	struct rm_disable_params p = { .disable = disable, .count = t->count,
				       .only_scheduling = only };
	uint32_t i;

	for (i = 0; i < t->count; i++) {
		p.clients[i] = t->client;
		p.channels[i] = t->channels[i];
	}
	return rm_control(t->fd, t->client, t->subdevice, RM_CTRL_DISABLE_CHANNELS, &p, sizeof(p));
}

static inline uint32_t exec_preempt(const struct exec_target *t)
{
	struct rm_preempt_params p = { .wait = 1, .manual_timeout = 1, .timeout_us = 1000000 };

	return rm_control(t->fd, t->client, t->tsg, RM_CTRL_TSG_PREEMPT, &p, sizeof(p));
}

static inline uint32_t exec_slice(const struct exec_target *t, uint64_t us)
{
	struct rm_timeslice_params p = { us };

	return rm_control(t->fd, t->client, t->tsg, RM_CTRL_TSG_SET_TIMESLICE, &p, sizeof(p));
}

static inline void exec_ring(struct rm_tenant *own, uint32_t token)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	own->bell[RM_USERMODE_DOORBELL / 4] = token;
}

static inline uint32_t exec_trace_memory(struct rm_tenant *t, uint64_t bytes, uint32_t *handle,
					 int *fd, const void **at)
{
	struct rm_memory_params p = { .attr = RM_ATTR_COHERENCY_WRITE_BACK << RM_ATTR_COHERENCY_SHIFT,
				      .attr2 = RM_ATTR2_USER_READ_ONLY, .bytes = bytes };
	struct rm_map_memory map = { .client = t->client, .device = t->client,
				     .flags = RM_MAP_READ_ONLY, .length = bytes };

	*handle = rm_next_handle(t);
	RM_TRY(rm_alloc(t->ctl, t->client, t->client, handle, RM_CLASS_MEMORY_DEVICELESS, &p,
			sizeof(p)));
	*fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
	map.memory = *handle;
	map.fd = *fd;
	RM_TRY(rm_call(t->ctl, RM_NR_MAP_MEMORY, &map, sizeof(map)));
	RM_TRY(map.status);
	*at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, *fd, 0);
	return *at == MAP_FAILED ? RM_IOCTL_FAILED | (uint32_t)errno : 0;
}

static inline uint32_t exec_trace_open(struct rm_tenant *t, uint32_t slots, struct exec_trace *trace)
{
	uint64_t bytes = (slots * sizeof(struct rm_trace_record) + 4095) & ~4095ull;
	struct rm_event_buffer_params p = { .record_bytes = sizeof(struct rm_trace_record),
					    .record_count = slots,
					    .records_free_threshold = slots };
	struct rm_bind_trace_params bind = { .record_bytes = sizeof(struct rm_trace_record),
					     .all_users = 1 };
	struct rm_events_enable_params on = { .enable = 1, .flags = RM_EVENTS_KEEP_OLDEST };
	struct rm_os_event event = { .client = t->client, .device = t->subdevice };
	const void *header, *records;

	memset(trace, 0, sizeof(*trace));
	trace->slots = slots;
	RM_TRY(exec_trace_memory(t, 4096, &p.header_memory, &trace->header_fd, &header));
	RM_TRY(exec_trace_memory(t, bytes, &p.record_memory, &trace->records_fd, &records));
	trace->header = header;
	trace->records = records;
	trace->event_fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
	event.fd = trace->event_fd;
	RM_TRY(rm_call(trace->event_fd, RM_NR_ALLOC_OS_EVENT, &event, sizeof(event)));
	RM_TRY(event.status);
	p.subdevice = t->subdevice;
	p.notification = (uint64_t)trace->event_fd;
	trace->buffer = rm_next_handle(t);
	RM_TRY(rm_alloc(t->ctl, t->client, t->client, &trace->buffer, RM_CLASS_EVENT_BUFFER, &p,
			sizeof(p)));
	bind.buffer = trace->buffer;
	RM_TRY(rm_control(t->ctl, t->client, t->subdevice, RM_CTRL_BIND_TRACE, &bind, sizeof(bind)));
	return rm_control(t->ctl, t->client, trace->buffer, RM_CTRL_EVENTS_ENABLE, &on, sizeof(on));
}

static inline uint32_t exec_trace_flush(struct rm_tenant *t, const struct exec_trace *trace)
{
	return rm_control(t->ctl, t->client, trace->buffer, RM_CTRL_EVENTS_FLUSH, NULL, 0);
}

/* Copy what is there into @out, at most @max. Return: how many. */
static inline uint32_t exec_trace_read(struct rm_tenant *t, struct exec_trace *trace,
				       struct rm_trace_record *out, uint32_t max)
{
	struct rm_events_get_params get = { 0 };
	uint32_t put = __atomic_load_n(&trace->header->put, __ATOMIC_ACQUIRE), count = 0;

	for (; trace->get != put && count < max; trace->get = (trace->get + 1) % trace->slots)
		out[count++] = trace->records[trace->get];
	get.get = trace->get;
	rm_control(t->ctl, t->client, trace->buffer, RM_CTRL_EVENTS_UPDATE_GET, &get, sizeof(get));
	return count;
}

#endif
