/* SPDX-License-Identifier: GPL-2.0 */
/*
 * request.h - what those who answer requests share: who may ask for what, and how it is refused,
 * with an errno, a sentence and the guilty attribute. netlink.c has it.
 */
#ifndef QGPU_REQUEST_H
#define QGPU_REQUEST_H

#include <linux/qgpu.h>
#include <net/netlink.h>

struct genl_info;
struct qgpu_card;
struct qgpu_refusal;

/* Each returns the errno. @sentence must outlive the request; @attr may be NULL. */
int qgpu_refuse(struct genl_info *info, int error, const struct nlattr *attr, const char *sentence);
int qgpu_refuse_missing(struct genl_info *info, const struct nlattr *nest, u16 type,
			const char *sentence);
int qgpu_refuse_by(struct genl_info *info, int error, const struct qgpu_refusal *refusal);
int qgpu_refuse_going(struct genl_info *info, const struct qgpu_card *card);
/* -EINVAL if anything in @nest is given twice, else 0. */
int qgpu_refuse_twice(struct genl_info *info, const struct nlattr *nest);

/* The card of a request that changes something, with a reference, if the sender may. */
int qgpu_request_card(struct sk_buff *skb, struct genl_info *info, struct qgpu_card **out);

/* A tenant's name by the rule at QGPU_NAME_MAX; @out has room for as much. */
int qgpu_request_name(struct genl_info *info, const struct nlattr *nest, const struct nlattr *attr,
		      u16 type, char *out);

/* plan_request.c */
extern const struct nla_policy qgpu_plan_set_policy[QGPU_A_PLAN + 1];
int qgpu_plan_set_doit(struct sk_buff *skb, struct genl_info *info);

#endif
