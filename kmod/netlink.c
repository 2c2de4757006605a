// SPDX-License-Identifier: GPL-2.0
/*
 * netlink.c - the family: which attributes a request may have, who may make it, and a request as
 * the structs that card_plan.c takes. Decides nothing; every refusal leaves with an errno, a
 * sentence and the guilty attribute.
 */
#include <linux/capability.h>
#include <linux/ctype.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include "compat.h"
#include "qgpu.h"

/* ---- what a request may have ---- */

/* The card of a read-only request must exist: checked here, where also a dump can be refused with
 * a sentence. */
static int validate_card(const struct nlattr *attr, struct netlink_ext_ack *extack)
{
	struct qgpu_card *card;

	if (nla_len(attr) != sizeof(u32)) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "a card's number is a u32");
		return -EINVAL;
	}
	card = qgpu_card_get(nla_get_u32(attr));
	if (!card) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "no card of this number");
		return -ENODEV;
	}
	qgpu_card_put(card);
	return 0;
}

static const struct nla_policy read_policy[QGPU_A_CARD_INDEX + 1] = {
	[QGPU_A_CARD_INDEX] = NLA_POLICY_VALIDATE_FN(NLA_BINARY, validate_card, sizeof(u32)),
};

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

static const struct nla_policy plan_set_policy[QGPU_A_PLAN + 1] = {
	[QGPU_A_CARD_INDEX] = { .type = NLA_U32 },
	[QGPU_A_PLAN] = NLA_POLICY_NESTED(plan_policy),
};

static const struct nla_policy bind_policy[QGPU_A_BIND_MAX + 1] = {
	[QGPU_A_BIND_TENANT_NAME] = { .type = NLA_NUL_STRING, .len = QGPU_NAME_MAX - 1 },
	[QGPU_A_BIND_PID] = { .type = NLA_U32 },
	[QGPU_A_BIND_CGROUP_ID] = { .type = NLA_U64 },
	[QGPU_A_BIND_TSG_SERIAL] = { .type = NLA_U64 },
};

static const struct nla_policy bind_set_policy[QGPU_A_BIND + 1] = {
	[QGPU_A_CARD_INDEX] = { .type = NLA_U32 },
	[QGPU_A_BIND] = NLA_POLICY_NESTED(bind_policy),
};

/* ---- refusing ---- */

static int refuse(struct genl_info *info, int error, const struct nlattr *attr,
		  const char *sentence)
{
	/* NL_SET_ERR_MSG() takes literals only; ours are constants chosen elsewhere. */
	if (info->extack) {
		info->extack->_msg = sentence;
		info->extack->bad_attr = attr;
	}
	return error;
}

static int refuse_missing(struct genl_info *info, const struct nlattr *nest, u16 type,
			  const char *sentence)
{
	NL_SET_ERR_ATTR_MISS(info->extack, nest, type);
	return refuse(info, -EINVAL, NULL, sentence);
}

/* Of two values for one thing neither is meant. Types are known to be below 32: checked before. */
static int refuse_twice(struct genl_info *info, const struct nlattr *nest)
{
	const struct nlattr *attr;
	u32 seen = 0;
	int rem;

	BUILD_BUG_ON(QGPU_A_TENANT_MAX >= 32 || QGPU_A_BIND_MAX >= 32);
	nla_for_each_nested(attr, nest, rem) {
		if (seen & BIT(nla_type(attr)))
			return refuse(info, -EINVAL, attr, "this is given twice");
		seen |= BIT(nla_type(attr));
	}
	return 0;
}

/* A request that changes something: may the sender, and which card? Takes a reference. */
static int admin_card(struct sk_buff *skb, struct genl_info *info, struct qgpu_card **out)
{
	const struct nlattr *attr = info->attrs[QGPU_A_CARD_INDEX];

	if (!netlink_capable(skb, CAP_NET_ADMIN))
		return refuse(info, -EPERM, NULL,
			      "changing a card needs CAP_NET_ADMIN in the initial user namespace");
	if (!attr)
		return refuse_missing(info, NULL, QGPU_A_CARD_INDEX, "no card is named");
	*out = qgpu_card_get(nla_get_u32(attr));
	return *out ? 0 : refuse(info, -ENODEV, attr, "no card of this number");
}

/* Out of memory has no guilty attribute, and nobody below says a sentence for it. */
static int refuse_by(struct genl_info *info, int error, const struct qgpu_refusal *refusal)
{
	const char *sentence = refusal->sentence;

	if (!sentence)
		sentence = error == -ENOMEM ? "out of memory" : "the change is refused";
	return refuse(info, error, refusal->attr, sentence);
}

/* ---- PLAN_SET ---- */

/* Return: NULL, or why this is no tenant's name. QGPU_NAME_MAX has the rule. */
static const char *name_mistake(const char *name)
{
	const char *c;

	for (c = name; *c; c++)
		if (!isascii(*c) || !(isalnum(*c) || strchr("._-", *c)))
			break;
	if (*c || !*name)
		return "a tenant's name is 1 ... 63 of the characters A-Z a-z 0-9 . _ -";
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return "a tenant's name is not . or ..: names become folders";
	if (!strcmp(name, "nobody"))
		return "this name is taken: nobody owns the kernel's own channels";
	return NULL;
}

static int parse_name(struct genl_info *info, const struct nlattr *nest, const struct nlattr *attr,
		      u16 type, char *out)
{
	const char *mistake;

	if (!attr)
		return refuse_missing(info, nest, type, "no tenant is named");
	nla_strscpy(out, attr, QGPU_NAME_MAX);
	mistake = name_mistake(out);
	return mistake ? refuse(info, -EINVAL, attr, mistake) : 0;
}

static int parse_cgroups(struct genl_info *info, const struct nlattr *attr,
			 struct qgpu_tenant_change *to)
{
	u32 count = nla_len(attr) / sizeof(u64), i;

	if (nla_len(attr) % sizeof(u64))
		return refuse(info, -EINVAL, attr, "a list of cgroups is an array of u64");
	if (count > QGPU_CGROUPS_MAX)
		return refuse(info, -ENOSPC, attr, "more cgroups than a tenant can have");
	if (!count)
		return 0;
	to->cgroups = kmemdup(nla_data(attr), count * sizeof(u64), GFP_KERNEL);
	if (!to->cgroups)
		return refuse(info, -ENOMEM, NULL, "out of memory");
	to->cgroup_count = count;
	for (i = 0; i < count; i++)
		if (!to->cgroups[i])
			return refuse(info, -EINVAL, attr, "0 is no cgroup");
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
		err = refuse_twice(info, nest);
	if (err)
		return err;
	to->nest = nest;
	memcpy(to->attrs, tb, sizeof(tb));
	err = parse_name(info, nest, tb[QGPU_A_TENANT_NAME], QGPU_A_TENANT_NAME, to->name);
	if (err)
		return err;
	memory = tb[QGPU_A_TENANT_MEMORY_BYTES];
	if (memory && nla_get_u64(memory))
		return refuse(info, -EOPNOTSUPP, memory, "memory is not capped on this card");
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
			return refuse(info, -EINVAL, attr, "this is given twice");
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
		return refuse_missing(info, NULL, QGPU_A_PLAN, "no plan is given");
	nlmsg_for_each_attr(plan, info->nlhdr, GENL_HDRLEN, rem)
		if (nla_type(plan) == QGPU_A_PLAN)
			nla_for_each_nested(attr, plan, inner_rem)
				tenants += nla_type(attr) == QGPU_A_PLAN_TENANT;
	change->tenants = kvcalloc(tenants, sizeof(*change->tenants), GFP_KERNEL);
	if (!change->tenants)
		return refuse(info, -ENOMEM, NULL, "out of memory");
	nlmsg_for_each_attr(plan, info->nlhdr, GENL_HDRLEN, rem) {
		if (nla_type(plan) != QGPU_A_PLAN)
			continue;
		err = parse_plan_nest(info, plan, change);
		if (err)
			return err;
	}
	if (!change->attrs[QGPU_A_PLAN_GENERATION])
		return refuse_missing(info, info->attrs[QGPU_A_PLAN], QGPU_A_PLAN_GENERATION,
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

/* .running is false as soon as the card's device goes. */
static int refuse_going(struct genl_info *info)
{
	return refuse(info, -EBUSY, info->attrs[QGPU_A_CARD_INDEX], "the card is being removed");
}

static int plan_set(struct genl_info *info, struct qgpu_card *card, struct qgpu_plan_change *change)
{
	struct qgpu_refusal refusal = { NULL };
	struct sk_buff *reply;
	int err;

	/* Allocated first: once the plan is in force nothing may fail. */
	reply = qgpu_plan_reply_new(change);
	if (!reply)
		return refuse(info, -ENOMEM, NULL, "out of memory");
	mutex_lock(&card->lock);
	if (!card->running) {
		err = refuse_going(info);
		goto err_unlock;
	}
	err = qgpu_plan_set_locked(card, change, &refusal);
	if (err) {
		err = refuse_by(info, err, &refusal);
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

static int plan_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct qgpu_plan_change change = { .tenants = NULL };
	struct qgpu_card *card;
	int err;

	err = admin_card(skb, info, &card);
	if (err)
		return err;
	err = parse_plan(info, &change);
	if (!err)
		err = plan_set(info, card, &change);
	free_plan(&change);
	qgpu_card_put(card);
	return err;
}

/* ---- BIND ---- */

/* The process with that number as the sender sees it. */
static struct pid *find_process(u32 number)
{
	struct task_struct *task;
	struct pid *pid = NULL;

	rcu_read_lock();
	task = number <= INT_MAX ? pid_task(find_vpid(number), PIDTYPE_PID) : NULL;
	if (task)
		pid = get_pid(task_tgid(task));
	rcu_read_unlock();
	return pid;
}

static int parse_bind(struct genl_info *info, struct qgpu_bind *bind)
{
	const struct nlattr *nest = info->attrs[QGPU_A_BIND];
	struct nlattr *tb[QGPU_A_BIND_MAX + 1];
	int err, given;

	if (!nest)
		return refuse_missing(info, NULL, QGPU_A_BIND, "nothing to bind is given");
	err = nla_parse_nested(tb, QGPU_A_BIND_MAX, nest, bind_policy, info->extack);
	if (!err)
		err = refuse_twice(info, nest);
	if (!err)
		err = parse_name(info, nest, tb[QGPU_A_BIND_TENANT_NAME], QGPU_A_BIND_TENANT_NAME,
				 bind->name);
	if (err)
		return err;
	given = !!tb[QGPU_A_BIND_PID] + !!tb[QGPU_A_BIND_CGROUP_ID] + !!tb[QGPU_A_BIND_TSG_SERIAL];
	if (given != 1)
		return refuse(info, -EINVAL, nest, "give one of process, cgroup or TSG");
	bind->name_attr = tb[QGPU_A_BIND_TENANT_NAME];
	bind->what_attr = tb[QGPU_A_BIND_PID]		    ?:
				  tb[QGPU_A_BIND_CGROUP_ID] ?:
							      tb[QGPU_A_BIND_TSG_SERIAL];
	if (tb[QGPU_A_BIND_PID]) {
		bind->pid = find_process(nla_get_u32(bind->what_attr));
		if (!bind->pid)
			return refuse(info, -ENOENT, bind->what_attr, "no such process");
	} else if (tb[QGPU_A_BIND_CGROUP_ID]) {
		bind->cgroup_id = nla_get_u64(bind->what_attr);
		if (!bind->cgroup_id)
			return refuse(info, -EINVAL, bind->what_attr, "0 is no cgroup");
	} else {
		bind->tsg_serial = nla_get_u64(bind->what_attr);
	}
	return 0;
}

static int bind_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct qgpu_refusal refusal = { NULL };
	struct qgpu_bind bind = { NULL };
	struct qgpu_card *card;
	int err;

	err = admin_card(skb, info, &card);
	if (err)
		return err;
	err = parse_bind(info, &bind);
	if (!err) {
		mutex_lock(&card->lock);
		err = card->running ? qgpu_bind_locked(card, &bind, &refusal) : -EBUSY;
		if (err)
			err = err == -EBUSY ? refuse_going(info) : refuse_by(info, err, &refusal);
		mutex_unlock(&card->lock);
	}
	put_pid(bind.pid);
	qgpu_card_put(card);
	return err;
}

/* ---- the family ---- */

static const struct genl_ops qgpu_ops[] = {
	{
		.cmd = QGPU_CMD_CARD_GET,
		.doit = qgpu_card_get_doit,
		.dumpit = qgpu_card_get_dumpit,
		.policy = read_policy,
		.maxattr = ARRAY_SIZE(read_policy) - 1,
	},
	{
		.cmd = QGPU_CMD_TENANT_GET,
		.dumpit = qgpu_tenant_get_dumpit,
		.policy = read_policy,
		.maxattr = ARRAY_SIZE(read_policy) - 1,
	},
	{
		.cmd = QGPU_CMD_TSG_GET,
		.dumpit = qgpu_tsg_get_dumpit,
		.policy = read_policy,
		.maxattr = ARRAY_SIZE(read_policy) - 1,
	},
	/* Admin only. Not by GENL_ADMIN_PERM, which refuses without a sentence. */
	{
		.cmd = QGPU_CMD_PLAN_SET,
		.doit = plan_set_doit,
		.policy = plan_set_policy,
		.maxattr = ARRAY_SIZE(plan_set_policy) - 1,
	},
	{
		.cmd = QGPU_CMD_BIND,
		.doit = bind_doit,
		.policy = bind_set_policy,
		.maxattr = ARRAY_SIZE(bind_set_policy) - 1,
	},
	{
		.cmd = QGPU_CMD_STATS_GET,
		.start = qgpu_stats_get_start,
		.dumpit = qgpu_stats_get_dumpit,
		.done = qgpu_stats_get_done,
		.policy = read_policy,
		.maxattr = ARRAY_SIZE(read_policy) - 1,
	},
	{
		.cmd = QGPU_CMD_LOG_GET,
		.dumpit = qgpu_log_get_dumpit,
		.policy = read_policy,
		.maxattr = ARRAY_SIZE(read_policy) - 1,
	},
};

static const struct genl_multicast_group qgpu_groups[] = {
	{ .name = QGPU_GENL_MCGRP_EVENTS },
};

struct genl_family qgpu_family = {
	.name = QGPU_GENL_NAME,
	.version = QGPU_GENL_VERSION,
	.maxattr = QGPU_A_MAX,
	.parallel_ops = true, /* card->lock serialises; one slow card holds up no other family */
	.ops = qgpu_ops,
	.n_ops = ARRAY_SIZE(qgpu_ops),
	.mcgrps = qgpu_groups,
	.n_mcgrps = ARRAY_SIZE(qgpu_groups),
	.module = THIS_MODULE,
};

int qgpu_netlink_register(void)
{
	/* The portable core has enums of its own: the contract's are user space's. */
	BUILD_BUG_ON((int)CORE_BEST_EFFORT != (int)QGPU_POLICY_BEST_EFFORT);
	BUILD_BUG_ON((int)CORE_EQUAL_SHARE != (int)QGPU_POLICY_EQUAL_SHARE);
	BUILD_BUG_ON((int)CORE_FIXED_SHARE != (int)QGPU_POLICY_FIXED_SHARE);
	BUILD_BUG_ON((int)CORE_BURST_SHARE != (int)QGPU_POLICY_BURST_SHARE);
	BUILD_BUG_ON((int)CORE_ROTATES != (int)QGPU_PLACE_ROTATES);
	BUILD_BUG_ON((int)CORE_RANKED != (int)QGPU_PLACE_RANKED);
	BUILD_BUG_ON((int)CORE_CLOCKED != (int)QGPU_PLACE_CLOCKED);
	BUILD_BUG_ON((int)CORE_BESIDE != (int)QGPU_PLACE_BESIDE);
	BUILD_BUG_ON((int)CORE_NORMAL != (int)QGPU_CLASS_NORMAL);
	BUILD_BUG_ON((int)CORE_ONLINE != (int)QGPU_CLASS_ONLINE);
	BUILD_BUG_ON((int)CORE_OFFLINE != (int)QGPU_CLASS_OFFLINE);
	BUILD_BUG_ON((int)CORE_BY_WINDOW != (int)QGPU_SOURCE_WINDOW);
	BUILD_BUG_ON((int)CORE_BY_TRACE != (int)QGPU_SOURCE_TRACE);
	BUILD_BUG_ON((int)CORE_BY_SAMPLES != (int)QGPU_SOURCE_SAMPLED);
	BUILD_BUG_ON((int)CORE_BY_INFERENCE != (int)QGPU_SOURCE_INFERRED);
	BUILD_BUG_ON(CORE_HIST_BINS != QGPU_HIST_BINS || CORE_HIST_SHIFT != QGPU_HIST_SHIFT);
	BUILD_BUG_ON(sizeof(struct core_hist) != (QGPU_HIST_BINS + 1) * sizeof(u64));
	return genl_register_family(&qgpu_family);
}

void qgpu_netlink_unregister(void)
{
	genl_unregister_family(&qgpu_family);
}
