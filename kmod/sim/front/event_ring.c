// SPDX-License-Identifier: GPL-2.0
/*
 * event_ring.c - see event_ring.h. Used by trace.c under its lock, and by the unit tests.
 */
#include "event_ring.h"

#define TIME_STEP_NS 32u
#define NO_INSTANCE 0xffu

void event_ring_init(struct event_ring *ring, u32 slots)
{
	*ring = (struct event_ring){ .slots = slots };
}

static bool may_see(const struct event_reader *reader, const struct event_switch *what)
{
	return reader->privileged || reader->uid == what->uid;
}

bool event_ring_wants(struct event_ring *ring, const struct event_reader *reader,
		      const struct event_switch *what)
{
	if (!ring->enabled)
		return false;
	if (!reader->all_users && reader->uid != what->uid)
		return false;
	if (what->on)
		ring->started = true;
	return ring->started;
}

int event_ring_put(struct event_ring *ring)
{
	u32 slot = ring->put;

	if (!event_ring_room(ring)) {
		ring->dropped++;
		return -ENOSPC;
	}
	ring->put = slot + 1 < ring->slots ? slot + 1 : 0;
	return (int)slot;
}

int event_ring_set_get(struct event_ring *ring, u32 get)
{
	if (get >= ring->slots)
		return -EINVAL;
	ring->get = get;
	return 0;
}

u32 event_ring_room(const struct event_ring *ring)
{
	u32 used = ring->put >= ring->get ? ring->put - ring->get :
					    ring->put + (ring->slots - ring->get);

	return ring->slots - 1 - used;
}

void event_record_fill(struct rm_trace_record *record, const struct event_reader *reader,
		       const struct event_switch *what, u32 pid, u32 noise_ns)
{
	bool seen = may_see(reader, what);
	u64 time_ns = seen ? what->time_ns : what->time_ns - noise_ns;

	*record = (struct rm_trace_record){
		.type = RM_TRACE_RECORD_TYPE,
		.tag = what->on ? RM_TRACE_START : RM_TRACE_END,
		.seq = what->seq,
		.context = seen ? what->context : EVENT_CONTEXT_HIDDEN,
		.pid = seen ? pid : EVENT_PID_HIDDEN,
		.gpu_instance = NO_INSTANCE,
		.compute_instance = NO_INSTANCE,
		.time_ns = time_ns - time_ns % TIME_STEP_NS,
	};
}

void event_header_fill(struct rm_event_header *header, const struct event_ring *ring)
{
	header->get = ring->get;
	header->dropped = ring->dropped;
	/* Last: a reader that sees the new put sees the records before it. */
	__atomic_store_n(&header->put, ring->put, __ATOMIC_RELEASE);
}
