/* SPDX-License-Identifier: GPL-2.0 */
/*
 * event_buffer.h - event buffers (class 0x90cd) and the events that wake their readers.
 */
#ifndef SIM_FRONT_EVENT_BUFFER_H
#define SIM_FRONT_EVENT_BUFFER_H

#include "event_ring.h"
#include "front.h"

struct pid_namespace;

/**
 * struct front_event_buffer - a ring of records in memory that its reader maps
 * @node: [trace->lock] in trace->readers; empty: not bound
 * @ring, @reader: [trace->lock]
 * @fed: [trace->lock] records were put in since the last look
 * @header, @records: references, set once
 * @pid_ns: the reader's; a reference, set once
 * @client, @notify_fd: name of the event to wake, fd 0: none; set once
 * @threshold: wake while no more than this many records fit; set once
 */
struct front_event_buffer {
	struct list_head node;
	struct event_ring ring;
	struct event_reader reader;
	bool fed;
	struct front_memory *header, *records;
	struct pid_namespace *pid_ns;
	u32 client;
	u64 notify_fd;
	u32 threshold;
};

/* Where record @slot is. */
struct rm_trace_record *front_event_buffer_slot(const struct front_event_buffer *buffer, u32 slot);
/* Show the reader what is in it, and wake it if there is reason to. Caller holds trace->lock. */
void front_event_buffer_publish(struct front_event_buffer *buffer);

/* trace.c: no record comes after this. */
void front_trace_unbind(struct front_host *host, struct front_event_buffer *buffer);

/* ---- os_event.c: calls 206 and 207, and poll() ---- */

#define FRONT_MAX_OS_EVENTS 16

u32 front_os_event_create(struct front_file *file, u32 client, s32 fd);
u32 front_os_event_destroy(struct front_file *file, u32 client, s32 fd);
void front_os_event_destroy_all(struct front_file *file);
void front_os_event_wake(u32 client, u64 fd);

extern const struct front_class front_class_event_buffer, front_class_deviceless;

#endif
