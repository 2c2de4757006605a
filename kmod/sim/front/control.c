// SPDX-License-Identifier: GPL-2.0
/*
 * control.c - RM controls: which exist, on what, with which parameters. Order of the checks as in
 * the driver: parameters against the table, object, class, then the command itself.
 */
#include <linux/uaccess.h>

#include "host.h"

union control_params {
	struct rm_schedule_params schedule;
	struct rm_timeslice_params timeslice;
	struct rm_tsg_info_params info;
	struct rm_token_params token;
};

struct control {
	u32 cmd, klass, params_bytes;
	u32 (*run)(struct front_object *object, union control_params *params);
};

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

static const struct control controls[] = {
	{ RM_CTRL_TSG_SCHEDULE, RM_CLASS_TSG, sizeof(struct rm_schedule_params), set_schedule },
	{ RM_CTRL_TSG_SET_TIMESLICE, RM_CLASS_TSG, sizeof(struct rm_timeslice_params),
	  set_timeslice },
	{ RM_CTRL_TSG_GET_TIMESLICE, RM_CLASS_TSG, sizeof(struct rm_timeslice_params),
	  get_timeslice },
	{ RM_CTRL_TSG_GET_INFO, RM_CLASS_TSG, sizeof(struct rm_tsg_info_params), get_info },
	{ RM_CTRL_CHANNEL_GET_TOKEN, RM_CLASS_CHANNEL, sizeof(struct rm_token_params), get_token },
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

u32 front_control(struct front_client *client, const struct rm_control *call)
{
	const struct control *control = find_control(call->cmd);
	void __user *user = u64_to_user_ptr(call->params);
	struct front_object *object;
	union control_params params;
	u32 status;

	if (!call->params_bytes != !call->params)
		return RM_INVALID_ARGUMENT;
	if (control && call->params_bytes != control->params_bytes)
		return RM_INVALID_ARGUMENT;
	if (control && copy_from_user(&params, user, control->params_bytes))
		return RM_INVALID_ADDRESS;

	mutex_lock(&client->lock);
	object = client->dead ? NULL : front_object_find(client, call->object);
	if (!object)
		status = call->object == client->handle ? RM_NOT_SUPPORTED : RM_OBJECT_NOT_FOUND;
	else if (!control || object->klass->id != control->klass)
		status = RM_NOT_SUPPORTED;
	else
		status = control->run(object, &params);
	mutex_unlock(&client->lock);

	if (!status && copy_to_user(user, &params, control->params_bytes))
		status = RM_INVALID_ADDRESS;
	return status;
}
