/* SPDX-License-Identifier: GPL-2.0 */
/*
 * trace.h - the context-switch trace of one card: every switch of the graphics engine, handed to
 * those who bound an event buffer, 30 times a second or when one of them flushes.
 *
 * The card tells of a switch: it goes into a ring, with who the TSG is at that moment. The ring is
 * emptied under @lock into each reader's buffer. Of a card that tells nothing there is no trace.
 */
#ifndef SIM_FRONT_TRACE_H
#define SIM_FRONT_TRACE_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "event_ring.h"
#include "sim/card.h"

#define TRACE_RING 4096u /* switches between two looks; at 8,000 a second half a second */

struct front_client;
struct front_object;
struct front_tsg;

/* Who a TSG id is. pid 0: nobody. */
struct front_holder {
	u32 context, pid, uid;
};

/**
 * struct front_trace - see above
 * @ring_lock: the four below; a leaf, taken under the card's own lock too
 * @holders: by TSG id
 * @ring, @head, @tail: switches not handed over yet; @head is written next
 * @seq: number of the next switch
 * @lock: everything below
 * @batch: what was taken out of the ring
 * @readers: bound buffers
 * @reader_count: its length
 * @feeder: the 30 Hz timer; runs while there are readers
 */
struct front_trace {
	spinlock_t ring_lock;
	struct front_holder holders[CHIP_TSGS];
	struct event_switch ring[TRACE_RING];
	u32 head, tail;
	u16 seq;

	struct mutex lock;
	struct event_switch batch[TRACE_RING];
	struct list_head readers;
	u32 reader_count;
	struct delayed_work feeder;
};

struct front_host;

void front_trace_init(struct front_host *host);
/* No reader is left. */
void front_trace_fini(struct front_host *host);
/* From here on the TSG's id stands for it; after the second for nobody. Caller holds host->mutex.
 */
void front_trace_name_locked(struct front_tsg *tsg);
void front_trace_forget_locked(struct front_tsg *tsg);
/* Hand over now. */
void front_trace_flush(struct front_host *host);

/* Bind @client's buffer to the card of @subdevice; a status code. Under client->lock. */
u32 front_trace_bind(struct front_object *subdevice, const struct rm_bind_trace_params *params);

/* Controls of class 0x90cd; a status code. Under client->lock. */
u32 front_events_enable(struct front_object *object, const struct rm_events_enable_params *params);
u32 front_events_update_get(struct front_object *object, const struct rm_events_get_params *params);

#endif
