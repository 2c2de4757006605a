// SPDX-License-Identifier: GPL-2.0
/*
 * control.c - RM controls: which exist, on what, with which parameters. Order of the checks as in
 * the driver: parameters against the table, object, class, then the command itself.
 */
#include <linux/uaccess.h>

#include "host.h"

union control_params {
	struct rm_features_params features;
	struct rm_gpu_id_info_params gpu_id_info;
	struct rm_handle_info_params handle_info;
	struct rm_gpu_id_params gpu_id;
	struct rm_disable_params disable;
	struct rm_bind_trace_v1_params bind_v1;
	struct rm_bind_trace_params bind;
	struct rm_events_enable_params enable;
	struct rm_events_get_params get;
	struct rm_preempt_params preempt;
	struct rm_schedule_params schedule;
	struct rm_timeslice_params timeslice;
	struct rm_tsg_info_params info;
	struct rm_token_params token;
};

/**
 * struct control - a command
 * @cmd: its number
 * @params_bytes: exactly, in 550
 * @klass: what it is for; RM_CLASS_ROOT_CLIENT: the client itself, which is no object
 * @run: do it; a status code. Under client->lock. NULL: one of the others
 * @run_on_client: likewise, of RM_CLASS_ROOT_CLIENT
 * @run_on_card: likewise, under no lock, for what touches other clients or the card alone
 */
struct control {
	u32 cmd, klass, params_bytes;
	u32 (*run)(struct front_object *object, union control_params *params);
	u32 (*run_on_client)(struct front_client *client, union control_params *params);
	u32 (*run_on_card)(struct front_host *host, union control_params *params);
};

/* What a client may use; nothing here has features of its own. */
static u32 get_features(struct front_client *client, union control_params *params)
{
	params->features.mask = 0;
	return RM_OK;
}

static u32 get_gpu_id_info(struct front_client *client, union control_params *params)
{
	struct rm_gpu_id_info_params *info = &params->gpu_id_info;
	u32 i, count = front_host_count();
	struct front_host *host;
	bool found;

	for (i = 0; i < count; i++) {
		host = front_host_get(i);
		found = host && front_host_gpu_id(host) == info->gpu_id;
		if (host)
			front_host_put(host);
		if (!found)
			continue;
		*info = (struct rm_gpu_id_info_params){
			.gpu_id = info->gpu_id,
			.device_instance = i,
			.gpu_instance = i,
			.numa_id = -1,
		};
		return RM_OK;
	}
	return RM_INVALID_ARGUMENT;
}

static u32 get_handle_info(struct front_client *client, union control_params *params)
{
	struct rm_handle_info_params *info = &params->handle_info;
	const struct front_object *object = front_object_find(client, info->object);

	if (!object)
		return RM_INVALID_OBJECT_HANDLE;
	if (info->index == RM_HANDLE_CLASS)
		return RM_NOT_SUPPORTED;
	if (info->index != RM_HANDLE_PARENT)
		return RM_INVALID_ARGUMENT;
	info->result = object->parent ? object->parent->handle : client->handle;
	return RM_OK;
}

static u32 get_gpu_id(struct front_object *object, union control_params *params)
{
	params->gpu_id.gpu_id = front_host_gpu_id(object->host);
	return RM_OK;
}

static u32 disable_channels(struct front_host *host, union control_params *params)
{
	return front_gate(host, &params->disable);
}

static u32 bind_trace(struct front_object *object, union control_params *params)
{
	params->bind.reason = 0;
	return front_trace_bind(object, &params->bind);
}

static u32 bind_trace_v1(struct front_object *object, union control_params *params)
{
	struct rm_bind_trace_params bind = {
		.buffer = params->bind_v1.buffer,
		.record_bytes = params->bind_v1.record_bytes,
		.detail = params->bind_v1.detail,
		.filter = params->bind_v1.filter,
		.all_users = params->bind_v1.all_users,
	};

	return front_trace_bind(object, &bind);
}

static u32 enable_events(struct front_object *object, union control_params *params)
{
	return front_events_enable(object, &params->enable);
}

static u32 update_get(struct front_object *object, union control_params *params)
{
	return front_events_update_get(object, &params->get);
}

static u32 flush_events(struct front_host *host, union control_params *params)
{
	front_trace_flush(host);
	return RM_OK;
}

static u32 preempt(struct front_object *object, union control_params *params)
{
	return front_tsg_preempt(object->tsg, &params->preempt);
}

static u32 set_schedule(struct front_object *object, union control_params *params)
{
	return front_tsg_schedule(object->tsg, params->schedule.enable);
}

static u32 set_timeslice(struct front_object *object, union control_params *params)
{
	return front_tsg_set_timeslice(object->tsg, params->timeslice.timeslice_us);
}

static u32 get_timeslice(struct front_object *object, union control_params *params)
{
	params->timeslice.timeslice_us = object->tsg->timeslice_us;
	return RM_OK;
}

static u32 get_info(struct front_object *object, union control_params *params)
{
	params->info.tsg_id = object->tsg->id;
	return RM_OK;
}

static u32 get_token(struct front_object *object, union control_params *params)
{
	params->token.token = front_channel_token(object->channel);
	return RM_OK;
}

#define CONTROL(cmd, klass, params, fn)                                                            \
	{                                                                                          \
		cmd, klass, sizeof(struct params), .run = fn                                       \
	}
#define ON_CLIENT(cmd, params, fn)                                                                 \
	{                                                                                          \
		cmd, RM_CLASS_ROOT_CLIENT, sizeof(struct params), .run_on_client = fn              \
	}
#define ON_CARD(cmd, klass, bytes, fn)                                                             \
	{                                                                                          \
		cmd, klass, bytes, .run_on_card = fn                                               \
	}

static const struct control controls[] = {
	ON_CLIENT(RM_CTRL_GET_FEATURES, rm_features_params, get_features),
	ON_CLIENT(RM_CTRL_GPU_GET_ID_INFO, rm_gpu_id_info_params, get_gpu_id_info),
	ON_CLIENT(RM_CTRL_GET_HANDLE_INFO, rm_handle_info_params, get_handle_info),
	CONTROL(RM_CTRL_GPU_GET_ID, RM_CLASS_SUBDEVICE, rm_gpu_id_params, get_gpu_id),
	ON_CARD(RM_CTRL_DISABLE_CHANNELS, RM_CLASS_SUBDEVICE, sizeof(struct rm_disable_params),
		disable_channels),
	CONTROL(RM_CTRL_BIND_TRACE, RM_CLASS_SUBDEVICE, rm_bind_trace_params, bind_trace),
	CONTROL(RM_CTRL_BIND_TRACE_V1, RM_CLASS_SUBDEVICE, rm_bind_trace_v1_params, bind_trace_v1),
	CONTROL(RM_CTRL_EVENTS_ENABLE, RM_CLASS_EVENT_BUFFER, rm_events_enable_params,
		enable_events),
	CONTROL(RM_CTRL_EVENTS_UPDATE_GET, RM_CLASS_EVENT_BUFFER, rm_events_get_params, update_get),
	ON_CARD(RM_CTRL_EVENTS_FLUSH, RM_CLASS_EVENT_BUFFER, 0, flush_events),
	CONTROL(RM_CTRL_TSG_SCHEDULE, RM_CLASS_TSG, rm_schedule_params, set_schedule),
	CONTROL(RM_CTRL_TSG_SET_TIMESLICE, RM_CLASS_TSG, rm_timeslice_params, set_timeslice),
	CONTROL(RM_CTRL_TSG_GET_TIMESLICE, RM_CLASS_TSG, rm_timeslice_params, get_timeslice),
	CONTROL(RM_CTRL_TSG_PREEMPT, RM_CLASS_TSG, rm_preempt_params, preempt),
	CONTROL(RM_CTRL_TSG_GET_INFO, RM_CLASS_TSG, rm_tsg_info_params, get_info),
	CONTROL(RM_CTRL_CHANNEL_GET_TOKEN, RM_CLASS_CHANNEL, rm_token_params, get_token),
};

static const struct control *find_control(u32 cmd)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(controls); i++) {
		if (controls[i].cmd == cmd)
			return &controls[i];
	}
	return NULL;
}

/* Under client->lock. @host: the card for run_on_card, which is left to the caller. */
static u32 run_locked(struct front_client *client, const struct rm_control *call,
		      const struct control *control, union control_params *params,
		      struct front_host **host)
{
	bool on_client = call->object == client->handle;
	struct front_object *object = front_object_find(client, call->object);

	if (client->dead || (!object && !on_client))
		return RM_OBJECT_NOT_FOUND;
	if (!control || control->klass != (on_client ? RM_CLASS_ROOT_CLIENT : object->klass->id))
		return RM_NOT_SUPPORTED;
	if (control->run_on_client)
		return control->run_on_client(client, params);
	if (control->run)
		return control->run(object, params);
	*host = object->host;
	return RM_OK;
}

static u32 params_bytes(const struct control *control)
{
	if (control->cmd == RM_CTRL_TSG_SCHEDULE)
		return front_layout->schedule_bytes;
	return control->params_bytes;
}

u32 front_control(struct front_client *client, const struct rm_control *call)
{
	const struct control *control = find_control(call->cmd);
	void __user *user = u64_to_user_ptr(call->params);
	struct front_host *host = NULL;
	union control_params params;
	u32 status, bytes = control ? params_bytes(control) : 0;

	if (!call->params_bytes != !call->params)
		return RM_INVALID_ARGUMENT;
	if (control && call->params_bytes != bytes)
		return RM_INVALID_ARGUMENT;
	if (control && copy_from_user(&params, user, bytes))
		return RM_INVALID_ADDRESS;

	mutex_lock(&client->lock);
	status = run_locked(client, call, control, &params, &host);
	mutex_unlock(&client->lock);
	/* Cards stay as long as a file is open. */
	if (host)
		status = control->run_on_card(host, &params);

	if (!status && copy_to_user(user, &params, bytes))
		status = RM_INVALID_ADDRESS;
	return status;
}
