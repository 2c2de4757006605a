/* SPDX-License-Identifier: GPL-2.0 */
/*
 * event_ring.h - one reader of the context-switch trace: which slot of its buffer the next record
 * goes to, what it may see, and what is dropped. Portable; no lock, no memory of its own.
 *
 * The reader maps header and records read-only and says by a control how far it has read, so
 * nothing here is believed that a tenant can write. Full is when one slot is left, as in every
 * ring whose empty state is get == put.
 */
#ifndef SIM_FRONT_EVENT_RING_H
#define SIM_FRONT_EVENT_RING_H

#include "qgpu_env.h"
#include "rm_abi.h"

#define EVENT_PID_HIDDEN 0u
#define EVENT_CONTEXT_HIDDEN 0u

/**
 * struct event_switch - one switch as the card saw it
 * @time_ns: the GPU's timer
 * @context: number of the TSG, never used twice on this card (its low 32 bits)
 * @pid: its process in the first pid namespace, 0 = unknown
 * @uid: effective user of its process
 * @seq: counts all switches of the card
 * @on: restored and starts; else: saved
 */
struct event_switch {
	u64 time_ns;
	u32 context;
	u32 pid;
	u32 uid;
	u16 seq;
	bool on;
};

/**
 * struct event_reader - who reads
 * @privileged: had CAP_SYS_ADMIN when it bound; sees everybody
 * @all_users: asked for other users' switches too
 * @uid: its own user
 */
struct event_reader {
	bool privileged;
	bool all_users;
	u32 uid;
};

/**
 * struct event_ring - see above
 * @slots: records that fit, at least 2
 * @get, @put: slots; @put is written next
 * @dropped: records for which there was no room
 * @enabled: records are kept
 * @started: a first START was seen: who was on the engine before is not told
 */
struct event_ring {
	u32 slots, get, put;
	u64 dropped;
	bool enabled, started;
};

void event_ring_init(struct event_ring *ring, u32 slots);

/**
 * event_ring_wants() - shall this reader get this switch at all
 */
bool event_ring_wants(struct event_ring *ring, const struct event_reader *reader,
		      const struct event_switch *what);

/**
 * event_ring_put() - room for one record
 * Return: its slot, or -ENOSPC: counted as dropped.
 */
int event_ring_put(struct event_ring *ring);

/**
 * event_ring_set_get() - the reader has read everything before slot @get
 * Return: 0, or -EINVAL: there is no such slot. A slot that holds nothing is believed, it only
 * harms the reader itself.
 */
int event_ring_set_get(struct event_ring *ring, u32 get);

/**
 * event_ring_room() - records that still fit
 */
u32 event_ring_room(const struct event_ring *ring);

/**
 * event_record_fill() - what @reader sees of @what
 * @pid: the process in the reader's pid namespace, 0 = not visible there
 * @noise_ns: how far the time is put back for a reader that may not see this user
 */
void event_record_fill(struct rm_trace_record *record, const struct event_reader *reader,
		       const struct event_switch *what, u32 pid, u32 noise_ns);

/**
 * event_header_fill() - what the reader sees of the ring
 */
void event_header_fill(struct rm_event_header *header, const struct event_ring *ring);

#endif
