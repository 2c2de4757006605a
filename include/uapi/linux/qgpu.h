/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * qgpu.h - the contract between qgpu.ko and user space: generic netlink family "qgpu", version 1.
 *
 * The message tree. do = request and one reply, dump = many replies, mcast = event.
 *
 *   CARD_GET    do {CARD}, dump            -> CARD {identity, method, limits, state, generation}
 *   TENANT_GET  dump {CARD}                -> CARD, TENANT {asked, effective}
 *   TSG_GET     dump {CARD}                -> CARD, TSG
 *   STATS_GET   dump {CARD}                -> CARD, STATS {card totals | one tenant}
 *   PLAN_SET    do {CARD, PLAN}   [admin]  -> CARD, PLAN {generation, TENANT*}
 *   BIND        do {CARD, BIND}   [admin]  -> (acknowledgement)
 *   LOG_GET     dump {CARD}       [admin]  -> CARD, LOG {one time on the engine}, oldest first,
 *                                           the one that is on last
 *   EVENT       mcast "events"             -> CARD, EVENT
 *
 * Every message about one card names it with QGPU_A_CARD_INDEX at the top level; a dump without
 * it covers all cards.
 *
 * Rules. Times are u64 nanoseconds, shares u32 parts per million (1,000,000 = the whole card).
 * Unknown attributes and unknown flags are refused. Every refusal carries a sentence and the
 * guilty attribute (extended acknowledgement). Requests that change something, and LOG_GET, need
 * CAP_NET_ADMIN in the initial user namespace; that is checked before any object is looked at.
 *
 * Errors a caller may branch on:
 *   EPERM       not privileged
 *   EINVAL      malformed: unknown attribute or flag, missing attribute, wrong size
 *   ERANGE      a number outside its stated range
 *   ENODEV      no such card
 *   ENOENT      no such tenant, TSG or process
 *   EEXIST      a tenant of that name exists (only with QGPU_TENANT_CREATE_ONLY)
 *   ESTALE      the plan was replaced since the expected generation
 *   ENOSPC      guarantees over 100 %, or too many tenants, cgroups
 *   EOPNOTSUPP  understood, but this card or method cannot enforce it: nothing is accepted that
 *               is not enforced
 *   EBUSY       the card is changing method, being removed, or with its driver while the machine
 *               sleeps or ends
 *   EIO         the card did not take the plan; the former plan is still in force
 */
#ifndef _UAPI_LINUX_QGPU_H
#define _UAPI_LINUX_QGPU_H

#include <linux/types.h>

#define QGPU_GENL_NAME "qgpu"
#define QGPU_GENL_VERSION 1
#define QGPU_GENL_MCGRP_EVENTS "events"

/*
 * A tenant's name with its final 0: [A-Za-z0-9._-]{1,63}, but not ".", ".." or "nobody" (EINVAL).
 */
#define QGPU_NAME_MAX 64
#define QGPU_PPM 1000000	/* a whole card */
#define QGPU_WEIGHT_MIN 1
#define QGPU_WEIGHT_MAX 10000
#define QGPU_WEIGHT_DEFAULT 100
#define QGPU_TENANTS_MAX 1024	/* per card, "default" included */
#define QGPU_CGROUPS_MAX 64	/* per tenant */
#define QGPU_HIST_BINS 16	/* of a histogram: 65.5 us ... 1.07 s, and longer */
#define QGPU_HIST_SHIFT 16

/* Tenant ids. Ids are given by the kernel, never reused while the module is loaded. */
#define QGPU_TENANT_NOBODY 0	/* the kernel's and qgpu's own channels */
#define QGPU_TENANT_DEFAULT 1	/* every process that no tenant claims; always exists */

/**
 * enum qgpu_cmd - commands of the family
 * @QGPU_CMD_CARD_GET: what cards there are
 * @QGPU_CMD_TENANT_GET: tenants of a card, settings as asked and as applied
 * @QGPU_CMD_TSG_GET: TSGs of a card and whose they are
 * @QGPU_CMD_PLAN_SET: one atomic change of a card's settings, at an expected generation
 * @QGPU_CMD_BIND: a process, cgroup or TSG belongs to this tenant from now on
 * @QGPU_CMD_STATS_GET: cumulative counters, one timestamp a card
 * @QGPU_CMD_EVENT: multicast only
 * @QGPU_CMD_LOG_GET: who was on the engine lately, as far as it is remembered
 */
enum qgpu_cmd {
	QGPU_CMD_UNSPEC,
	QGPU_CMD_CARD_GET,
	QGPU_CMD_TENANT_GET,
	QGPU_CMD_TSG_GET,
	QGPU_CMD_PLAN_SET,
	QGPU_CMD_BIND,
	QGPU_CMD_STATS_GET,
	QGPU_CMD_EVENT,
	QGPU_CMD_LOG_GET,

	__QGPU_CMD_MAX,
	QGPU_CMD_MAX = __QGPU_CMD_MAX - 1
};

/* How shares are enforced on a card; chosen at probe. */
enum qgpu_method {
	QGPU_METHOD_NONE,	/* observed only */
	QGPU_METHOD_IMAGES,
	QGPU_METHOD_GATES,
	QGPU_METHOD_RM,
};

enum qgpu_policy {
	QGPU_POLICY_BEST_EFFORT,	/* the driver's own rotation */
	QGPU_POLICY_EQUAL_SHARE,
	QGPU_POLICY_FIXED_SHARE,	/* exclusive windows of the guarantee */
	QGPU_POLICY_BURST_SHARE,	/* guarantee, the rest by weight */
};

enum qgpu_class {
	QGPU_CLASS_NORMAL,
	QGPU_CLASS_ONLINE,
	QGPU_CLASS_OFFLINE,
};

enum qgpu_card_state {
	QGPU_CARD_OK,
	QGPU_CARD_DEGRADED,	/* the chip does not obey; the reason is in QGPU_A_CARD_REASON */
	QGPU_CARD_LOST,
};

/* Where a run time comes from, worst source used since the last reset of the counter. */
enum qgpu_source {
	QGPU_SOURCE_WINDOW,	/* one tenant admitted: edges measured */
	QGPU_SOURCE_TRACE,	/* the driver's context-switch trace */
	QGPU_SOURCE_SAMPLED,	/* who is on the engine, at jittered instants */
	QGPU_SOURCE_INFERRED,	/* from slices alone */
};

/* How a tenant is scheduled. */
enum qgpu_place {
	QGPU_PLACE_ROTATES,	/* its slice comes once a rotation */
	QGPU_PLACE_RANKED,	/* windows of its own, the one furthest behind next */
	QGPU_PLACE_CLOCKED,	/* windows of its own, on the card's clock */
	QGPU_PLACE_BESIDE,	/* online: admitted to the windows of all others */
};

/* What a time on the engine was. */
enum qgpu_seen {
	QGPU_SEEN_IDLE,		/* nobody computed, nothing was switched */
	QGPU_SEEN_SWITCH,	/* a context was saved or loaded */
	QGPU_SEEN_NOBODY,	/* work of no tenant */
	QGPU_SEEN_TENANT,
};

/* Why it ended. */
enum qgpu_end {
	QGPU_END_SLICE,		/* its slice was over, or it gave way to the next */
	QGPU_END_NO_WORK,	/* the engine idled behind it */
	QGPU_END_WINDOW,	/* somebody else's window began */
	QGPU_END_BUDGET,	/* it had used up its budget or ceiling */
	QGPU_END_TAIL,		/* work that could not be cut ended, late */
};

/* Who is admitted to the engine. */
enum qgpu_window {
	QGPU_WINDOW_DRIVER,	/* everybody, by the driver's slices */
	QGPU_WINDOW_ROTATION,	/* those who rotate, by planned slices */
	QGPU_WINDOW_EXCLUSIVE,	/* one tenant */
	QGPU_WINDOW_ONLINE,	/* the online tenants and one other */
	QGPU_WINDOW_QUIET,	/* those without work: all others have used up their budgets */
};

enum qgpu_event {
	QGPU_EVENT_UNSPEC,
	QGPU_EVENT_CARD_ADDED,
	QGPU_EVENT_CARD_REMOVED,
	QGPU_EVENT_CARD_STATE,		/* degraded, recovered, lost */
	QGPU_EVENT_PLAN,		/* the plan was replaced: new generation */
	QGPU_EVENT_TENANT_APPEARED,	/* its first TSG */
	QGPU_EVENT_TENANT_GONE,		/* its last TSG */
	QGPU_EVENT_TSG_BOUND,
	QGPU_EVENT_PREEMPT_REFUSED,	/* not acknowledged in time; one a second at most */
	QGPU_EVENT_HANG,		/* a kernel ran longer than hang_ns while others waited */
};

/* Top level of every message. */
enum qgpu_attr {
	QGPU_A_UNSPEC,
	QGPU_A_CARD_INDEX,	/* u32 */
	QGPU_A_CARD,		/* nested qgpu_attr_card */
	QGPU_A_TENANT,		/* nested qgpu_attr_tenant */
	QGPU_A_TSG,		/* nested qgpu_attr_tsg */
	QGPU_A_PLAN,		/* nested qgpu_attr_plan */
	QGPU_A_BIND,		/* nested qgpu_attr_bind */
	QGPU_A_STATS,		/* nested qgpu_attr_stats */
	QGPU_A_EVENT,		/* nested qgpu_attr_event */
	QGPU_A_LOG,		/* nested qgpu_attr_log */

	__QGPU_A_MAX,
	QGPU_A_MAX = __QGPU_A_MAX - 1
};

/* A card; all read only. */
enum qgpu_attr_card {
	QGPU_A_CARD_UNSPEC,
	QGPU_A_CARD_UUID,		/* string, "GPU-..." */
	QGPU_A_CARD_NAME,		/* string */
	QGPU_A_CARD_CHIP_ID,		/* u32, 0x164 = TU104 */
	QGPU_A_CARD_SIMULATED,		/* flag */
	QGPU_A_CARD_METHOD,		/* u32 enum qgpu_method */
	QGPU_A_CARD_STATE,		/* u32 enum qgpu_card_state */
	QGPU_A_CARD_REASON,		/* string, present unless OK */
	QGPU_A_CARD_POLICY,		/* u32 enum qgpu_policy */
	QGPU_A_CARD_GENERATION,		/* u64, of the plan in force; 1 before any PLAN_SET */
	QGPU_A_CARD_SWITCH_NS,		/* u64, cost of one switch assumed by the planner */
	QGPU_A_CARD_CYCLE_NS,		/* u64, the rotation in force; 0 = none */
	QGPU_A_CARD_SLICE_MIN_NS,	/* u64 */
	QGPU_A_CARD_SLICE_MAX_NS,	/* u64 */
	QGPU_A_CARD_TENANTS,		/* u32, with at least one TSG or a setting */
	QGPU_A_CARD_TSGS,		/* u32 */
	QGPU_A_CARD_PAD,

	__QGPU_A_CARD_MAX,
	QGPU_A_CARD_MAX = __QGPU_A_CARD_MAX - 1
};

/*
 * A tenant. In PLAN_SET a tenant is named by QGPU_A_TENANT_NAME; one that does not exist is
 * created with the given settings and defaults for the rest, one that exists keeps what is not
 * given. The settings are marked [set].
 */
enum qgpu_attr_tenant {
	QGPU_A_TENANT_UNSPEC,
	QGPU_A_TENANT_ID,		/* u32 */
	QGPU_A_TENANT_NAME,		/* string, key in PLAN_SET */
	QGPU_A_TENANT_FLAGS,		/* u32 QGPU_TENANT_*, PLAN_SET only */
	QGPU_A_TENANT_WEIGHT,		/* u32 1...10000 [set] */
	QGPU_A_TENANT_GUARANTEE_PPM,	/* u32 0...1000000 [set] */
	QGPU_A_TENANT_CEILING_PPM,	/* u32 1...1000000, 1000000 = none [set] */
	QGPU_A_TENANT_WAKE_NS,		/* u64, 0 = no promise [set] */
	QGPU_A_TENANT_CLASS,		/* u32 enum qgpu_class [set] */
	QGPU_A_TENANT_HANG_NS,		/* u64, 0 = off [set] */
	QGPU_A_TENANT_MEMORY_BYTES,	/* u64, 0 = no cap [set] */
	QGPU_A_TENANT_CGROUPS,		/* binary: array of u64 cgroup v2 ids (inode numbers),
					 * the whole list, replaces the former; of cgroups at most
					 * 31 levels below the root [set] */
	QGPU_A_TENANT_SHARE_PPM,	/* u32, effective among those awake */
	QGPU_A_TENANT_SLICE_NS,		/* u64, effective slice of each of its TSGs as the chip took it */
	QGPU_A_TENANT_WINDOW_NS,	/* u64, budget a period under windows, 0 = in rotation */
	QGPU_A_TENANT_AWAKE,		/* flag */
	QGPU_A_TENANT_TSGS,		/* u32 */
	QGPU_A_TENANT_PAD,
	QGPU_A_TENANT_PLACE,		/* u32 enum qgpu_place, by the plan in force */

	__QGPU_A_TENANT_MAX,
	QGPU_A_TENANT_MAX = __QGPU_A_TENANT_MAX - 1
};

#define QGPU_TENANT_REMOVE 0x1		/* its TSGs fall to their next ancestor's tenant */
#define QGPU_TENANT_CREATE_ONLY 0x2	/* EEXIST if it exists */

/* A TSG; read only. */
enum qgpu_attr_tsg {
	QGPU_A_TSG_UNSPEC,
	QGPU_A_TSG_SERIAL,	/* u64, never reused */
	QGPU_A_TSG_ID,		/* u32, hardware id, reused */
	QGPU_A_TSG_RUNLIST,	/* u32 */
	QGPU_A_TSG_TENANT_ID,	/* u32 */
	QGPU_A_TSG_PID,		/* u32, opener, in the reader's pid namespace; 0 = not visible */
	QGPU_A_TSG_CHANNELS,	/* u32 */
	QGPU_A_TSG_SLICE_NS,	/* u64, in the slot now; 0 = not admitted */
	QGPU_A_TSG_PAD,

	__QGPU_A_TSG_MAX,
	QGPU_A_TSG_MAX = __QGPU_A_TSG_MAX - 1
};

/*
 * One transaction. Every part is checked before any takes effect; all or nothing. An attribute
 * holds 64 KiB at most, so QGPU_A_PLAN may be given several times in one message (and comes so in
 * the reply): the tenants of all are one transaction, and each other attribute may be in any of
 * them, once. The reply names the tenants of the request: settings as they are now, effective
 * values and ids; after a dry run settings only; removed ones with QGPU_TENANT_REMOVE only.
 */
enum qgpu_attr_plan {
	QGPU_A_PLAN_UNSPEC,
	QGPU_A_PLAN_GENERATION,	/* u64: request: expected (ESTALE else); reply: now in force */
	QGPU_A_PLAN_FLAGS,	/* u32 QGPU_PLAN_* */
	QGPU_A_PLAN_POLICY,	/* u32 enum qgpu_policy */
	QGPU_A_PLAN_CYCLE_NS,	/* u64 override of the rotation's cycle, 0 = computed */
	QGPU_A_PLAN_TENANT,	/* nested qgpu_attr_tenant, any number */
	QGPU_A_PLAN_PAD,

	__QGPU_A_PLAN_MAX,
	QGPU_A_PLAN_MAX = __QGPU_A_PLAN_MAX - 1
};

#define QGPU_PLAN_DRY_RUN 0x1	/* check and compute; change nothing */
#define QGPU_PLAN_REPLACE 0x2	/* tenants not named are removed ("default" is reset) */

/* Exactly one of PID, CGROUP_ID, TSG_SERIAL. */
enum qgpu_attr_bind {
	QGPU_A_BIND_UNSPEC,
	QGPU_A_BIND_TENANT_NAME,	/* string */
	QGPU_A_BIND_PID,		/* u32, sender's pid namespace: its TSGs, now and later */
	QGPU_A_BIND_CGROUP_ID,		/* u64: added to the tenant's list */
	QGPU_A_BIND_TSG_SERIAL,		/* u64: this TSG */
	QGPU_A_BIND_PAD,

	__QGPU_A_BIND_MAX,
	QGPU_A_BIND_MAX = __QGPU_A_BIND_MAX - 1
};

/*
 * Cumulative counters. Without TENANT_ID: the card's totals. All replies of one dump of one card
 * carry the same TIME_NS: the sum of all tenants' RUN_NS, nobody's included, plus SWITCH_NS plus
 * IDLE_NS is the card's elapsed time within the published error. What removed tenants ran is in
 * nobody's RUN_NS from then on.
 */
enum qgpu_attr_stats {
	QGPU_A_STATS_UNSPEC,
	QGPU_A_STATS_TENANT_ID,		/* u32 */
	QGPU_A_STATS_TIME_NS,		/* u64 CLOCK_MONOTONIC */
	QGPU_A_STATS_SINCE_NS,		/* u64 when counting began */
	QGPU_A_STATS_GENERATION,	/* u64 */
	QGPU_A_STATS_RUN_NS,		/* u64 on the engine */
	QGPU_A_STATS_RUN_ERR_NS,	/* u64 bound of RUN_NS's error (3 sigma when sampled); between
					 * two readings sqrt(later^2 - earlier^2) */
	QGPU_A_STATS_SOURCE,		/* u32 enum qgpu_source */
	QGPU_A_STATS_WAIT_NS,		/* u64 had work and did not run */
	QGPU_A_STATS_SWITCH_NS,		/* u64 card only */
	QGPU_A_STATS_IDLE_NS,		/* u64 card only */
	QGPU_A_STATS_WINDOWS,		/* u64 exclusive windows opened */
	QGPU_A_STATS_SUBMITS,		/* u64 card only: images put in the slot */
	QGPU_A_STATS_PREEMPTS,		/* u64 */
	QGPU_A_STATS_OVERRUNS,		/* u64 windows that ended late by more than the cost p */
	QGPU_A_STATS_THROTTLED_NS,	/* u64 had work but its share was used up */
	QGPU_A_STATS_PAD,
	QGPU_A_STATS_WAIT_MAX_NS,	/* u64 longest single time from having work to running, as the
					 * looks saw it: not what a ceiling keeps from it; where its
					 * visits are shorter than 1 ms, some are missed */
	QGPU_A_STATS_HANGS,		/* u64 kernels that ran longer than hang_ns while others
					 * waited */
	QGPU_A_STATS_WAITS,		/* binary: QGPU_HIST_BINS u64, then the sum in ns: times from
					 * having work to running, as for WAIT_MAX_NS. Bin k counts
					 * those below 2^(QGPU_HIST_SHIFT + k) ns that none before it
					 * has, the last one all longer ones */
	QGPU_A_STATS_TAILS,		/* binary, likewise: how long work that could not be cut kept the
					 * engine when it was to leave */
	QGPU_A_STATS_VISITS,		/* u64 times it had the engine, that are over, as the looks saw
					 * them: what is shorter than their distance may be missed */
	QGPU_A_STATS_REMOVED_NS,	/* u64 card only: what removed tenants ran, which is in nobody's
					 * RUN_NS too */

	__QGPU_A_STATS_MAX,
	QGPU_A_STATS_MAX = __QGPU_A_STATS_MAX - 1
};

enum qgpu_attr_event {
	QGPU_A_EVENT_UNSPEC,
	QGPU_A_EVENT_KIND,		/* u32 enum qgpu_event */
	QGPU_A_EVENT_TIME_NS,		/* u64 CLOCK_MONOTONIC */
	QGPU_A_EVENT_TENANT_ID,		/* u32 */
	QGPU_A_EVENT_TENANT_NAME,	/* string */
	QGPU_A_EVENT_TSG_SERIAL,	/* u64 */
	QGPU_A_EVENT_PID,		/* u32, opener, in the initial pid namespace */
	QGPU_A_EVENT_GENERATION,	/* u64 */
	QGPU_A_EVENT_CARD_STATE,	/* u32 enum qgpu_card_state */
	QGPU_A_EVENT_REASON,		/* string */
	QGPU_A_EVENT_PAD,

	__QGPU_A_EVENT_MAX,
	QGPU_A_EVENT_MAX = __QGPU_A_EVENT_MAX - 1
};

/* A time in which the looks found the same on the engine; read only. */
enum qgpu_attr_log {
	QGPU_A_LOG_UNSPEC,
	QGPU_A_LOG_SERIAL,	/* u64, of a card, from 0 on without gaps: one that is missing was
				 * overwritten */
	QGPU_A_LOG_FROM_NS,	/* u64 CLOCK_MONOTONIC, halfway between two looks */
	QGPU_A_LOG_TO_NS,	/* u64, likewise */
	QGPU_A_LOG_SEEN,	/* u32 enum qgpu_seen */
	QGPU_A_LOG_TENANT_ID,	/* u32, with QGPU_SEEN_TENANT; absent: it is gone */
	QGPU_A_LOG_END,		/* u32 enum qgpu_end, with QGPU_SEEN_TENANT when it is over */
	QGPU_A_LOG_WINDOW,	/* u32 enum qgpu_window, on when it ended */
	QGPU_A_LOG_DUE_ID,	/* u32 tenant whose window that is; absent: whoever is next */
	QGPU_A_LOG_PAD,
	QGPU_A_LOG_ONGOING,	/* flag: it is not over; TO_NS is the last look's, WINDOW is on now,
				 * there is no END. Last of a dump; under the same SERIAL it comes
				 * again when it is over */
	QGPU_A_LOG_SINCE_NS,	/* u64 when this log began: another one is another log, whose serials
				 * begin anew */

	__QGPU_A_LOG_MAX,
	QGPU_A_LOG_MAX = __QGPU_A_LOG_MAX - 1
};

#endif
