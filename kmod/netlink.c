// SPDX-License-Identifier: GPL-2.0
/*
 * netlink.c - the family: which attributes a request may have, who may make it, and BIND; PLAN_SET
 * is in plan_request.c. Decides nothing; every refusal leaves with an errno, a sentence and the
 * guilty attribute.
 */
#include <linux/capability.h>
#include <linux/ctype.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <net/genetlink.h>
#include "compat.h"
#include "qgpu.h"
#include "request.h"

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

int qgpu_refuse(struct genl_info *info, int error, const struct nlattr *attr, const char *sentence)
{
	/* NL_SET_ERR_MSG() takes literals only; ours are constants chosen elsewhere. */
	if (info->extack) {
		info->extack->_msg = sentence;
		info->extack->bad_attr = attr;
	}
	return error;
}

int qgpu_refuse_missing(struct genl_info *info, const struct nlattr *nest, u16 type,
			const char *sentence)
{
	NL_SET_ERR_ATTR_MISS(info->extack, nest, type);
	return qgpu_refuse(info, -EINVAL, NULL, sentence);
}

/* Of two values for one thing neither is meant. Types are known to be below 32: checked before. */
int qgpu_refuse_twice(struct genl_info *info, const struct nlattr *nest)
{
	const struct nlattr *attr;
	u32 seen = 0;
	int rem;

	BUILD_BUG_ON(QGPU_A_TENANT_MAX >= 32 || QGPU_A_BIND_MAX >= 32);
	nla_for_each_nested(attr, nest, rem) {
		if (seen & BIT(nla_type(attr)))
			return qgpu_refuse(info, -EINVAL, attr, "this is given twice");
		seen |= BIT(nla_type(attr));
	}
	return 0;
}

/* A request that changes something: may the sender, and which card? Takes a reference. */
int qgpu_request_card(struct sk_buff *skb, struct genl_info *info, struct qgpu_card **out)
{
	const struct nlattr *attr = info->attrs[QGPU_A_CARD_INDEX];

	if (!netlink_capable(skb, CAP_NET_ADMIN))
		return qgpu_refuse(
			info, -EPERM, NULL,
			"changing a card needs CAP_NET_ADMIN in the initial user namespace");
	if (!attr)
		return qgpu_refuse_missing(info, NULL, QGPU_A_CARD_INDEX, "no card is named");
	*out = qgpu_card_get(nla_get_u32(attr));
	return *out ? 0 : qgpu_refuse(info, -ENODEV, attr, "no card of this number");
}

/* Out of memory has no guilty attribute, and nobody below says a sentence for it. */
int qgpu_refuse_by(struct genl_info *info, int error, const struct qgpu_refusal *refusal)
{
	const char *sentence = refusal->sentence;

	if (!sentence)
		sentence = error == -ENOMEM ? "out of memory" : "the change is refused";
	return qgpu_refuse(info, error, refusal->attr, sentence);
}

/* .running is false as soon as the card's device goes, and while its driver has it back. */
int qgpu_refuse_going(struct genl_info *info, const struct qgpu_card *card)
{
	const char *why = "the card is being removed";

	if (READ_ONCE(card->unanswered))
		why = "the card is with its driver: it did not answer when the machine woke";
	else if (READ_ONCE(card->paused))
		why = "the card is with its driver: the machine sleeps or ends";
	return qgpu_refuse(info, -EBUSY, info->attrs[QGPU_A_CARD_INDEX], why);
}

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

int qgpu_request_name(struct genl_info *info, const struct nlattr *nest, const struct nlattr *attr,
		      u16 type, char *out)
{
	const char *mistake;

	if (!attr)
		return qgpu_refuse_missing(info, nest, type, "no tenant is named");
	nla_strscpy(out, attr, QGPU_NAME_MAX);
	mistake = name_mistake(out);
	return mistake ? qgpu_refuse(info, -EINVAL, attr, mistake) : 0;
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
		return qgpu_refuse_missing(info, NULL, QGPU_A_BIND, "nothing to bind is given");
	err = nla_parse_nested(tb, QGPU_A_BIND_MAX, nest, bind_policy, info->extack);
	if (!err)
		err = qgpu_refuse_twice(info, nest);
	if (!err)
		err = qgpu_request_name(info, nest, tb[QGPU_A_BIND_TENANT_NAME],
					QGPU_A_BIND_TENANT_NAME, bind->name);
	if (err)
		return err;
	given = !!tb[QGPU_A_BIND_PID] + !!tb[QGPU_A_BIND_CGROUP_ID] + !!tb[QGPU_A_BIND_TSG_SERIAL];
	if (given != 1)
		return qgpu_refuse(info, -EINVAL, nest, "give one of process, cgroup or TSG");
	bind->name_attr = tb[QGPU_A_BIND_TENANT_NAME];
	bind->what_attr = tb[QGPU_A_BIND_PID]		    ?:
				  tb[QGPU_A_BIND_CGROUP_ID] ?:
							      tb[QGPU_A_BIND_TSG_SERIAL];
	if (tb[QGPU_A_BIND_PID]) {
		bind->pid = find_process(nla_get_u32(bind->what_attr));
		if (!bind->pid)
			return qgpu_refuse(info, -ENOENT, bind->what_attr, "no such process");
	} else if (tb[QGPU_A_BIND_CGROUP_ID]) {
		bind->cgroup_id = nla_get_u64(bind->what_attr);
		if (!bind->cgroup_id)
			return qgpu_refuse(info, -EINVAL, bind->what_attr, "0 is no cgroup");
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

	err = qgpu_request_card(skb, info, &card);
	if (err)
		return err;
	err = parse_bind(info, &bind);
	if (!err) {
		mutex_lock(&card->lock);
		err = card->running ? qgpu_bind_locked(card, &bind, &refusal) : -EBUSY;
		if (err)
			err = err == -EBUSY ? qgpu_refuse_going(info, card) :
					      qgpu_refuse_by(info, err, &refusal);
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
		.doit = qgpu_plan_set_doit,
		.policy = qgpu_plan_set_policy,
		.maxattr = ARRAY_SIZE(qgpu_plan_set_policy) - 1,
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
