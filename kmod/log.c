// SPDX-License-Identifier: GPL-2.0
/*
 * log.c - the scheduler's log: a ring per card of who was on the engine, and tracepoints of the
 * same; how often each tenant was is counted, also without a ring. Filled under card->lock by the
 * turn (core/visit.c); read by LOG_GET, newest at the end, which is the time that is not over. What
 * is overwritten is lost, which the serials show.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include "compat.h"
#include "qgpu.h"

#define CREATE_TRACE_POINTS
#include "qgpu_trace.h"

#define RECORDS_MAX (1u << 20)

static unsigned int log_records = 4096;
module_param(log_records, uint, 0444);
MODULE_PARM_DESC(log_records, "times on the engine that are remembered per card; 0 = none");

struct qgpu_log_record {
	u64 from_ns, to_ns;
	u32 tenant_id, due_id; /* QGPU_TENANT_NOBODY = none */
	u8 seen, end, window;
	bool ongoing; /* of none in the ring */
};

struct qgpu_log {
	u64 since_ns; /* set once at creation */
	u32 size;
	u64 next; /* serial of the next record */
	struct qgpu_log_record records[];
};

static u32 id_of(const struct core_tenant *tenant)
{
	return tenant ? container_of(tenant, struct qgpu_tenant, core)->id : QGPU_TENANT_NOBODY;
}

static struct qgpu_log_record record_of(const struct core_visit *visit, u32 tenant_id, u32 due_id)
{
	return (struct qgpu_log_record){
		.from_ns = visit->from_ns,
		.to_ns = visit->to_ns,
		.tenant_id = tenant_id,
		.due_id = due_id,
		.seen = visit->seen,
		.end = visit->end,
		.window = visit->kind,
	};
}

static void remember(struct qgpu_log *log, const struct core_visit *visit, u32 tenant_id,
		     u32 due_id)
{
	u32 at;

	/* No division: it is not there for u64 on every machine. */
	div_u64_rem(log->next, log->size, &at);
	log->records[at] = record_of(visit, tenant_id, due_id);
	log->next++;
}

static void on_visit(void *listener, const struct core_visit *visit)
{
	struct qgpu_card *card = listener;
	u32 tenant_id = id_of(visit->tenant), due_id = id_of(visit->due);

	lockdep_assert_held(&card->lock);
	if (visit->tenant)
		container_of(visit->tenant, struct qgpu_tenant, core)->visits++;
	trace_qgpu_visit(card->index, visit, tenant_id, due_id);
	if (card->log)
		remember(card->log, visit, tenant_id, due_id);
}

int qgpu_log_init(struct qgpu_card *card)
{
	u32 size = min(log_records, RECORDS_MAX);

	BUILD_BUG_ON((int)CORE_SEEN_TSG != (int)QGPU_SEEN_TENANT);
	BUILD_BUG_ON((int)CORE_END_TAIL != (int)QGPU_END_TAIL);
	BUILD_BUG_ON((int)CORE_WINDOW_QUIET != (int)QGPU_WINDOW_QUIET);
	if (size) {
		card->log = kvzalloc(struct_size(card->log, records, size), GFP_KERNEL);
		if (!card->log)
			return -ENOMEM;
		card->log->size = size;
		card->log->since_ns = ktime_get_ns();
	}
	turn_listen(card->turn, on_visit, card);
	return 0;
}

void qgpu_log_fini(struct qgpu_card *card)
{
	struct qgpu_log *log;

	/* Who dumps has a reference to the card and finds none. */
	mutex_lock(&card->lock);
	log = card->log;
	card->log = NULL;
	mutex_unlock(&card->lock);
	kvfree(log);
}

/* Where a dump is: within this card from @serial to @until, which is the one that was on when the
 * dump came to it, over by now or not: it ends, however fast the log grows. */
struct log_place {
	u32 card;
	bool inside;
	u64 serial, until;
};

static struct log_place *place_of(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct log_place) > sizeof(cb->ctx));
	return (struct log_place *)cb->ctx;
}

static int put_record(struct sk_buff *skb, u64 since_ns, u64 serial,
		      const struct qgpu_log_record *record)
{
	struct nlattr *nest = nla_nest_start(skb, QGPU_A_LOG);

	if (!nest || nla_put_u64_64bit(skb, QGPU_A_LOG_SINCE_NS, since_ns, QGPU_A_LOG_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_LOG_SERIAL, serial, QGPU_A_LOG_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_LOG_FROM_NS, record->from_ns, QGPU_A_LOG_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_LOG_TO_NS, record->to_ns, QGPU_A_LOG_PAD) ||
	    nla_put_u32(skb, QGPU_A_LOG_SEEN, record->seen) ||
	    nla_put_u32(skb, QGPU_A_LOG_WINDOW, record->window))
		return -EMSGSIZE;
	if (record->ongoing && nla_put_flag(skb, QGPU_A_LOG_ONGOING))
		return -EMSGSIZE;
	if (record->seen == CORE_SEEN_TSG && !record->ongoing &&
	    nla_put_u32(skb, QGPU_A_LOG_END, record->end))
		return -EMSGSIZE;
	if (record->tenant_id && nla_put_u32(skb, QGPU_A_LOG_TENANT_ID, record->tenant_id))
		return -EMSGSIZE;
	if (record->due_id && nla_put_u32(skb, QGPU_A_LOG_DUE_ID, record->due_id))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static struct qgpu_log_record ongoing_locked(const struct qgpu_card *card)
{
	struct core_visit visit;
	struct qgpu_log_record record;

	turn_visit(card->turn, &visit);
	record = record_of(&visit, id_of(visit.tenant), id_of(visit.due));
	record.ongoing = true;
	return record;
}

static struct qgpu_log_record record_at_locked(const struct qgpu_card *card, u64 serial)
{
	u32 at;

	if (serial == card->log->next)
		return ongoing_locked(card);
	div_u64_rem(serial, card->log->size, &at);
	return card->log->records[at];
}

static int put_message_locked(struct sk_buff *skb, struct netlink_callback *cb,
			      const struct qgpu_card *card, u64 serial)
{
	void *hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &qgpu_family,
				NLM_F_MULTI, QGPU_CMD_LOG_GET);
	struct qgpu_log_record record;

	if (!hdr)
		return -EMSGSIZE;
	record = record_at_locked(card, serial);
	if (nla_put_u32(skb, QGPU_A_CARD_INDEX, card->index) ||
	    put_record(skb, card->log->since_ns, serial, &record)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

/* As much of one card as fits. Return: 0 = all of it. */
static int put_card_locked(struct sk_buff *skb, struct netlink_callback *cb, struct qgpu_card *card)
{
	struct log_place *at = place_of(cb);
	const struct qgpu_log *log = card->log;
	u64 oldest;
	int err;

	if (!log)
		return 0;
	if (!at->inside) {
		at->inside = true;
		at->serial = 0;
		at->until = log->next;
	}
	oldest = log->next - min_t(u64, log->next, log->size);
	for (at->serial = max(at->serial, oldest); at->serial <= at->until; at->serial++) {
		err = put_message_locked(skb, cb, card, at->serial);
		if (err)
			return err;
	}
	return 0;
}

int qgpu_log_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	const struct nlattr *only = qgpu_dump_attrs(cb)[QGPU_A_CARD_INDEX];
	struct log_place *at = place_of(cb);
	struct qgpu_card *card;
	int err = 0;

	/* Who computes when, to the microsecond, is nothing for another tenant to know. */
	if (!netlink_capable(cb->skb, CAP_NET_ADMIN)) {
		NL_SET_ERR_MSG(cb->extack, "the log needs CAP_NET_ADMIN");
		return -EPERM;
	}
	while (!err) {
		if (only)
			card = at->card ? NULL : qgpu_card_get(nla_get_u32(only));
		else
			card = at->card == U32_MAX ? NULL : qgpu_card_get_from(at->card);
		if (!card)
			break;
		/* Another card may be the first after the last one by now. */
		if (!only && at->card != card->index)
			at->inside = false;
		if (!only)
			at->card = card->index;
		mutex_lock(&card->lock);
		err = put_card_locked(skb, cb, card);
		mutex_unlock(&card->lock);
		if (!err) {
			at->card = only ? 1 : card->index + 1;
			at->inside = false;
		}
		qgpu_card_put(card);
	}
	return skb->len ?: err;
}
