// SPDX-License-Identifier: GPL-2.0
/*
 * listen.c - the card as it is offered to qgpu.ko (sim_device.h): registers, memory, and who is
 * told what the driver makes. One listener a card; every event comes with host->mutex held.
 */
#include "host.h"

static struct front_host *to_host(struct qgpu_sim_device *device)
{
	return container_of(device, struct front_host, device);
}

/* Is there somebody who is told of @tsg? */
static bool is_heard(const struct front_tsg *tsg)
{
	lockdep_assert_held(&tsg->host->mutex);
	return tsg->host->events && !tsg->hidden;
}

int front_tell_tsg_created_locked(struct front_tsg *tsg)
{
	struct front_host *host = tsg->host;
	struct qgpu_driver_tsg told = {
		.serial = tsg->serial,
		.opener = tsg->opener,
		.cgroup = tsg->cgroup,
		.runlist = tsg->runlist,
		.tsg_id = tsg->id,
		.slice_ns = front_tsg_slice_ns(tsg),
	};

	return is_heard(tsg) ? host->events->tsg_created(host->events_ctx, &told) : 0;
}

void front_tell_tsg_destroyed_locked(struct front_tsg *tsg)
{
	if (is_heard(tsg))
		tsg->host->events->tsg_destroyed(tsg->host->events_ctx, tsg->serial);
}

int front_tell_channel_created_locked(struct front_channel *channel)
{
	struct front_host *host = channel->tsg->host;
	struct hw_channel told;

	if (!is_heard(channel->tsg))
		return 0;
	front_channel_describe(channel, &told);
	return host->events->channel_created(host->events_ctx, channel->tsg->serial, &told);
}

void front_tell_channel_destroyed_locked(struct front_channel *channel)
{
	struct front_host *host = channel->tsg->host;

	if (is_heard(channel->tsg))
		host->events->channel_destroyed(host->events_ctx, channel->tsg->serial,
						channel->id);
}

void front_tell_slice_locked(struct front_tsg *tsg)
{
	struct front_host *host = tsg->host;

	if (is_heard(tsg))
		host->events->slice_changed(host->events_ctx, tsg->serial, front_tsg_slice_ns(tsg));
}

void front_tell_list_locked(struct front_host *host)
{
	struct front_tsg *tsg;
	u32 count = 0;

	lockdep_assert_held(&host->mutex);
	list_for_each_entry(tsg, &host->tsgs, node) {
		if (tsg->scheduled && !tsg->hidden)
			host->serials[count++] = tsg->serial;
	}
	host->events->list_changed(host->events_ctx, host->card->gr_runlist, host->serials, count);
}

void front_tell_call_begins_locked(struct front_tsg *tsg)
{
	struct front_host *host = tsg->host;

	if (is_heard(tsg))
		host->events->call_begins(host->events_ctx, tsg->serial);
}

void front_tell_call_ended_locked(struct front_tsg *tsg)
{
	struct front_host *host = tsg->host;

	if (is_heard(tsg))
		host->events->call_ended(host->events_ctx, tsg->serial);
}

static u32 sim_read32(struct qgpu_sim_device *device, u32 offset)
{
	return sim_card_read32(to_host(device)->card, offset);
}

static void sim_write32(struct qgpu_sim_device *device, u32 offset, u32 value)
{
	sim_card_write32(to_host(device)->card, offset, value);
}

static int mem_alloc(struct qgpu_sim_device *device, u32 bytes, struct hw_mem *out)
{
	struct sim_mem mem;
	int err = sim_mem_alloc(to_host(device)->card, bytes, &mem);

	if (err)
		return err;
	out->cpu = mem.cpu;
	out->bus_addr = mem.addr;
	out->bytes = mem.bytes;
	out->target = HW_TARGET_SYSMEM_COHERENT;
	return 0;
}

static void mem_free(struct qgpu_sim_device *device, struct hw_mem *mem)
{
	struct sim_mem own = { .cpu = mem->cpu, .addr = mem->bus_addr, .bytes = mem->bytes };

	sim_mem_free(to_host(device)->card, &own);
	mem->cpu = NULL;
}

static int replay_tsg_locked(struct front_tsg *tsg)
{
	struct front_channel *channel;
	int err = front_tell_tsg_created_locked(tsg);

	if (err)
		return err;
	list_for_each_entry(channel, &tsg->channels, node) {
		if (channel->leaving)
			continue;
		err = front_tell_channel_created_locked(channel);
		if (err) {
			tsg->host->events->tsg_destroyed(tsg->host->events_ctx, tsg->serial);
			return err;
		}
	}
	return 0;
}

static int listen(struct qgpu_sim_device *device, const struct qgpu_driver_events *events,
		  void *ctx)
{
	struct front_host *host = to_host(device);
	struct front_tsg *tsg;
	int err = 0;

	mutex_lock(&host->mutex);
	if (host->events) {
		mutex_unlock(&host->mutex);
		return -EBUSY;
	}
	host->events = events;
	host->events_ctx = ctx;
	list_for_each_entry(tsg, &host->tsgs, node) {
		err = tsg->hidden ? 0 : replay_tsg_locked(tsg);
		if (err)
			break;
	}
	if (err) {
		/* What was told is taken back, so that the listener is left with nothing. */
		list_for_each_entry_continue_reverse(tsg, &host->tsgs, node)
			front_tell_tsg_destroyed_locked(tsg);
		host->events = NULL;
	}
	mutex_unlock(&host->mutex);
	return err;
}

static void give_slot_locked(struct front_host *host)
{
	if (!host->slot_taken)
		return;
	host->slot_taken = false;
	front_runlist_publish_locked(host);
}

static void unlisten(struct qgpu_sim_device *device)
{
	struct front_host *host = to_host(device);

	mutex_lock(&host->mutex);
	give_slot_locked(host);
	host->list_followed = false;
	host->events = NULL;
	mutex_unlock(&host->mutex);
}

static int take_slot(struct qgpu_sim_device *device, u32 runlist)
{
	struct front_host *host = to_host(device);
	int err = 0;

	mutex_lock(&host->mutex);
	if (runlist != host->card->gr_runlist || !host->events) {
		err = -EINVAL;
	} else if (!host->slot_taken) {
		host->slot_taken = true;
		front_tell_list_locked(host);
	}
	mutex_unlock(&host->mutex);
	return err;
}

static int follow_list(struct qgpu_sim_device *device, u32 runlist)
{
	struct front_host *host = to_host(device);
	int err = 0;

	mutex_lock(&host->mutex);
	if (runlist != host->card->gr_runlist || !host->events || host->slot_taken) {
		err = -EINVAL;
	} else {
		host->list_followed = true;
		front_tell_list_locked(host);
	}
	mutex_unlock(&host->mutex);
	return err;
}

static void give_slot(struct qgpu_sim_device *device, u32 runlist)
{
	struct front_host *host = to_host(device);

	mutex_lock(&host->mutex);
	if (runlist == host->card->gr_runlist)
		give_slot_locked(host);
	mutex_unlock(&host->mutex);
}

const struct qgpu_sim_ops front_sim_ops = {
	.read32 = sim_read32,
	.write32 = sim_write32,
	.mem_alloc = mem_alloc,
	.mem_free = mem_free,
	.listen = listen,
	.unlisten = unlisten,
	.take_slot = take_slot,
	.follow_list = follow_list,
	.give_slot = give_slot,
};
