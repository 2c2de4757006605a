/* SPDX-License-Identifier: GPL-2.0 */
/*
 * qgpu.h - objects of qgpu.ko, who may touch them, and what each file offers the others.
 *
 *   main.c       module load and unload
 *   netlink.c    family, policies, requests in     bind.c       what is bound by hand
 *   plan_request.c  PLAN_SET ──► card_plan.c  one atomic change of a plan
 *   dump.c       messages out
 *   stats.c      counters out
 *   log.c        who was on the engine: a ring, a counter and tracepoints
 *   event.c      events: queued under the lock, sent outside it
 *   card.c       a card's life: bus device, list of cards, state
 *   hold.c       it is taken over from its driver and given back, also for sleep and reboot
 *   io.c         its registers and memory: simulated ──► io_pci.c  on the PCI bus
 *   tenant.c     tenants and TSGs; the driver's events; whose a TSG is
 *   list_mem.c   memory of the lists that are put in its slot
 *   stranger.c   channels in the driver's list that it did not tell of
 *   pci.c        real cards: a survey each, nothing else
 *   sched.c      a worker and a timer a card: turn_run() and what follows an error
 *   turn.c core/ hw/                                  portable; never see a lock
 *
 * Locks. There are three, all mutexes, taken in this order:
 *
 *   lock              protects                         held while           never while held
 *   ----------------  -------------------------------  -------------------  ----------------------
 *   card->hold_lock   who has the card: we or its      taking over, giving  card->lock held
 *                     driver                           back: may wait
 *   (driver's mutex)  the driver's objects             it calls our events  -
 *   qgpu_cards_lock   qgpu_cards; a card's .node,      a few list steps     anything that sleeps
 *                     .index                                                but card->lock
 *   card->lock        everything marked [lock] below,  a turn, a plan, a    user copies; netlink
 *                     the turn, the images             dump's one message   replies and events; ops
 *                                                                           marked [front];
 *                                                                           waiting for the chip
 *                                                                           beyond one preempt or
 *                                                                           submit deadline
 *
 * The driver takes its own mutex and then, in our events, card->lock: so card->lock is never held
 * when an op marked [front] (sim_device.h) is called. The timer's callback takes nothing; it wakes
 * the worker. Functions whose name ends in _locked want card->lock held and say so to lockdep.
 *
 * Lifetimes. A card is referenced by the list and by whoever called qgpu_card_get(); it is freed
 * with the last reference. After it left the list its tenants and TSGs are gone (.running false,
 * no objects), so a holder of a late reference finds an empty card. Tenants and TSGs are owned by
 * their card and freed only under card->lock; nobody keeps a pointer to them without it.
 */
#ifndef QGPU_QGPU_H
#define QGPU_QGPU_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/kref.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <linux/qgpu.h>
#include "io.h"
#include "turn.h"

struct netlink_ext_ack;
struct nlattr;
struct qgpu_log;

/* Ancestors of a process that are remembered: those nearest to the root, which is one. */
#define QGPU_ANCESTORS_MAX 32
/* Processes bound by hand and alive at a time, per card. */
#define QGPU_BOUND_PIDS_MAX 1024
/* Events that wait for the sender; more are dropped and the listeners told (ENOBUFS). */
#define QGPU_EVENTS_MAX 4096

/**
 * struct qgpu_tenant - a tenant of one card
 * @core: its settings, share and ledger [lock]
 * @id: given once, never reused
 * @name: unique on the card, set once at creation
 * @cgroup_count, @cgroups: ids of the cgroups that are its own [lock]
 * @tsg_count: TSGs it has now, on any runlist [lock]
 * @former_tsg_count: before the change in progress [lock]
 * @visits: times it had the engine, that are over [lock]
 * @doomed: being removed by the change in progress: nothing resolves to it [lock]
 */
struct qgpu_tenant {
	struct core_tenant core;
	u32 id;
	char name[QGPU_NAME_MAX];
	u32 cgroup_count;
	u64 *cgroups;
	u32 tsg_count, former_tsg_count;
	u64 visits;
	bool doomed;
};

/**
 * struct qgpu_tsg - a TSG of the driver
 * @turn: what the scheduler sees; @turn.channels points to @channels [lock]
 * @runlist: set once at creation
 * @scheduled: it is on the card's runlist and known to the turn; set once at creation
 * @opener: process that opened the client, as thread group; NULL for the driver's own; holds a
 *          reference; set once at creation
 * @ancestor_count, @ancestors: ids of the opener's cgroup and of those above it, nearest first,
 *          less those too deep; set once at creation
 * @bound: id of the tenant it was bound to by hand, 0 = none [lock]
 * @tenant: whose it is; NULL = nobody's [lock]
 * @former: whose it was before the change in progress [lock]
 * @channels: [lock]
 */
struct qgpu_tsg {
	struct turn_tsg turn;
	u32 runlist;
	bool scheduled;
	struct pid *opener;
	u32 ancestor_count;
	u64 ancestors[QGPU_ANCESTORS_MAX];
	u32 bound;
	struct qgpu_tenant *tenant, *former;
	struct hw_channel channels[HW_MAX_TSG_CHANNELS];
};

/* A process bound by hand; kept until it is gone. */
struct qgpu_bound_pid {
	struct list_head node;
	struct pid *pid;
	u32 tenant_id;
};

/* Whose a cgroup is: sorted by id, replaced as a whole. */
struct qgpu_cgroup_map {
	u32 count;
	struct qgpu_cgroup_row {
		u64 id;
		struct qgpu_tenant *tenant;
	} rows[];
};

/* What was told of something that may happen all the time: up to which count, and from when on the
 * next may be told. */
struct qgpu_told {
	u64 count, next_ns;
};

/**
 * struct qgpu_card - a card
 *
 * Set once at creation:
 * @io: its registers and memory
 * @hw, @images, @image_bytes: chip, its two list buffers
 * @runlist, @engine_index: what is scheduled: graphics and compute
 * @params: the planner's constants
 * @known: [lock] room for stranger.c, by channel id; NULL: the driver's list cannot be read
 * @uuid, @name: as the driver reports them
 * @since_ns: when counting began
 *
 * @index: lowest free number when it came [qgpu_cards_lock]
 *
 * [hold_lock]:
 * @held: the driver tells us what exists
 * @paused: and has its card back for a while; read without it for a sentence
 * @unanswered: for it did not answer when the machine woke, and is asked again; read likewise
 *
 * [lock]:
 * @method: what enforces; becomes gates when the turn falls back to them
 * @running: it may be changed and is scheduled; false from the moment its device goes
 * @slot_taken: the driver handed its list over
 * @state, @reason, @errors, @erred_ns: health; constant sentence; failed turns in a row, and when
 *                                    the last was
 * @turned_ns: when the last turn ended
 * @generation: of the plan in force
 * @policy, @cycle_ns: card settings in force
 * @log: who was on the engine lately; NULL = not remembered
 * @tenants: by id; @default_tenant is one of them
 * @cgroups: whose a cgroup is
 * @bound_pids: by BIND
 * @tsgs: by serial
 * @removed_run_ns: what tenants ran that are no longer there
 * @refusals, @hangs: preemptions refused and kernels too long as of the last event, and when the
 * next may be
 * @events, @event_count, @events_lost: to be sent by @event_work
 */
struct qgpu_card {
	struct list_head node;
	struct kref ref;
	u32 index;

	struct qgpu_io io;
	struct hw hw;
	struct hw_mem images[2];
	u32 runlist, engine_index;
	struct core_params params;
	u64 *known;
	char uuid[48];
	char name[32];
	u64 since_ns;

	struct kthread_worker *worker;
	struct kthread_work work;
	struct hrtimer timer;
	struct work_struct event_work;
	struct work_struct give_work;
	struct delayed_work take_work;

	struct mutex hold_lock;
	bool held, paused, unanswered;

	struct mutex lock;
	enum turn_method method;
	bool running, slot_taken;
	enum qgpu_card_state state;
	const char *reason;
	u32 errors;
	u64 erred_ns, turned_ns;
	u64 generation;
	enum core_policy policy;
	u64 cycle_ns;
	struct turn *turn;
	struct qgpu_log *log;
	struct xarray tenants;
	struct qgpu_tenant *default_tenant;
	u32 tenant_count, tsg_count;
	struct qgpu_cgroup_map *cgroups;
	struct list_head bound_pids;
	u32 bound_pid_count;
	struct xarray tsgs;
	u64 removed_run_ns;
	struct qgpu_told refusals, hangs;
	struct list_head events;
	u32 event_count;
	bool events_lost;
};

/* Why a request is refused: errno for the program, sentence and attribute for the person. */
struct qgpu_refusal {
	const char *sentence;
	const struct nlattr *attr;
};

/* ---- card.c ---- */

extern struct mutex qgpu_cards_lock;
/* Objects of all kinds that exist; zero at unload or we leak. */
extern atomic_t qgpu_live;
/* Changes whenever a card or tenant comes or goes, or a plan is replaced. */
extern atomic_t qgpu_dump_seq;
/* Changes whenever a TSG comes, goes or is moved: any process can do that all the time, so it must
 * not disturb who reads cards and tenants. */
extern atomic_t qgpu_tsg_dump_seq;

int qgpu_cards_register(void);
void qgpu_cards_unregister(void);
u32 qgpu_cards_count(void);

/* The card of that number, or of the lowest number from there on; NULL = none. Takes a reference.
 */
struct qgpu_card *qgpu_card_get(u32 index);
struct qgpu_card *qgpu_card_get_from(u32 index);
void qgpu_card_put(struct qgpu_card *card);

/* Account for what the chip answered (0 = it obeyed): state, reason, event. */
void qgpu_card_judge_locked(struct qgpu_card *card, int error);
/* Somebody else's list was found in the slot: the next turn or apply puts ours over it. 0; -ENODEV:
 * what is in it could not be seen, and it stays. */
int qgpu_card_readopt_locked(struct qgpu_card *card);
/* Gates enforce from here on, though images did: the driver gets its slot back. */
void qgpu_card_give_locked(struct qgpu_card *card);
/* turn_apply(), or turn_relist(), with the slot taken back where that was lost. */
int qgpu_card_apply_locked(struct qgpu_card *card);
int qgpu_card_relist_locked(struct qgpu_card *card);

/* ---- hold.c ---- */

int qgpu_hold_register(void);
void qgpu_hold_unregister(void);
/* The driver's objects, then its list: from here on the card is scheduled by us. */
int qgpu_hold_take(struct qgpu_card *card);
/* Everything is as the driver set it, and no turn or event comes any more. */
void qgpu_hold_give(struct qgpu_card *card);
void qgpu_hold_give_slot(struct work_struct *work);
void qgpu_hold_take_again(struct work_struct *work);

/* ---- list_mem.c ---- */

/* TSG ids of the chip: most TSGs at a time. */
#define QGPU_TSGS_MAX 4096u

/* Room for the lists of the card's turn; 0, or an error of mem_alloc. */
int qgpu_lists_alloc(struct qgpu_card *card);
/* None of them was ever in the slot. */
void qgpu_lists_free(struct qgpu_card *card);
/* The driver has its slot back: they are freed, unless the card may read them still. */
void qgpu_lists_release(struct qgpu_card *card);

/* ---- stranger.c ---- */

/* 0 or -ENOMEM; fini accepts a card without. */
int qgpu_strangers_init(struct qgpu_card *card);
void qgpu_strangers_fini(struct qgpu_card *card);
/* The list in the slot, which is not ours, has channels that nobody told of, or cannot be read: 1;
 * it has none: 0; -ENODEV: the card does not answer, and nothing is known. */
int qgpu_strangers_found_locked(struct qgpu_card *card);

/* ---- pci.c ---- */

int qgpu_pci_register(void);
void qgpu_pci_unregister(void);

/* ---- tenant.c ---- */

extern const struct qgpu_driver_events qgpu_driver_events;

/* A tenant that nobody knows yet; NULL = out of memory. Free it if it never became known. */
struct qgpu_tenant *qgpu_tenant_create(const char *name, u32 id);
void qgpu_tenant_free(struct qgpu_tenant *tenant);
u32 qgpu_tenant_new_id(void);
struct qgpu_tenant *qgpu_tenant_find_locked(struct qgpu_card *card, const char *name);

/* Whose cgroups are whose, of the tenants in @tenants that are not doomed; ERR_PTR(-ENOMEM). */
struct qgpu_cgroup_map *qgpu_cgroup_map_create(struct qgpu_tenant *const *tenants, u32 count);
/* Two tenants claim the same one: the id, else 0. */
u64 qgpu_cgroup_map_clash(const struct qgpu_cgroup_map *map);

/* Give every TSG to whom it belongs by @map; unsettle puts the former owners back; announce tells
 * the world who moved, while all tenants, new and doomed, are in the card's set. Between settle and
 * either of them the lock is not dropped. */
void qgpu_tsgs_settle_locked(struct qgpu_card *card, const struct qgpu_cgroup_map *map);
void qgpu_tsgs_unsettle_locked(struct qgpu_card *card);
void qgpu_tsgs_announce_locked(struct qgpu_card *card);

int qgpu_tenants_init(struct qgpu_card *card);
void qgpu_tenants_fini(struct qgpu_card *card);

/* ---- card_plan.c ---- */

/**
 * struct qgpu_tenant_change - one tenant of a PLAN_SET, as parsed
 * @nest, @attrs: for naming the guilty attribute
 * @flags: QGPU_TENANT_*
 * @settings: valid where @attrs[] has the attribute
 * @cgroup_count, @cgroups: likewise; owned by the change
 * @tenant: whom it is about; filled in when prepared
 */
struct qgpu_tenant_change {
	const struct nlattr *nest;
	const struct nlattr *attrs[QGPU_A_TENANT_MAX + 1];
	char name[QGPU_NAME_MAX];
	u32 flags;
	struct core_settings settings;
	u32 cgroup_count;
	u64 *cgroups;
	struct qgpu_tenant *tenant;
};

/**
 * struct qgpu_plan_change - a PLAN_SET, as parsed
 * @attrs: the plan's own attributes, for naming the guilty one
 */
struct qgpu_plan_change {
	const struct nlattr *attrs[QGPU_A_PLAN_MAX + 1];
	u64 generation;
	u32 flags;
	enum core_policy policy;
	u64 cycle_ns;
	u32 tenant_count;
	struct qgpu_tenant_change *tenants;
};

/* Check @change and, unless it is a dry run, bring it about: all or nothing. */
int qgpu_plan_set_locked(struct qgpu_card *card, struct qgpu_plan_change *change,
			 struct qgpu_refusal *refusal);

/* ---- bind.c ---- */

/* What becomes @name's: exactly one of the three. @pid is the thread group's. */
struct qgpu_bind {
	const struct nlattr *name_attr, *what_attr;
	char name[QGPU_NAME_MAX];
	struct pid *pid;
	u64 cgroup_id, tsg_serial;
};

int qgpu_bind_locked(struct qgpu_card *card, const struct qgpu_bind *bind,
		     struct qgpu_refusal *refusal);

/* ---- sched.c ---- */

int qgpu_sched_start(struct qgpu_card *card);
/* Returns when no turn runs or will run; .running must be false already. Accepts a card whose
 * start failed. */
void qgpu_sched_stop(struct qgpu_card *card);
/* Have a turn run soon: something changed. */
void qgpu_sched_kick(struct qgpu_card *card);

/* ---- event.c ---- */

/* Queue an event; @tenant and @tsg may be NULL. Out of memory: lost, and the listeners are told. */
void qgpu_event_locked(struct qgpu_card *card, enum qgpu_event kind,
		       const struct qgpu_tenant *tenant, const struct qgpu_tsg *tsg);
void qgpu_event_work(struct work_struct *work);

/* ---- log.c ---- */

/* Between make and start of the turn; 0 or -ENOMEM. */
int qgpu_log_init(struct qgpu_card *card);
/* When the turn is over; accepts a card without one. */
void qgpu_log_fini(struct qgpu_card *card);

/* ---- netlink.c, dump.c, stats.c, log.c ---- */

struct genl_family;
struct genl_info;
struct netlink_callback;
struct sk_buff;

extern struct genl_family qgpu_family;

int qgpu_netlink_register(void);
void qgpu_netlink_unregister(void);

int qgpu_card_get_doit(struct sk_buff *skb, struct genl_info *info);
int qgpu_card_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int qgpu_tenant_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int qgpu_tsg_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int qgpu_stats_get_start(struct netlink_callback *cb);
int qgpu_stats_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int qgpu_stats_get_done(struct netlink_callback *cb);
int qgpu_log_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
/* A PLAN_SET's reply: room for it, and what was set. */
struct sk_buff *qgpu_plan_reply_new(const struct qgpu_plan_change *change);
int qgpu_plan_reply_fill_locked(struct sk_buff *skb, struct genl_info *info, struct qgpu_card *card,
				const struct qgpu_plan_change *change);

#endif
