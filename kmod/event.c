// SPDX-License-Identifier: GPL-2.0
/*
 * event.c - tells the listeners what happened. Events are queued where they happen, under
 * card->lock, and sent by a work item without it, in order. They are hints: whoever misses one
 * (ENOBUFS) dumps again.
 */
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <net/genetlink.h>
#include "compat.h"
#include "qgpu.h"

#define GROUP_EVENTS 0 /* place in qgpu_family.mcgrps */

struct queued_event {
	struct list_head node;
	enum qgpu_event kind;
	u64 time_ns, generation, serial;
	u32 tenant_id;
	char tenant_name[QGPU_NAME_MAX];
	bool has_tenant, has_tsg;
	struct pid *opener; /* holds a reference */
	enum qgpu_card_state state;
	const char *reason; /* constant */
};

void qgpu_event_locked(struct qgpu_card *card, enum qgpu_event kind,
		       const struct qgpu_tenant *tenant, const struct qgpu_tsg *tsg)
{
	struct queued_event *event;

	lockdep_assert_held(&card->lock);
	event = card->event_count < QGPU_EVENTS_MAX ? kzalloc(sizeof(*event), GFP_KERNEL) : NULL;
	if (!event) {
		card->events_lost = true;
		goto out;
	}
	event->kind = kind;
	event->time_ns = ktime_get_ns();
	event->generation = card->generation;
	event->state = card->state;
	event->reason = card->reason;
	if (tenant) {
		event->has_tenant = true;
		event->tenant_id = tenant->id;
		strscpy(event->tenant_name, tenant->name, sizeof(event->tenant_name));
	}
	if (tsg) {
		event->has_tsg = true;
		event->serial = tsg->turn.serial;
		event->opener = get_pid(tsg->opener);
	}
	list_add_tail(&event->node, &card->events);
	card->event_count++;
out:
	schedule_work(&card->event_work);
}

static int put_event(struct sk_buff *skb, u32 card_index, const struct queued_event *event)
{
	struct nlattr *nest;
	void *hdr;

	hdr = genlmsg_put(skb, 0, 0, &qgpu_family, 0, QGPU_CMD_EVENT);
	if (!hdr || nla_put_u32(skb, QGPU_A_CARD_INDEX, card_index))
		return -EMSGSIZE;
	nest = nla_nest_start(skb, QGPU_A_EVENT);
	if (!nest || nla_put_u32(skb, QGPU_A_EVENT_KIND, event->kind) ||
	    nla_put_u64_64bit(skb, QGPU_A_EVENT_TIME_NS, event->time_ns, QGPU_A_EVENT_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_EVENT_GENERATION, event->generation, QGPU_A_EVENT_PAD))
		return -EMSGSIZE;
	if (event->has_tenant &&
	    (nla_put_u32(skb, QGPU_A_EVENT_TENANT_ID, event->tenant_id) ||
	     nla_put_string(skb, QGPU_A_EVENT_TENANT_NAME, event->tenant_name)))
		return -EMSGSIZE;
	if (event->has_tsg &&
	    (nla_put_u64_64bit(skb, QGPU_A_EVENT_TSG_SERIAL, event->serial, QGPU_A_EVENT_PAD) ||
	     nla_put_u32(skb, QGPU_A_EVENT_PID, pid_nr(event->opener))))
		return -EMSGSIZE;
	if (event->kind == QGPU_EVENT_CARD_STATE &&
	    (nla_put_u32(skb, QGPU_A_EVENT_CARD_STATE, event->state) ||
	     (event->reason && nla_put_string(skb, QGPU_A_EVENT_REASON, event->reason))))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	genlmsg_end(skb, hdr);
	return 0;
}

static void send_event(u32 card_index, const struct queued_event *event)
{
	struct sk_buff *skb;

	if (!genl_has_listeners(&qgpu_family, &init_net, GROUP_EVENTS))
		return;
	skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	if (!skb || WARN_ON_ONCE(put_event(skb, card_index, event))) {
		nlmsg_free(skb);
		genl_set_err(&qgpu_family, &init_net, 0, GROUP_EVENTS, -ENOBUFS);
		return;
	}
	genlmsg_multicast(&qgpu_family, skb, 0, GROUP_EVENTS, GFP_KERNEL);
}

void qgpu_event_work(struct work_struct *work)
{
	struct qgpu_card *card = container_of(work, struct qgpu_card, event_work);
	struct queued_event *event, *next;
	LIST_HEAD(events);
	bool lost;

	mutex_lock(&card->lock);
	list_splice_init(&card->events, &events);
	card->event_count = 0;
	lost = card->events_lost;
	card->events_lost = false;
	mutex_unlock(&card->lock);

	if (lost)
		genl_set_err(&qgpu_family, &init_net, 0, GROUP_EVENTS, -ENOBUFS);
	list_for_each_entry_safe(event, next, &events, node) {
		send_event(card->index, event);
		list_del(&event->node);
		put_pid(event->opener);
		kfree(event);
	}
}
