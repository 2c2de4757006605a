// SPDX-License-Identifier: GPL-2.0
/*
 * dump.c - what is told to user space: cards, tenants, TSGs, and a PLAN_SET's reply; counters are
 * in stats.c.
 *
 * A dump goes through its objects by number and takes each lock for one message only; when
 * something came, went or was replaced meanwhile the messages say so (NLM_F_DUMP_INTR) and the
 * reader starts again.
 */
#include <linux/pid_namespace.h>
#include <net/genetlink.h>
#include "compat.h"
#include "dump.h"
#include "qgpu.h"
#include "request.h"

/* Where a dump is. */
struct dump_place {
	u32 card;	      /* next one is this or the first after it */
	unsigned long object; /* likewise, within the card */
};

static struct dump_place *place_of(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct dump_place) > sizeof(cb->ctx));
	return (struct dump_place *)cb->ctx;
}

struct qgpu_card *qgpu_dump_next_card(struct netlink_callback *cb, u32 from)
{
	const struct nlattr *attr = qgpu_dump_attrs(cb)[QGPU_A_CARD_INDEX];

	if (!attr)
		return from == U32_MAX ? NULL : qgpu_card_get_from(from);
	return from <= nla_get_u32(attr) ? qgpu_card_get(nla_get_u32(attr)) : NULL;
}

int qgpu_dump_message(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd, u32 card_index,
		      int (*fill)(struct sk_buff *skb, void *object), void *object)
{
	void *hdr;

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &qgpu_family,
			  NLM_F_MULTI, cmd);
	if (!hdr)
		return -EMSGSIZE;
	genl_dump_check_consistent(cb, hdr);
	if (nla_put_u32(skb, QGPU_A_CARD_INDEX, card_index) || fill(skb, object)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

/* All objects of a kind of all asked-for cards, as many as fit; @seq changes when they do. */
static int dump_cards(struct sk_buff *skb, struct netlink_callback *cb, u32 seq,
		      int (*put_objects_locked)(struct sk_buff *skb, struct netlink_callback *cb,
						struct qgpu_card *card))
{
	struct dump_place *at = place_of(cb);
	struct qgpu_card *card;
	int err = 0;

	cb->seq = seq;
	while (!err && (card = qgpu_dump_next_card(cb, at->card))) {
		/* The list may have moved on since the last call. */
		if (at->card != card->index)
			at->object = 0;
		at->card = card->index;
		mutex_lock(&card->lock);
		if (card->running)
			err = put_objects_locked(skb, cb, card);
		mutex_unlock(&card->lock);
		if (!err) {
			at->card = card->index + 1;
			at->object = 0;
		}
		qgpu_card_put(card);
	}
	/* Full: what is there goes out and the rest follows. An object that does not fit into an
	 * empty message never will. */
	return skb->len ?: err;
}

/* ---- cards ---- */

static bool has_settings(const struct qgpu_tenant *tenant)
{
	struct core_settings settings;

	core_settings_default(&settings);
	return tenant->cgroup_count || memcmp(&settings, &tenant->core.asked, sizeof(settings));
}

static u32 tenants_to_show(const struct qgpu_card *card)
{
	const struct qgpu_tenant *tenant = card->default_tenant;

	return card->tenant_count - (!tenant->tsg_count && !has_settings(tenant));
}

static int put_card(struct sk_buff *skb, void *object)
{
	const struct qgpu_card *card = object;
	struct nlattr *nest = nla_nest_start(skb, QGPU_A_CARD);

	if (!nest || nla_put_string(skb, QGPU_A_CARD_UUID, card->uuid) ||
	    nla_put_string(skb, QGPU_A_CARD_NAME, card->name) ||
	    nla_put_u32(skb, QGPU_A_CARD_CHIP_ID, card->hw.id.chip_id) ||
	    nla_put_flag(skb, QGPU_A_CARD_SIMULATED) ||
	    nla_put_u32(skb, QGPU_A_CARD_METHOD,
			turn_uses_gates(card->turn) ? QGPU_METHOD_GATES : QGPU_METHOD_IMAGES) ||
	    nla_put_u32(skb, QGPU_A_CARD_STATE, card->state) ||
	    (card->reason && nla_put_string(skb, QGPU_A_CARD_REASON, card->reason)) ||
	    nla_put_u32(skb, QGPU_A_CARD_POLICY, card->policy) ||
	    nla_put_u64_64bit(skb, QGPU_A_CARD_GENERATION, card->generation, QGPU_A_CARD_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_CARD_SWITCH_NS, card->params.switch_ns,
			      QGPU_A_CARD_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_CARD_CYCLE_NS, turn_cycle_ns(card->turn),
			      QGPU_A_CARD_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_CARD_SLICE_MIN_NS, card->params.slice_min_ns,
			      QGPU_A_CARD_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_CARD_SLICE_MAX_NS, card->params.slice_max_ns,
			      QGPU_A_CARD_PAD) ||
	    nla_put_u32(skb, QGPU_A_CARD_TENANTS, tenants_to_show(card)) ||
	    nla_put_u32(skb, QGPU_A_CARD_TSGS, card->tsg_count))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_card_locked(struct sk_buff *skb, struct netlink_callback *cb, struct qgpu_card *card)
{
	return qgpu_dump_message(skb, cb, QGPU_CMD_CARD_GET, card->index, put_card, card);
}

int qgpu_card_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_cards(skb, cb, atomic_read(&qgpu_dump_seq), put_card_locked);
}

static int reply_card_locked(struct sk_buff *skb, struct genl_info *info, struct qgpu_card *card)
{
	void *hdr;

	if (!card->running)
		return qgpu_refuse_going(info, card);
	hdr = genlmsg_put_reply(skb, info, &qgpu_family, 0, QGPU_CMD_CARD_GET);
	if (!hdr || nla_put_u32(skb, QGPU_A_CARD_INDEX, card->index) || put_card(skb, card))
		return -EMSGSIZE;
	genlmsg_end(skb, hdr);
	return 0;
}

int qgpu_card_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *attr = info->attrs[QGPU_A_CARD_INDEX];
	struct qgpu_card *card;
	struct sk_buff *reply;
	int err;

	if (!attr) {
		NL_SET_ERR_ATTR_MISS(info->extack, NULL, QGPU_A_CARD_INDEX);
		NL_SET_ERR_MSG(info->extack, "no card is named");
		return -EINVAL;
	}
	card = qgpu_card_get(nla_get_u32(attr));
	if (!card) {
		NL_SET_ERR_MSG_ATTR(info->extack, attr, "no card of this number");
		return -ENODEV;
	}
	reply = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	if (!reply) {
		NL_SET_ERR_MSG(info->extack, "out of memory");
		qgpu_card_put(card);
		return -ENOMEM;
	}
	mutex_lock(&card->lock);
	err = reply_card_locked(reply, info, card);
	mutex_unlock(&card->lock);
	qgpu_card_put(card);
	if (err) {
		nlmsg_free(reply);
		return err;
	}
	return genlmsg_reply(reply, info);
}

/* ---- tenants ---- */

static int put_settings(struct sk_buff *skb, const struct core_settings *settings)
{
	if (nla_put_u32(skb, QGPU_A_TENANT_WEIGHT, settings->weight) ||
	    nla_put_u32(skb, QGPU_A_TENANT_GUARANTEE_PPM, settings->guarantee_ppm) ||
	    nla_put_u32(skb, QGPU_A_TENANT_CEILING_PPM, settings->ceiling_ppm) ||
	    nla_put_u64_64bit(skb, QGPU_A_TENANT_WAKE_NS, settings->wake_ns, QGPU_A_TENANT_PAD) ||
	    nla_put_u32(skb, QGPU_A_TENANT_CLASS, settings->class_) ||
	    nla_put_u64_64bit(skb, QGPU_A_TENANT_HANG_NS, settings->hang_ns, QGPU_A_TENANT_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_TENANT_MEMORY_BYTES, 0, QGPU_A_TENANT_PAD))
		return -EMSGSIZE;
	return 0;
}

static int put_effective(struct sk_buff *skb, const struct qgpu_tenant *tenant)
{
	struct core_view view;

	core_tenant_view(&tenant->core, &view);
	if (nla_put_u32(skb, QGPU_A_TENANT_SHARE_PPM, view.share_ppm) ||
	    nla_put_u64_64bit(skb, QGPU_A_TENANT_SLICE_NS, view.slice_ns, QGPU_A_TENANT_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_TENANT_WINDOW_NS, view.window_ns, QGPU_A_TENANT_PAD) ||
	    (view.awake && nla_put_flag(skb, QGPU_A_TENANT_AWAKE)) ||
	    nla_put_u32(skb, QGPU_A_TENANT_TSGS, tenant->tsg_count) ||
	    nla_put_u32(skb, QGPU_A_TENANT_PLACE, tenant->core.place))
		return -EMSGSIZE;
	return 0;
}

static int put_tenant(struct sk_buff *skb, void *object)
{
	const struct qgpu_tenant *tenant = object;
	struct nlattr *nest = nla_nest_start(skb, QGPU_A_TENANT);

	if (!nest || nla_put_u32(skb, QGPU_A_TENANT_ID, tenant->id) ||
	    nla_put_string(skb, QGPU_A_TENANT_NAME, tenant->name) ||
	    put_settings(skb, &tenant->core.asked) ||
	    nla_put(skb, QGPU_A_TENANT_CGROUPS, tenant->cgroup_count * sizeof(u64),
		    tenant->cgroups) ||
	    put_effective(skb, tenant))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_tenants_locked(struct sk_buff *skb, struct netlink_callback *cb,
			      struct qgpu_card *card)
{
	struct dump_place *at = place_of(cb);
	struct qgpu_tenant *tenant;
	unsigned long id;
	int err;

	xa_for_each_start(&card->tenants, id, tenant, at->object) {
		at->object = id;
		err = qgpu_dump_message(skb, cb, QGPU_CMD_TENANT_GET, card->index, put_tenant,
					tenant);
		if (err)
			return err;
	}
	return 0;
}

int qgpu_tenant_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_cards(skb, cb, atomic_read(&qgpu_dump_seq), put_tenants_locked);
}

/* ---- TSGs ---- */

static int put_tsg(struct sk_buff *skb, void *object)
{
	const struct qgpu_tsg *tsg = object;
	struct nlattr *nest = nla_nest_start(skb, QGPU_A_TSG);

	/* The reader is who runs this, also in the later calls of a dump. */
	if (!nest || nla_put_u64_64bit(skb, QGPU_A_TSG_SERIAL, tsg->turn.serial, QGPU_A_TSG_PAD) ||
	    nla_put_u32(skb, QGPU_A_TSG_ID, tsg->turn.tsg_id) ||
	    nla_put_u32(skb, QGPU_A_TSG_RUNLIST, tsg->runlist) ||
	    nla_put_u32(skb, QGPU_A_TSG_TENANT_ID,
			tsg->tenant ? tsg->tenant->id : QGPU_TENANT_NOBODY) ||
	    nla_put_u32(skb, QGPU_A_TSG_PID, pid_nr_ns(tsg->opener, task_active_pid_ns(current))) ||
	    nla_put_u32(skb, QGPU_A_TSG_CHANNELS, tsg->turn.channel_count) ||
	    nla_put_u64_64bit(skb, QGPU_A_TSG_SLICE_NS, tsg->turn.core.slice_ns, QGPU_A_TSG_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_tsgs_locked(struct sk_buff *skb, struct netlink_callback *cb, struct qgpu_card *card)
{
	struct dump_place *at = place_of(cb);
	struct qgpu_tsg *tsg;
	unsigned long serial;
	int err;

	xa_for_each_start(&card->tsgs, serial, tsg, at->object) {
		at->object = serial;
		err = qgpu_dump_message(skb, cb, QGPU_CMD_TSG_GET, card->index, put_tsg, tsg);
		if (err)
			return err;
	}
	return 0;
}

int qgpu_tsg_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	u32 seq = (u32)atomic_read(&qgpu_dump_seq) + (u32)atomic_read(&qgpu_tsg_dump_seq);

	return dump_cards(skb, cb, seq, put_tsgs_locked);
}

/* ---- the reply to PLAN_SET ---- */

/* More than a tenant's nest ever takes, and the most that is put into one QGPU_A_PLAN: a nest
 * holds 64 KiB. */
#define REPLY_TENANT_BYTES 320u
#define REPLY_TENANTS_PER_NEST 200u

struct sk_buff *qgpu_plan_reply_new(const struct qgpu_plan_change *change)
{
	return genlmsg_new(256 + change->tenant_count * (size_t)REPLY_TENANT_BYTES, GFP_KERNEL);
}

static int put_changed_tenant(struct sk_buff *skb, const struct qgpu_plan_change *change,
			      const struct qgpu_tenant_change *tenant)
{
	struct nlattr *nest = nla_nest_start(skb, QGPU_A_PLAN_TENANT);

	if (!nest || nla_put_string(skb, QGPU_A_TENANT_NAME, tenant->name))
		return -EMSGSIZE;
	if (tenant->flags & QGPU_TENANT_REMOVE) {
		if (nla_put_u32(skb, QGPU_A_TENANT_FLAGS, QGPU_TENANT_REMOVE))
			return -EMSGSIZE;
	} else if (put_settings(skb, &tenant->settings)) {
		return -EMSGSIZE;
	} else if (!(change->flags & QGPU_PLAN_DRY_RUN) &&
		   (nla_put_u32(skb, QGPU_A_TENANT_ID, tenant->tenant->id) ||
		    put_effective(skb, tenant->tenant))) {
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

int qgpu_plan_reply_fill_locked(struct sk_buff *skb, struct genl_info *info, struct qgpu_card *card,
				const struct qgpu_plan_change *change)
{
	struct nlattr *plan;
	u32 i = 0, last;
	void *hdr;

	hdr = genlmsg_put_reply(skb, info, &qgpu_family, 0, QGPU_CMD_PLAN_SET);
	if (!hdr || nla_put_u32(skb, QGPU_A_CARD_INDEX, card->index))
		return -EMSGSIZE;
	do {
		plan = nla_nest_start(skb, QGPU_A_PLAN);
		if (!plan)
			return -EMSGSIZE;
		if (!i && nla_put_u64_64bit(skb, QGPU_A_PLAN_GENERATION, card->generation,
					    QGPU_A_PLAN_PAD))
			return -EMSGSIZE;
		for (last = min(i + REPLY_TENANTS_PER_NEST, change->tenant_count); i < last; i++)
			if (put_changed_tenant(skb, change, &change->tenants[i]))
				return -EMSGSIZE;
		nla_nest_end(skb, plan);
	} while (i < change->tenant_count);
	genlmsg_end(skb, hdr);
	return 0;
}
