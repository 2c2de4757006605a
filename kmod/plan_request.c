// SPDX-License-Identifier: GPL-2.0
/*
 * plan_request.c - PLAN_SET: attributes to a struct qgpu_plan_change, and what became of it.
 * Decides nothing: that is card_plan.c's.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include "compat.h"
#include "qgpu.h"
#include "request.h"

#define READ_ONLY                                                                                  \
	{                                                                                          \
		.type = NLA_REJECT, .reject_message = "this attribute is read only"                \
	}

/* Not const: the policy's pointer became so in 6.3. */
static struct netlink_range_validation ppm_range = { .max = QGPU_PPM };
static struct netlink_range_validation ceiling_range = { .min = 1, .max = QGPU_PPM };

static const struct nla_policy plan_tenant_policy[QGPU_A_TENANT_MAX + 1] = {
	[QGPU_A_TENANT_ID] = READ_ONLY,
	[QGPU_A_TENANT_NAME] = { .type = NLA_NUL_STRING, .len = QGPU_NAME_MAX - 1 },
	[QGPU_A_TENANT_FLAGS] =
		NLA_POLICY_MASK(NLA_U32, QGPU_TENANT_REMOVE | QGPU_TENANT_CREATE_ONLY),
	[QGPU_A_TENANT_WEIGHT] = NLA_POLICY_RANGE(NLA_U32, QGPU_WEIGHT_MIN, QGPU_WEIGHT_MAX),
	[QGPU_A_TENANT_GUARANTEE_PPM] = NLA_POLICY_FULL_RANGE(NLA_U32, &ppm_range),
	[QGPU_A_TENANT_CEILING_PPM] = NLA_POLICY_FULL_RANGE(NLA_U32, &ceiling_range),
	[QGPU_A_TENANT_WAKE_NS] = { .type = NLA_U64 },
	[QGPU_A_TENANT_CLASS] = NLA_POLICY_MAX(NLA_U32, QGPU_CLASS_OFFLINE),
	[QGPU_A_TENANT_HANG_NS] = { .type = NLA_U64 },
	[QGPU_A_TENANT_MEMORY_BYTES] = { .type = NLA_U64 },
	[QGPU_A_TENANT_CGROUPS] = { .type = NLA_BINARY },
	[QGPU_A_TENANT_SHARE_PPM] = READ_ONLY,
	[QGPU_A_TENANT_SLICE_NS] = READ_ONLY,
	[QGPU_A_TENANT_WINDOW_NS] = READ_ONLY,
	[QGPU_A_TENANT_AWAKE] = READ_ONLY,
	[QGPU_A_TENANT_TSGS] = READ_ONLY,
	[QGPU_A_TENANT_PLACE] = READ_ONLY,
};

static const struct nla_policy plan_policy[QGPU_A_PLAN_MAX + 1] = {
	[QGPU_A_PLAN_GENERATION] = { .type = NLA_U64 },
	[QGPU_A_PLAN_FLAGS] = NLA_POLICY_MASK(NLA_U32, QGPU_PLAN_DRY_RUN | QGPU_PLAN_REPLACE),
	[QGPU_A_PLAN_POLICY] = NLA_POLICY_MAX(NLA_U32, QGPU_POLICY_BURST_SHARE),
	[QGPU_A_PLAN_CYCLE_NS] = { .type = NLA_U64 },
	[QGPU_A_PLAN_TENANT] = NLA_POLICY_NESTED(plan_tenant_policy),
};

const struct nla_policy qgpu_plan_set_policy[QGPU_A_PLAN + 1] = {
	[QGPU_A_CARD_INDEX] = { .type = NLA_U32 },
	[QGPU_A_PLAN] = NLA_POLICY_NESTED(plan_policy),
};

static int parse_cgroups(struct genl_info *info, const struct nlattr *attr,
			 struct qgpu_tenant_change *to)
{
	u32 count = nla_len(attr) / sizeof(u64), i;

	if (nla_len(attr) % sizeof(u64))
		return qgpu_refuse(info, -EINVAL, attr, "a list of cgroups is an array of u64");
	if (count > QGPU_CGROUPS_MAX)
		return qgpu_refuse(info, -ENOSPC, attr, "more cgroups than a tenant can have");
	if (!count)
		return 0;
	to->cgroups = kmemdup(nla_data(attr), count * sizeof(u64), GFP_KERNEL);
	if (!to->cgroups)
		return qgpu_refuse(info, -ENOMEM, NULL, "out of memory");
	to->cgroup_count = count;
	for (i = 0; i < count; i++)
		if (!to->cgroups[i])
			return qgpu_refuse(info, -EINVAL, attr, "0 is no cgroup");
	return 0;
}

static int parse_tenant(struct genl_info *info, const struct nlattr *nest,
			struct qgpu_tenant_change *to)
{
	struct nlattr *tb[QGPU_A_TENANT_MAX + 1];
	const struct nlattr *memory;
	int err;

	err = nla_parse_nested(tb, QGPU_A_TENANT_MAX, nest, plan_tenant_policy, info->extack);
	if (!err)
		err = qgpu_refuse_twice(info, nest);
	if (err)
		return err;
	to->nest = nest;
	memcpy(to->attrs, tb, sizeof(tb));
	err = qgpu_request_name(info, nest, tb[QGPU_A_TENANT_NAME], QGPU_A_TENANT_NAME, to->name);
	if (err)
		return err;
	memory = tb[QGPU_A_TENANT_MEMORY_BYTES];
	if (memory && nla_get_u64(memory))
		return qgpu_refuse(info, -EOPNOTSUPP, memory, "memory is not capped on this card");
	if (tb[QGPU_A_TENANT_FLAGS])
		to->flags = nla_get_u32(tb[QGPU_A_TENANT_FLAGS]);
	if (tb[QGPU_A_TENANT_WEIGHT])
		to->settings.weight = nla_get_u32(tb[QGPU_A_TENANT_WEIGHT]);
	if (tb[QGPU_A_TENANT_GUARANTEE_PPM])
		to->settings.guarantee_ppm = nla_get_u32(tb[QGPU_A_TENANT_GUARANTEE_PPM]);
	if (tb[QGPU_A_TENANT_CEILING_PPM])
		to->settings.ceiling_ppm = nla_get_u32(tb[QGPU_A_TENANT_CEILING_PPM]);
	if (tb[QGPU_A_TENANT_WAKE_NS])
		to->settings.wake_ns = nla_get_u64(tb[QGPU_A_TENANT_WAKE_NS]);
	if (tb[QGPU_A_TENANT_CLASS])
		to->settings.class_ = (enum core_class)nla_get_u32(tb[QGPU_A_TENANT_CLASS]);
	if (tb[QGPU_A_TENANT_HANG_NS])
		to->settings.hang_ns = nla_get_u64(tb[QGPU_A_TENANT_HANG_NS]);
	if (tb[QGPU_A_TENANT_CGROUPS])
		return parse_cgroups(info, tb[QGPU_A_TENANT_CGROUPS], to);
	return 0;
}

/* Of a plan that is cut into several nests (one holds 64 KiB at most) each setting of the card may
 * be in any, once. */
static int parse_plan_nest(struct genl_info *info, const struct nlattr *nest,
			   struct qgpu_plan_change *change)
{
	const struct nlattr *attr;
	int rem, type, err;

	nla_for_each_nested(attr, nest, rem) {
		type = nla_type(attr);
		if (type == QGPU_A_PLAN_TENANT) {
			err = parse_tenant(info, attr, &change->tenants[change->tenant_count++]);
			if (err)
				return err;
			continue;
		}
		if (type > QGPU_A_PLAN_MAX || change->attrs[type])
			return qgpu_refuse(info, -EINVAL, attr, "this is given twice");
		change->attrs[type] = attr;
		if (type == QGPU_A_PLAN_GENERATION)
			change->generation = nla_get_u64(attr);
		else if (type == QGPU_A_PLAN_FLAGS)
			change->flags = nla_get_u32(attr);
		else if (type == QGPU_A_PLAN_POLICY)
			change->policy = (enum core_policy)nla_get_u32(attr);
		else if (type == QGPU_A_PLAN_CYCLE_NS)
			change->cycle_ns = nla_get_u64(attr);
	}
	return 0;
}

static int parse_plan(struct genl_info *info, struct qgpu_plan_change *change)
{
	const struct nlattr *plan, *attr;
	int rem, inner_rem, err;
	u32 tenants = 0;

	if (!info->attrs[QGPU_A_PLAN])
		return qgpu_refuse_missing(info, NULL, QGPU_A_PLAN, "no plan is given");
	nlmsg_for_each_attr(plan, info->nlhdr, GENL_HDRLEN, rem)
		if (nla_type(plan) == QGPU_A_PLAN)
			nla_for_each_nested(attr, plan, inner_rem)
				tenants += nla_type(attr) == QGPU_A_PLAN_TENANT;
	change->tenants = kvcalloc(tenants, sizeof(*change->tenants), GFP_KERNEL);
	if (!change->tenants)
		return qgpu_refuse(info, -ENOMEM, NULL, "out of memory");
	nlmsg_for_each_attr(plan, info->nlhdr, GENL_HDRLEN, rem) {
		if (nla_type(plan) != QGPU_A_PLAN)
			continue;
		err = parse_plan_nest(info, plan, change);
		if (err)
			return err;
	}
	if (!change->attrs[QGPU_A_PLAN_GENERATION])
		return qgpu_refuse_missing(
			info, info->attrs[QGPU_A_PLAN], QGPU_A_PLAN_GENERATION,
			"the generation that the plan is to replace is not given");
	return 0;
}

static void free_plan(struct qgpu_plan_change *change)
{
	u32 i;

	for (i = 0; i < change->tenant_count; i++)
		kvfree(change->tenants[i].cgroups);
	kvfree(change->tenants);
}

static int plan_set(struct genl_info *info, struct qgpu_card *card, struct qgpu_plan_change *change)
{
	struct qgpu_refusal refusal = { NULL };
	struct sk_buff *reply;
	int err;

	/* Allocated first: once the plan is in force nothing may fail. */
	reply = qgpu_plan_reply_new(change);
	if (!reply)
		return qgpu_refuse(info, -ENOMEM, NULL, "out of memory");
	mutex_lock(&card->lock);
	if (!card->running) {
		err = qgpu_refuse_going(info, card);
		goto err_unlock;
	}
	err = qgpu_plan_set_locked(card, change, &refusal);
	if (err) {
		err = qgpu_refuse_by(info, err, &refusal);
		goto err_unlock;
	}
	err = qgpu_plan_reply_fill_locked(reply, info, card, change);
	if (WARN_ON_ONCE(err))
		goto err_unlock;
	mutex_unlock(&card->lock);
	return genlmsg_reply(reply, info);

err_unlock:
	mutex_unlock(&card->lock);
	nlmsg_free(reply);
	return err;
}

int qgpu_plan_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct qgpu_plan_change change = { .tenants = NULL };
	struct qgpu_card *card;
	int err;

	err = qgpu_request_card(skb, info, &card);
	if (err)
		return err;
	err = parse_plan(info, &change);
	if (!err)
		err = plan_set(info, card, &change);
	free_plan(&change);
	qgpu_card_put(card);
	return err;
}
