/* SPDX-License-Identifier: GPL-2.0 */
/*
 * host.h - the driver's side of a card's scheduler: TSGs, channels, its runlist, and who listens.
 * A front_host is one card as the driver knows it.
 */
#ifndef SIM_FRONT_HOST_H
#define SIM_FRONT_HOST_H

#include <linux/idr.h>
#include <linux/workqueue.h>

#include "front.h"
#include "memory.h"
#include "sim_device.h"
#include "trace.h"

#define HOST_HISTORY 256
#define HOST_REAP_MS 10 /* how often zombies are looked at */

/**
 * struct front_tsg - a TSG; all [host->mutex] unless set once
 * @serial, @id, @runlist, @opener, @cgroup, @uid, @vaspace: set once; opener, vaspace and cgroup,
 *          which may be NULL, are references
 * @timeslice_us: as asked through the driver, whose "us" are units of 1024 ns
 * @hidden: the listener is never told of it; set once
 * @scheduled: a channel of it was scheduled, so it is in the list
 * @leaving: its owner is freeing all of it
 * @node: in host->tsgs, or host->zombies when nobody owns it any more
 */
struct front_tsg {
	struct front_host *host;
	u64 serial;
	u16 id, runlist;
	struct pid *opener;
	struct cgroup *cgroup;
	u32 uid;
	struct front_account *account;
	struct front_vaspace *vaspace;
	u64 timeslice_us;
	bool hidden, scheduled, leaving;
	u32 channel_count;
	struct list_head channels;
	struct list_head node;
};

/* Control 0x2080110b on a channel (gate.c). */
enum front_gate {
	GATE_OPEN,
	GATE_STOPPED,  /* disabled and taken off the card */
	GATE_UNLISTED, /* disabled and out of the list, nothing was preempted */
};

/**
 * struct front_channel - a channel; all [host->mutex] unless set once
 * @id, @instance, @userd, @userd_page (one of its), @userd_addr: set once
 * @scheduled: enabled, and an entry of the list
 * @leaving: freed by its owner, but not yet off the card; never enabled again
 * @fresh: within one GPFIFO_SCHEDULE: not scheduled before it
 * @rang: it was rung since it was gated; no lock, see gate.c
 * @client: who rings it; valid while its object exists
 * @ring_node: [client->ring_lock]
 */
struct front_channel {
	struct front_tsg *tsg;
	u16 id;
	bool scheduled, leaving, fresh;
	enum front_gate gate;
	bool rang;
	struct sim_mem instance;
	struct front_memory *userd;
	struct page *userd_page;
	u64 userd_addr;
	struct list_head node;
	struct front_client *client;
	struct list_head ring_node;
};

/* What is kept of a TSG that is gone. */
struct front_past {
	u64 serial, run_ns;
	pid_t pid;
	u16 id;
};

/**
 * struct front_host - see above
 * @users: [hosts_lock] references, see front_host_get()
 * @retired: [hosts_lock]
 * @card: set once; the host owns it
 * @published: the auxiliary device was added; set once by sim_main.c
 * @mutex: everything below. Taken before qgpu.ko's own lock: held while it is told
 * @restless, @restless_ms: see restless.c; no lock
 * @tsgs: in the order of the list
 * @zombies: freed, but not yet off the card; @reaper looks after them
 * @lists: two buffers; @spare is the one that the card does not own
 * @events, @events_ctx: the listener, NULL if none
 * @slot_taken: the listener holds the slot of the graphics runlist
 * @list_followed: it is told of the lists that are submitted
 * @last_list, @last_entries: what was submitted last
 * @list_lost: the chip did not take the last list
 * @serials: room for list_changed
 * @past, @past_count: ring of what is gone
 * @hidden_pid: whose TSGs the listener is not told of; 0: nobody's
 * @trace: has locks of its own
 */
struct front_host {
	struct qgpu_sim_device device;
	u32 users;
	bool retired;
	struct sim_card *card;
	struct dentry *debug_dir;

	bool published;

	struct mutex mutex;
	struct list_head tsgs, zombies;
	struct delayed_work reaper, restless;
	u32 restless_ms;
	struct ida tsg_ids, channel_ids;
	u64 next_serial;
	struct sim_mem lists[2];
	u32 spare;
	u64 last_list;
	u32 last_entries;
	const struct qgpu_driver_events *events;
	void *events_ctx;
	bool slot_taken, list_followed;
	bool list_lost;
	u64 *serials;
	u32 hidden_pid;
	struct front_past past[HOST_HISTORY];
	u64 past_count;

	struct front_trace trace;
};

/* ---- host.c ---- */

/* Offer @card to tenants; front_host_get() finds it from then on. */
int front_host_init(struct front_host *host, struct sim_card *card);
/* After front_host_retire(), and nobody listens: the card stops, zombies go, and the card with
 * them. */
void front_host_fini(struct front_host *host);
/* The card with this minor, or NULL. It stays for who has a reference: its node is open, or an
 * object is on it. */
struct front_host *front_host_get(u32 minor);
void front_host_hold(struct front_host *host); /* one more, by who has one */
void front_host_put(struct front_host *host);
/* Nobody gets it any more; returns when nobody has it. */
void front_host_retire(struct front_host *host);
/* More than the greatest minor. */
u32 front_host_count(void);
/* Where it is on the bus, as the driver spells it. */
void front_host_location(const struct front_host *host, char *out, size_t bytes);
/* The driver's own number of the card. */
u32 front_host_gpu_id(const struct front_host *host);
/* What of the card is set once, after power-on. */
void front_host_start(struct front_host *host);
/* The card's clock. */
u64 front_host_time_ns(struct front_host *host);

/* ---- tsg.c ---- */

u32 front_tsg_schedule(struct front_tsg *tsg, bool enable);
u32 front_tsg_set_timeslice(struct front_tsg *tsg, u64 timeslice_us);
u32 front_tsg_preempt(struct front_tsg *tsg, const struct rm_preempt_params *params);
u64 front_tsg_slice_ns(const struct front_tsg *tsg);
/* Neither on the engine nor on a PBDMA (hardware page 4.1). Caller holds host->mutex. */
bool front_tsg_off_locked(struct front_tsg *tsg);
/* Have it, or only @channel of it, taken off the card; wait a little. Return: it is off. */
bool front_tsg_evict_locked(struct front_tsg *tsg, const struct front_channel *channel);
/* The last of a TSG that is off. */
void front_tsg_release_locked(struct front_tsg *tsg);
u64 front_tsg_run_ns(struct front_tsg *tsg);

/* ---- channel.c ---- */

void front_channel_enable_locked(struct front_channel *channel);
void front_channel_disable_locked(struct front_channel *channel);
/* Enable it after a gate; the host looks at it if @look, or if it was rung meanwhile. */
void front_channel_resume_locked(struct front_channel *channel, bool look);
/* Have the host look at every channel of it that may run. Caller holds host->mutex. */
void front_tsg_look_locked(struct front_tsg *tsg);
bool front_channel_off_locked(const struct front_channel *channel);
/* Unbind and forget it; it is off. */
void front_channel_release_locked(struct front_channel *channel);
void front_channel_describe(const struct front_channel *channel, struct hw_channel *out);
/* A page of @client's was rung with @token: its channels, or, if it is another's token, all that
 * there are on the card: which were rung before it in the same page is not known. */
void front_ring_channels(struct front_client *client, struct front_host *host, u32 token);
u32 front_channel_token(const struct front_channel *channel);
/* What its PCCSR INST is bound to. */
u32 front_channel_instance(const struct front_channel *channel);

/* ---- gate.c ---- */

/* Stop or start channels of any client; a status code. No client->lock is held. */
u32 front_gate(struct front_host *host, const struct rm_disable_params *params);

/* ---- runlist.c ---- */

int front_runlist_init(struct front_host *host);
void front_runlist_fini(struct front_host *host);
/* The list changed: submit it, or tell who holds the slot. Caller holds host->mutex. */
void front_runlist_publish_locked(struct front_host *host);
/* As a driver that knows of nobody else: submit the list, whoever holds the slot. */
void front_runlist_insist(struct front_host *host);

/* ---- sleep.c ---- */

/* The card's power goes, and comes back; in between it is used by nobody. */
void front_host_sleep(struct front_host *host);
void front_host_wake(struct front_host *host);
/* Both at once, while tenants are at work. */
void front_host_power_cycle(struct front_host *host);

/* ---- restless.c ---- */

void front_restless_init(struct front_host *host);
void front_restless_fini(struct front_host *host);
/* About every so many milliseconds, half of it at least; 0: never. */
void front_restless_set(struct front_host *host, u32 every_ms);

/* ---- listen.c ---- */

extern const struct qgpu_sim_ops front_sim_ops;
/* Tell the listener, if there is one. Caller holds host->mutex. */
int front_tell_tsg_created_locked(struct front_tsg *tsg);
void front_tell_tsg_destroyed_locked(struct front_tsg *tsg);
int front_tell_channel_created_locked(struct front_channel *channel);
void front_tell_channel_destroyed_locked(struct front_channel *channel);
void front_tell_slice_locked(struct front_tsg *tsg);
/* What the list is, to who holds the slot. Caller holds host->mutex. */
void front_tell_list_locked(struct front_host *host);
/* Before and after a call that stops or frees channels of @tsg. */
void front_tell_call_begins_locked(struct front_tsg *tsg);
void front_tell_call_ended_locked(struct front_tsg *tsg);

/* ---- debugfs.c ---- */

void front_debugfs_init(struct front_host *host, struct dentry *root);

extern const struct front_class front_class_tsg, front_class_channel;

#endif
