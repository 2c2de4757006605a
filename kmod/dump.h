/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dump.h - what the files that answer dumps share; dump.c has it.
 */
#ifndef QGPU_DUMP_H
#define QGPU_DUMP_H

#include <linux/types.h>

struct netlink_callback;
struct qgpu_card;
struct sk_buff;

/* The first card of number @from or more that the dump is of, with a reference; NULL: none is left.
 */
struct qgpu_card *qgpu_dump_next_card(struct netlink_callback *cb, u32 from);

/* One message of a dump: header and card number, then what @fill puts. */
int qgpu_dump_message(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd, u32 card_index,
		      int (*fill)(struct sk_buff *skb, void *object), void *object);

#endif
