// SPDX-License-Identifier: GPL-2.0
/*
 * gate.c - control 0x2080110b: stop channels and let them go again, whoever's they are; the driver
 * does not compare their clients with the caller.
 *
 *   with preemption   ENABLE_CLR, then the TSG is taken off the card. Enabled, the host looks at
 *                     it again by itself.
 *   scheduling only   ENABLE_CLR, and a list without it: what runs goes on to its end. Enabled, it
 *                     stays asleep until somebody rings it or has it preempted: who waits for
 *                     queued work and submits nothing more is lost, as measured on a real card.
 *
 * No lock of the caller's client is held: the listed clients' are taken one after another.
 */
#include "faults.h"
#include "host.h"

typedef u32 (*channel_fn)(struct front_channel *channel, void *arg);

/* Do @fn to channel @handle of @client, under its lock. Return: a status code. */
static u32 with_channel(u32 client_handle, u32 handle, const struct front_host *host, channel_fn fn,
			void *arg)
{
	struct front_client *client;
	struct front_object *object;
	u32 status = front_client_get_any(client_handle, &client);

	if (status)
		return status;
	mutex_lock(&client->lock);
	object = client->dead ? NULL : front_object_find(client, handle);
	if (!object || object->klass != &front_class_channel || object->host != host)
		status = RM_INVALID_OBJECT_HANDLE;
	else
		status = fn(object->channel, arg);
	mutex_unlock(&client->lock);
	front_client_put(client);
	return status;
}

static u32 for_each_channel(struct front_host *host, const struct rm_disable_params *params,
			    channel_fn fn, void *arg)
{
	u32 i, status, worst = RM_OK;

	for (i = 0; i < params->count; i++) {
		status = with_channel(params->clients[i], params->channels[i], host, fn, arg);
		if (status)
			worst = status;
	}
	return worst;
}

static u32 look(struct front_channel *channel, void *arg)
{
	return RM_OK;
}

static u32 stop(struct front_channel *channel, void *arg)
{
	const struct rm_disable_params *params = arg;
	struct front_host *host = channel->tsg->host;

	mutex_lock(&host->mutex);
	if (channel->gate == GATE_OPEN && !channel->leaving) {
		/* Before it is disabled: a ring from here on is kept. */
		front_tell_call_begins_locked(channel->tsg);
		WRITE_ONCE(channel->rang, false);
		channel->gate = params->only_scheduling ? GATE_UNLISTED : GATE_STOPPED;
		front_channel_disable_locked(channel);
		front_tell_call_ended_locked(channel->tsg);
	}
	mutex_unlock(&host->mutex);
	return RM_OK;
}

static bool is_stopped(const struct front_tsg *tsg)
{
	const struct front_channel *channel;

	list_for_each_entry(channel, &tsg->channels, node) {
		if (channel->gate == GATE_OPEN)
			return false;
	}
	return true;
}

/*
 * A TSG of which nothing may run has to be off as a whole: one that is just being loaded would
 * stay on the engine, idle, and the trace would say that it holds it. Of others the channel.
 * @arg: serial of a TSG that can't be cut: its other channels are not waited for.
 */
static u32 take_off(struct front_channel *channel, void *arg)
{
	struct front_tsg *tsg = channel->tsg;
	u64 *stuck = arg;

	mutex_lock(&tsg->host->mutex);
	if (tsg->serial != *stuck && !front_tsg_evict_locked(tsg, is_stopped(tsg) ? NULL : channel))
		*stuck = tsg->serial;
	mutex_unlock(&tsg->host->mutex);
	return tsg->serial == *stuck ? RM_TIMEOUT : RM_OK;
}

static u32 go(struct front_channel *channel, void *arg)
{
	struct front_host *host = channel->tsg->host;
	enum front_gate was;
	bool *relist = arg;

	mutex_lock(&host->mutex);
	was = channel->gate;
	channel->gate = GATE_OPEN;
	if (was != GATE_OPEN && channel->scheduled && !channel->leaving) {
		*relist |= was == GATE_UNLISTED;
		front_channel_resume_locked(channel, was == GATE_STOPPED);
	}
	mutex_unlock(&host->mutex);
	return RM_OK;
}

static void relist(struct front_host *host)
{
	mutex_lock(&host->mutex);
	front_runlist_publish_locked(host);
	mutex_unlock(&host->mutex);
}

u32 front_gate(struct front_host *host, const struct rm_disable_params *params)
{
	bool changed = false;
	u64 stuck = 0; /* no TSG has this serial */
	u32 status;

	if (!params->count || params->count > RM_DISABLE_MAX)
		return RM_INVALID_PARAM_STRUCT;
	if (params->preempt_event)
		return RM_INSUFFICIENT_PERMISSIONS;
	if (params->rewind_gp_put)
		return RM_NOT_SUPPORTED;
	status = for_each_channel(host, params, look, NULL);
	if (status)
		return status;
	if (!params->disable && front_fault_loses(RM_CTRL_DISABLE_CHANNELS))
		return RM_OK;
	if (!params->disable) {
		status = for_each_channel(host, params, go, &changed);
		if (changed)
			relist(host);
		return status;
	}
	status = for_each_channel(host, params, stop, (void *)params);
	if (params->only_scheduling)
		relist(host);
	else if (!status)
		status = for_each_channel(host, params, take_off, &stuck);
	return status;
}
