// SPDX-License-Identifier: GPL-2.0
/*
 * trace.c - see trace.h: from the chip's switches to the readers' buffers. Buffers themselves
 * (class 0x90cd) are in event_buffer.c.
 */
#include "trace.h"

#include <linux/cred.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/random.h>
#include <linux/sched.h>

#include "event_buffer.h"
#include "host.h"

#define FEED_JIFFIES max_t(unsigned long, HZ / 30, 1)
#define READERS_MAX 64u
#define NOISE_MAX_NS 100000u
#define DETAIL_MAX 3u

static struct front_host *to_host(struct front_trace *trace)
{
	return container_of(trace, struct front_host, trace);
}

static void put_locked(struct front_trace *trace, u16 tsg_id, u64 time_ns, bool on)
{
	const struct front_holder *holder = &trace->holders[tsg_id % CHIP_TSGS];
	struct event_switch *out = &trace->ring[trace->head % TRACE_RING];
	u16 seq = trace->seq++;

	if (trace->head - trace->tail == TRACE_RING)
		return; /* lost: the readers see it in seq */
	*out = (struct event_switch){
		.time_ns = time_ns,
		.context = holder->context,
		.pid = holder->pid,
		.uid = holder->uid,
		.seq = seq,
		.on = on,
	};
	trace->head++;
}

static void note_switch(struct sim_card *card, u16 tsg_id, u64 time_ns, bool on)
{
	struct front_trace *trace = &((struct front_host *)card->owner)->trace;
	unsigned long flags;

	spin_lock_irqsave(&trace->ring_lock, flags);
	put_locked(trace, tsg_id, time_ns, on);
	spin_unlock_irqrestore(&trace->ring_lock, flags);
}

/* All up to now goes into the batch. Return: how many. */
static u32 take(struct front_trace *trace)
{
	struct sim_card *card = to_host(trace)->card;
	u32 count = 0;

	card->ops->sync(card);
	spin_lock_irq(&trace->ring_lock);
	for (; trace->tail != trace->head; trace->tail++)
		trace->batch[count++] = trace->ring[trace->tail % TRACE_RING];
	spin_unlock_irq(&trace->ring_lock);
	return count;
}

/* As the reader sees it; it may be gone, and then only the first namespace still knows it. */
static u32 visible_pid(const struct front_event_buffer *buffer, u32 pid)
{
	u32 seen;

	if (!pid || buffer->pid_ns == &init_pid_ns)
		return pid;
	rcu_read_lock();
	seen = pid_nr_ns(find_pid_ns(pid, &init_pid_ns), buffer->pid_ns);
	rcu_read_unlock();
	return seen;
}

static void feed_one(struct front_event_buffer *buffer, const struct event_switch *what)
{
	int slot;

	if (!event_ring_wants(&buffer->ring, &buffer->reader, what))
		return;
	slot = event_ring_put(&buffer->ring);
	if (slot < 0)
		return;
	event_record_fill(front_event_buffer_slot(buffer, slot), &buffer->reader, what,
			  visible_pid(buffer, what->pid), get_random_u32() % NOISE_MAX_NS);
	buffer->fed = true;
}

static void feed_locked(struct front_trace *trace)
{
	struct front_event_buffer *buffer;
	u32 count, i;

	lockdep_assert_held(&trace->lock);
	count = take(trace);
	list_for_each_entry(buffer, &trace->readers, node) {
		buffer->fed = false;
		for (i = 0; i < count; i++)
			feed_one(buffer, &trace->batch[i]);
		front_event_buffer_publish(buffer);
	}
}

static void feed(struct work_struct *work)
{
	struct front_trace *trace = container_of(work, struct front_trace, feeder.work);

	mutex_lock(&trace->lock);
	feed_locked(trace);
	if (!list_empty(&trace->readers))
		schedule_delayed_work(&trace->feeder, FEED_JIFFIES);
	mutex_unlock(&trace->lock);
}

void front_trace_flush(struct front_host *host)
{
	mutex_lock(&host->trace.lock);
	feed_locked(&host->trace);
	mutex_unlock(&host->trace.lock);
}

static bool is_bound(const struct front_event_buffer *buffer)
{
	return !list_empty(&buffer->node);
}

u32 front_trace_bind(struct front_object *subdevice, const struct rm_bind_trace_params *params)
{
	struct front_object *object = front_object_find(subdevice->client, params->buffer);
	struct front_trace *trace = &subdevice->host->trace;
	struct front_event_buffer *buffer;
	u32 status = RM_STATE_IN_USE;

	if (!object || object->klass != &front_class_event_buffer)
		return RM_INVALID_OBJECT_HANDLE;
	if (params->record_bytes != sizeof(struct rm_trace_record) || params->detail > DETAIL_MAX ||
	    object->host != subdevice->host)
		return RM_INVALID_ARGUMENT;
	if (!subdevice->host->card->tells_switches)
		return RM_NOT_SUPPORTED;
	buffer = object->event_buffer;

	mutex_lock(&trace->lock);
	if (is_bound(buffer))
		goto out;
	status = RM_INSUFFICIENT_RESOURCES;
	if (trace->reader_count == READERS_MAX)
		goto out;
	/* What happened before is nobody's. */
	feed_locked(trace);
	buffer->reader.privileged = capable(CAP_SYS_ADMIN);
	buffer->reader.all_users = params->all_users;
	buffer->reader.uid = from_kuid(&init_user_ns, current_euid());
	list_add_tail(&buffer->node, &trace->readers);
	if (!trace->reader_count++)
		schedule_delayed_work(&trace->feeder, FEED_JIFFIES);
	status = RM_OK;
out:
	mutex_unlock(&trace->lock);
	return status;
}

void front_trace_unbind(struct front_host *host, struct front_event_buffer *buffer)
{
	mutex_lock(&host->trace.lock);
	if (is_bound(buffer)) {
		list_del_init(&buffer->node);
		host->trace.reader_count--;
	}
	mutex_unlock(&host->trace.lock);
}

u32 front_events_enable(struct front_object *object, const struct rm_events_enable_params *params)
{
	struct front_trace *trace = &object->host->trace;

	if (params->flags & RM_EVENTS_KEEP_NEWEST)
		return RM_NOT_SUPPORTED;
	if (params->flags & ~RM_EVENTS_KEEP_OLDEST || (params->enable && !params->flags))
		return RM_INVALID_ARGUMENT;
	mutex_lock(&trace->lock);
	feed_locked(trace);
	object->event_buffer->ring.enabled = params->enable;
	mutex_unlock(&trace->lock);
	return RM_OK;
}

u32 front_events_update_get(struct front_object *object, const struct rm_events_get_params *params)
{
	struct front_event_buffer *buffer = object->event_buffer;
	int err;

	if (params->vardata_get)
		return RM_INVALID_ARGUMENT;
	mutex_lock(&object->host->trace.lock);
	err = event_ring_set_get(&buffer->ring, params->get);
	buffer->fed = false;
	if (!err)
		front_event_buffer_publish(buffer);
	mutex_unlock(&object->host->trace.lock);
	return err ? RM_INVALID_ARGUMENT : RM_OK;
}

/* What the card did until now was the former holder's. */
static void name(struct front_host *host, u16 id, struct front_holder holder)
{
	host->card->ops->sync(host->card);
	spin_lock_irq(&host->trace.ring_lock);
	host->trace.holders[id] = holder;
	spin_unlock_irq(&host->trace.ring_lock);
}

void front_trace_name_locked(struct front_tsg *tsg)
{
	name(tsg->host, tsg->id,
	     (struct front_holder){
		     .context = lower_32_bits(tsg->serial),
		     .pid = pid_nr(tsg->opener),
		     .uid = tsg->uid,
	     });
}

void front_trace_forget_locked(struct front_tsg *tsg)
{
	name(tsg->host, tsg->id, (struct front_holder){});
}

void front_trace_init(struct front_host *host)
{
	mutex_init(&host->trace.lock);
	spin_lock_init(&host->trace.ring_lock);
	INIT_LIST_HEAD(&host->trace.readers);
	INIT_DELAYED_WORK(&host->trace.feeder, feed);
	host->card->owner = host;
	host->card->switched = note_switch;
}

void front_trace_fini(struct front_host *host)
{
	cancel_delayed_work_sync(&host->trace.feeder);
	WARN_ON_ONCE(!list_empty(&host->trace.readers));
}
