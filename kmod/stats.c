// SPDX-License-Identifier: GPL-2.0
/*
 * stats.c - STATS_GET: the counters of cards and tenants. Those of all cards that a dump is of are
 * taken at once when it starts, each card's under one hold of its lock, so that they add up.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <net/genetlink.h>
#include "compat.h"
#include "dump.h"
#include "qgpu.h"

/* What is told of one card, taken under one hold of its lock. */
struct stats {
	struct stats *next;
	u32 card_index, count, told;
	u64 time_ns, since_ns, generation;
	struct turn_counters card;
	u64 removed_run_ns;
	struct stats_row {
		u32 tenant_id;
		u64 visits;
		struct core_counters counters;
	} rows[];
};

/* Where a dump is: what is left to tell. */
struct stats_place {
	struct stats *left;
};

static struct stats_place *place_of(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct stats_place) > sizeof(cb->ctx));
	return (struct stats_place *)cb->ctx;
}

static void fill_stats(struct qgpu_card *card, struct stats *stats)
{
	struct qgpu_tenant *tenant;
	unsigned long id;

	lockdep_assert_held(&card->lock);
	stats->card_index = card->index;
	stats->since_ns = card->since_ns;
	stats->generation = card->generation;
	/* As of the scheduler's last look: a look whose time somebody chooses would bias the bill.
	 */
	stats->time_ns = card->slot_taken ? turn_looked_ns(card->turn) : ktime_get_ns();
	turn_counters(card->turn, &stats->card);
	stats->removed_run_ns = card->removed_run_ns;
	xa_for_each(&card->tenants, id, tenant) {
		struct stats_row *row = &stats->rows[stats->count++];

		row->tenant_id = tenant->id;
		row->visits = tenant->visits;
		turn_tenant_counters(card->turn, &tenant->core, &row->counters);
	}
}

/* Anybody may have many of them begun and never read: the memory is the caller's, and is got
 * without the lock, or a caller who has none left would keep the scheduler waiting. Return: NULL:
 * the card is on its way out; an error. */
static struct stats *take_stats(struct qgpu_card *card)
{
	u32 room = READ_ONCE(card->tenant_count);
	struct stats *stats;
	bool fits, runs;

	for (;;) {
		stats = kvzalloc(struct_size(stats, rows, room), GFP_KERNEL_ACCOUNT);
		if (!stats)
			return ERR_PTR(-ENOMEM);
		mutex_lock(&card->lock);
		runs = card->running;
		fits = card->tenant_count <= room;
		room = card->tenant_count;
		if (runs && fits)
			fill_stats(card, stats);
		mutex_unlock(&card->lock);
		if (runs && fits)
			return stats;
		kvfree(stats);
		if (!runs)
			return NULL;
	}
}

static void free_stats(struct stats *stats)
{
	struct stats *next;

	for (; stats; stats = next) {
		next = stats->next;
		kvfree(stats);
	}
}

int qgpu_stats_get_start(struct netlink_callback *cb)
{
	struct stats_place *at = place_of(cb);
	struct stats **tail = &at->left, *stats = NULL;
	struct qgpu_card *card;
	u32 from = 0;

	cb->seq = atomic_read(&qgpu_dump_seq);
	while (!IS_ERR(stats) && (card = qgpu_dump_next_card(cb, from))) {
		from = card->index + 1;
		stats = take_stats(card);
		if (!IS_ERR_OR_NULL(stats)) {
			*tail = stats;
			tail = &stats->next;
		}
		qgpu_card_put(card);
	}
	if (!IS_ERR(stats))
		return 0;
	free_stats(at->left);
	at->left = NULL;
	NL_SET_ERR_MSG(cb->extack, "out of memory");
	return PTR_ERR(stats);
}

static int put_counters(struct sk_buff *skb, const struct stats_row *row)
{
	const struct core_counters *counters = &row->counters;

	if (nla_put_u64_64bit(skb, QGPU_A_STATS_RUN_NS, counters->run_ns, QGPU_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_STATS_RUN_ERR_NS, counters->run_err_ns,
			      QGPU_A_STATS_PAD) ||
	    nla_put_u32(skb, QGPU_A_STATS_SOURCE, counters->source) ||
	    nla_put_u64_64bit(skb, QGPU_A_STATS_WAIT_NS, counters->wait_ns, QGPU_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_STATS_WINDOWS, counters->windows, QGPU_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_STATS_PREEMPTS, counters->preempts, QGPU_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_STATS_OVERRUNS, counters->overruns, QGPU_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_STATS_THROTTLED_NS, counters->throttled_ns,
			      QGPU_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_STATS_WAIT_MAX_NS, counters->wait_max_ns,
			      QGPU_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_STATS_HANGS, counters->hangs, QGPU_A_STATS_PAD) ||
	    nla_put(skb, QGPU_A_STATS_WAITS, sizeof(counters->waits), &counters->waits) ||
	    nla_put(skb, QGPU_A_STATS_TAILS, sizeof(counters->tails), &counters->tails) ||
	    nla_put_u64_64bit(skb, QGPU_A_STATS_VISITS, row->visits, QGPU_A_STATS_PAD))
		return -EMSGSIZE;
	return 0;
}

static int put_card_counters(struct sk_buff *skb, const struct stats *stats)
{
	const struct turn_counters *counters = &stats->card;

	if (nla_put_u64_64bit(skb, QGPU_A_STATS_SWITCH_NS, counters->switch_ns, QGPU_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_STATS_IDLE_NS, counters->idle_ns, QGPU_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_STATS_SUBMITS, counters->submits, QGPU_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_STATS_PREEMPTS, counters->preempts, QGPU_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_STATS_REMOVED_NS, stats->removed_run_ns,
			      QGPU_A_STATS_PAD))
		return -EMSGSIZE;
	return 0;
}

/* Message number @told of a card: its totals, nobody's, then one a tenant. */
static int put_stats(struct sk_buff *skb, void *object)
{
	const struct stats *stats = object;
	struct nlattr *nest = nla_nest_start(skb, QGPU_A_STATS);
	const struct stats_row *row;
	int err;

	if (!nest ||
	    nla_put_u64_64bit(skb, QGPU_A_STATS_TIME_NS, stats->time_ns, QGPU_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_STATS_SINCE_NS, stats->since_ns, QGPU_A_STATS_PAD) ||
	    nla_put_u64_64bit(skb, QGPU_A_STATS_GENERATION, stats->generation, QGPU_A_STATS_PAD))
		return -EMSGSIZE;
	if (stats->told == 0) {
		err = put_card_counters(skb, stats);
	} else if (stats->told == 1) {
		err = nla_put_u32(skb, QGPU_A_STATS_TENANT_ID, QGPU_TENANT_NOBODY) ||
		      nla_put_u64_64bit(skb, QGPU_A_STATS_RUN_NS,
					stats->card.nobody_ns + stats->removed_run_ns,
					QGPU_A_STATS_PAD);
	} else {
		row = &stats->rows[stats->told - 2];
		err = nla_put_u32(skb, QGPU_A_STATS_TENANT_ID, row->tenant_id) ||
		      put_counters(skb, row);
	}
	if (err)
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

int qgpu_stats_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct stats_place *at = place_of(cb);
	struct stats *stats;
	int err;

	while ((stats = at->left)) {
		for (; stats->told < stats->count + 2; stats->told++) {
			err = qgpu_dump_message(skb, cb, QGPU_CMD_STATS_GET, stats->card_index,
						put_stats, stats);
			if (err)
				return skb->len ?: err;
		}
		at->left = stats->next;
		kvfree(stats);
	}
	return skb->len;
}

int qgpu_stats_get_done(struct netlink_callback *cb)
{
	free_stats(place_of(cb)->left);
	return 0;
}
