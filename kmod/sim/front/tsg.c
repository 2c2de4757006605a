// SPDX-License-Identifier: GPL-2.0
/*
 * tsg.c - TSGs (class 0xa06c): their life, their slice, and getting one off the card.
 *
 * A TSG whose owner goes while it runs something that can't be cut becomes a zombie: disabled,
 * unlisted, its ids and memory still its own, until the reaper finds it off the card.
 */
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "host.h"

#define PREEMPT 0x2634u
#define PREEMPT_PENDING BIT(20)
#define PREEMPT_TYPE_TSG BIT(24)
#define PBDMA_MAP(p) (0x2390u + 4u * (p))
#define ENGINE_STATUS(e) (0x2640u + 8u * (e))
#define PBDMA_STATUS(p) (0x3080u + 4u * (p))

/* Bits 15:13 of both status registers. */
#define STATUS_INVALID 0u
#define STATUS_VALID 1u
#define STATUS_LOAD 5u
#define STATUS_SAVE 6u
#define STATUS_SWITCH 7u

#define TIMESLICE_DEFAULT_US 1024u
#define TIMESLICE_MAX_US (255u << 15)
#define SLICE_UNIT_NS 1024u

/* TIMEOUT: 20 ms, far over a save of anything that can be cut; longer work is the reaper's. */
#define EVICT_NS (20 * NSEC_PER_MSEC)

static bool status_off(u32 status, u16 id, bool engine)
{
	bool current_id = (status & 0xfff) == id;
	bool next_id = ((status >> 16) & 0xfff) == id;

	switch ((status >> 13) & 7) {
	case STATUS_INVALID:
		return true;
	case STATUS_VALID:
	case STATUS_SAVE:
		return !current_id;
	case STATUS_LOAD:
		return !next_id;
	default:
		return !engine && !current_id && !next_id;
	}
}

bool front_tsg_off_locked(struct front_tsg *tsg)
{
	struct sim_card *card = tsg->host->card;
	u32 p;

	if (!status_off(sim_card_read32(card, ENGINE_STATUS(card->gr_engine)), tsg->id, true))
		return false;
	for (p = 0; p < CHIP_PBDMAS; p++) {
		if (!(sim_card_read32(card, PBDMA_MAP(p)) & BIT(tsg->runlist)))
			continue;
		if (!status_off(sim_card_read32(card, PBDMA_STATUS(p)), tsg->id, false))
			return false;
	}
	return true;
}

static bool is_off(struct front_tsg *tsg, const struct front_channel *channel)
{
	return channel ? front_channel_off_locked(channel) : front_tsg_off_locked(tsg);
}

bool front_tsg_evict_locked(struct front_tsg *tsg, const struct front_channel *channel)
{
	struct sim_card *card = tsg->host->card;
	u64 deadline = ktime_get_ns() + EVICT_NS;
	bool asked = false;

	lockdep_assert_held(&tsg->host->mutex);
	while (!is_off(tsg, channel)) {
		if (ktime_get_ns() > deadline)
			return false;
		/* One request register for all: leave another's alone while it is pending. */
		if (!asked && !(sim_card_read32(card, PREEMPT) & PREEMPT_PENDING)) {
			sim_card_write32(card, PREEMPT, tsg->id | PREEMPT_TYPE_TSG);
			asked = true;
		}
		usleep_range(20, 60);
	}
	return true;
}

/* TIMEOUT: the caller's, or 1 s. client->lock keeps the TSG; host->mutex is not held over it. */
u32 front_tsg_preempt(struct front_tsg *tsg, const struct rm_preempt_params *params)
{
	struct front_host *host = tsg->host;
	u32 timeout_us = params->manual_timeout ? params->timeout_us : RM_PREEMPT_TIMEOUT_MAX_US;
	u64 deadline = ktime_get_ns() + (u64)timeout_us * NSEC_PER_USEC;
	u32 status = RM_OK;

	if (timeout_us > RM_PREEMPT_TIMEOUT_MAX_US)
		return RM_INVALID_ARGUMENT;
	mutex_lock(&host->mutex);
	while (sim_card_read32(host->card, PREEMPT) & PREEMPT_PENDING && ktime_get_ns() < deadline)
		usleep_range(20, 60);
	sim_card_write32(host->card, PREEMPT, tsg->id | PREEMPT_TYPE_TSG);
	/* What was on the card and has work left comes back by itself, what was asleep is woken. */
	front_tsg_look_locked(tsg);
	mutex_unlock(&host->mutex);
	if (!params->wait)
		return RM_OK;
	while (sim_card_read32(host->card, PREEMPT) & PREEMPT_PENDING) {
		if (ktime_get_ns() > deadline) {
			status = RM_TIMEOUT;
			break;
		}
		usleep_range(20, 60);
	}
	return status;
}

u64 front_tsg_slice_ns(const struct front_tsg *tsg)
{
	return max_t(u64, tsg->timeslice_us, 1) * SLICE_UNIT_NS;
}

u64 front_tsg_run_ns(struct front_tsg *tsg)
{
	return tsg->host->card->ops->tsg_run_ns(tsg->host->card, tsg->id);
}

void front_tsg_release_locked(struct front_tsg *tsg)
{
	struct front_host *host = tsg->host;
	struct front_channel *channel, *next;
	u64 run_ns;

	list_for_each_entry_safe(channel, next, &tsg->channels, node)
		front_channel_release_locked(channel);
	run_ns = front_tsg_run_ns(tsg);
	host->card->ops->tsg_forget(host->card, tsg->id);
	front_trace_forget_locked(tsg);
	host->past[host->past_count++ % HOST_HISTORY] = (struct front_past){
		.serial = tsg->serial,
		.run_ns = run_ns,
		.pid = pid_nr(tsg->opener),
		.id = tsg->id,
	};
	list_del(&tsg->node);
	ida_free(&host->tsg_ids, tsg->id);
	front_vaspace_put(tsg->vaspace);
	put_pid(tsg->opener);
	if (tsg->cgroup)
		cgroup_put(tsg->cgroup);
	atomic_dec(&tsg->account->tsgs);
	front_account_put(tsg->account);
	atomic_dec(&front_live.tsgs);
	kfree(tsg);
}

/* Where the process lives now; NULL: it is gone. */
static struct cgroup *get_cgroup(struct pid *pid)
{
	struct cgroup *cgroup = NULL;
	struct task_struct *task;

	rcu_read_lock();
	task = pid_task(pid, PIDTYPE_PID);
	if (task)
		cgroup = task_dfl_cgroup(task);
	if (cgroup && !cgroup_tryget(cgroup))
		cgroup = NULL;
	rcu_read_unlock();
	return cgroup;
}

static u32 tsg_create(struct front_object *object, union front_params *params)
{
	struct front_client *client = object->client;
	struct front_host *host = object->host;
	struct front_object *on;
	struct front_tsg *tsg;
	int id = -ENOMEM;

	if (params->tsg.engine_type != RM_ENGINE_NULL &&
	    params->tsg.engine_type != RM_ENGINE_GRAPHICS)
		return RM_INVALID_ARGUMENT;
	on = front_object_find(client, params->tsg.vaspace);
	if (!on || on->klass != &front_class_vaspace || on->host != host)
		return RM_INVALID_OBJECT_HANDLE;
	if (!front_account_take(&client->account->tsgs, FRONT_MAX_TSGS))
		return RM_INSUFFICIENT_RESOURCES;
	tsg = kzalloc(sizeof(*tsg), GFP_KERNEL_ACCOUNT);
	if (!tsg)
		goto err_account;
	id = ida_alloc_max(&host->tsg_ids, CHIP_TSGS - 1, GFP_KERNEL);
	if (id < 0)
		goto err_tsg;
	tsg->host = host;
	tsg->id = id;
	tsg->runlist = host->card->gr_runlist;
	tsg->opener = get_pid(client->opener);
	/* Whose opener is gone works for whoever asks. */
	tsg->cgroup = get_cgroup(client->opener) ?: get_cgroup(task_pid(current));
	tsg->uid = from_kuid(&init_user_ns, current_euid());
	tsg->account = client->account;
	front_account_get(tsg->account);
	tsg->vaspace = on->vaspace;
	front_vaspace_get(tsg->vaspace);
	tsg->timeslice_us = TIMESLICE_DEFAULT_US;
	INIT_LIST_HEAD(&tsg->channels);
	atomic_inc(&front_live.tsgs);

	mutex_lock(&host->mutex);
	tsg->serial = ++host->next_serial;
	tsg->hidden = host->hidden_pid && (u32)pid_nr(tsg->opener) == host->hidden_pid;
	list_add_tail(&tsg->node, &host->tsgs);
	front_trace_name_locked(tsg);
	if (front_tell_tsg_created_locked(tsg)) {
		front_tsg_release_locked(tsg);
		mutex_unlock(&host->mutex);
		return RM_NO_MEMORY;
	}
	mutex_unlock(&host->mutex);
	front_object_depend(object, on);
	object->tsg = tsg;
	return RM_OK;

err_tsg:
	kfree(tsg);
err_account:
	atomic_dec(&client->account->tsgs);
	return id == -ENOSPC ? RM_INSUFFICIENT_RESOURCES : RM_NO_MEMORY;
}

static void unschedule_locked(struct front_tsg *tsg)
{
	struct front_channel *channel;

	front_tell_call_begins_locked(tsg);
	list_for_each_entry(channel, &tsg->channels, node) {
		front_channel_disable_locked(channel);
		channel->scheduled = false;
	}
	if (tsg->scheduled) {
		tsg->scheduled = false;
		front_runlist_publish_locked(tsg->host);
	}
	if (!tsg->leaving)
		front_tell_call_ended_locked(tsg);
}

/* All its channels at once; what follows for each is then cheap. */
static void tsg_leave(struct front_object *object)
{
	mutex_lock(&object->host->mutex);
	object->tsg->leaving = true;
	unschedule_locked(object->tsg);
	front_tsg_evict_locked(object->tsg, NULL);
	mutex_unlock(&object->host->mutex);
}

static void tsg_destroy(struct front_object *object)
{
	struct front_tsg *tsg = object->tsg;
	struct front_host *host = object->host;

	mutex_lock(&host->mutex);
	front_tell_tsg_destroyed_locked(tsg);
	if (list_empty(&tsg->channels) && front_tsg_off_locked(tsg)) {
		front_tsg_release_locked(tsg);
	} else {
		list_move_tail(&tsg->node, &host->zombies);
		atomic_inc(&front_live.zombies);
		schedule_delayed_work(&host->reaper, msecs_to_jiffies(HOST_REAP_MS));
	}
	mutex_unlock(&host->mutex);
}

u32 front_tsg_schedule(struct front_tsg *tsg, bool enable)
{
	struct front_host *host = tsg->host;
	struct front_channel *channel;
	u32 status = RM_INVALID_STATE; /* nothing in it to schedule */

	mutex_lock(&host->mutex);
	if (!enable) {
		unschedule_locked(tsg);
		front_tsg_evict_locked(tsg, NULL);
		mutex_unlock(&host->mutex);
		return RM_OK;
	}
	list_for_each_entry(channel, &tsg->channels, node) {
		if (channel->leaving)
			continue;
		if (!channel->scheduled && channel->gate == GATE_OPEN)
			channel->fresh = true;
		channel->scheduled = true;
		tsg->scheduled = true;
		status = RM_OK;
	}
	if (!status)
		front_runlist_publish_locked(host);
	/* What was scheduled before is left as it is: stopped, or asleep. */
	list_for_each_entry(channel, &tsg->channels, node) {
		if (channel->fresh)
			front_channel_enable_locked(channel);
		channel->fresh = false;
	}
	mutex_unlock(&host->mutex);
	return status;
}

u32 front_tsg_set_timeslice(struct front_tsg *tsg, u64 timeslice_us)
{
	if (timeslice_us > TIMESLICE_MAX_US)
		return RM_INVALID_ARGUMENT;
	mutex_lock(&tsg->host->mutex);
	tsg->timeslice_us = timeslice_us;
	front_tell_slice_locked(tsg);
	if (tsg->scheduled) {
		front_runlist_publish_locked(tsg->host);
		front_tsg_look_locked(tsg);
	}
	mutex_unlock(&tsg->host->mutex);
	return RM_OK;
}

const struct front_class front_class_tsg = {
	.id = RM_CLASS_TSG,
	.parents = { RM_CLASS_DEVICE },
	.params_bytes = sizeof(struct rm_tsg_params),
	.create = tsg_create,
	.leave = tsg_leave,
	.destroy = tsg_destroy,
};
