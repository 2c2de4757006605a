// SPDX-License-Identifier: GPL-2.0
/*
 * object.c - a client's tree of objects: device, subdevice and usermode are here, as there is
 * nothing behind them; the other classes have files of their own. All under client->lock.
 */
#include <linux/fdtable.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "event_buffer.h"
#include "host.h"

static bool file_is_of(const struct file *file, const struct front_host *host)
{
	return file->f_op == &front_fops &&
	       ((const struct front_file *)file->private_data)->host == host;
}

static int match_file(const void *host, struct file *file, unsigned int fd)
{
	return file_is_of(file, host);
}

/* As the driver: only who has the card's node open may use the card. */
static u32 device_create_object(struct front_object *object, union front_params *params)
{
	struct front_host *host = front_host_get(params->device.device_id);

	if (!host)
		return RM_INVALID_CLASS;
	if (!current->files || !iterate_fd(current->files, 0, match_file, host)) {
		front_host_put(host);
		return RM_INSUFFICIENT_PERMISSIONS;
	}
	object->host = host;
	return RM_OK;
}

static u32 subdevice_create(struct front_object *object, union front_params *params)
{
	return params->subdevice.subdevice_id ? RM_INVALID_CLASS : RM_OK;
}

static u32 usermode_create(struct front_object *object, union front_params *params)
{
	return RM_OK;
}

/* Whatever else is on the card hangs on a device. */
static void device_destroy_object(struct front_object *object)
{
	front_host_put(object->host);
}

static void nothing_to_destroy(struct front_object *object)
{
}

static const struct front_class front_class_device = {
	.id = RM_CLASS_DEVICE,
	.parents = { RM_CLASS_ROOT_CLIENT },
	.params_bytes = sizeof(struct rm_device_params),
	.optional = true,
	.create = device_create_object,
	.destroy = device_destroy_object,
};

static const struct front_class front_class_subdevice = {
	.id = RM_CLASS_SUBDEVICE,
	.parents = { RM_CLASS_DEVICE },
	.params_bytes = sizeof(struct rm_subdevice_params),
	.optional = true,
	.create = subdevice_create,
	.destroy = nothing_to_destroy,
};

static const struct front_class front_class_usermode = {
	.id = RM_CLASS_USERMODE,
	.parents = { RM_CLASS_SUBDEVICE },
	.create = usermode_create,
	.destroy = nothing_to_destroy,
};

static const struct front_class *const classes[] = {
	&front_class_device,	   &front_class_subdevice, &front_class_usermode,
	&front_class_memory,	   &front_class_vaspace,   &front_class_virtual,
	&front_class_tsg,	   &front_class_channel,   &front_class_deviceless,
	&front_class_event_buffer,
};

const struct front_class *front_class_find(u32 id)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(classes); i++) {
		if (classes[i]->id == id)
			return classes[i];
	}
	return NULL;
}

struct front_object *front_object_find(struct front_client *client, u32 handle)
{
	return xa_load(&client->objects, handle);
}

void front_object_depend(struct front_object *object, struct front_object *on)
{
	list_add(&object->depend_node, &on->dependants);
}

static bool is_parent(const struct front_class *klass, u32 id)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(klass->parents) && klass->parents[i]; i++) {
		if (klass->parents[i] == id)
			return true;
	}
	return false;
}

/* A handle is the caller's choice, or 0: the next free one of RM's own range. */
static u32 choose_handle(struct front_client *client, u32 *handle)
{
	u32 tries;

	if (*handle) {
		if (*handle == client->handle ||
		    *handle - RM_OBJECT_HANDLE_BASE < RM_OBJECT_HANDLE_RANGE)
			return RM_INVALID_OBJECT_HANDLE;
		return xa_load(&client->objects, *handle) ? RM_INSERT_DUPLICATE_NAME : RM_OK;
	}
	for (tries = 0; tries <= FRONT_MAX_OBJECTS; tries++) {
		*handle = RM_OBJECT_HANDLE_BASE + client->next_handle;
		client->next_handle = (client->next_handle + 1) % RM_OBJECT_HANDLE_RANGE;
		if (!xa_load(&client->objects, *handle))
			return RM_OK;
	}
	return RM_INSUFFICIENT_RESOURCES;
}

u32 front_object_create(struct front_client *client, u32 parent_handle, u32 *handle,
			const struct front_class *klass, union front_params *params)
{
	struct front_object *parent = NULL, *object;
	u32 status, parent_class = RM_CLASS_ROOT_CLIENT;

	lockdep_assert_held(&client->lock);
	if (parent_handle != client->handle) {
		parent = front_object_find(client, parent_handle);
		if (!parent)
			return RM_OBJECT_NOT_FOUND;
		parent_class = parent->klass->id;
	}
	if (!is_parent(klass, parent_class))
		return RM_INVALID_OBJECT_PARENT;
	status = choose_handle(client, handle);
	if (status)
		return status;
	if (!front_account_take(&client->account->objects, FRONT_MAX_OBJECTS))
		return RM_INSUFFICIENT_RESOURCES;
	status = RM_NO_MEMORY;
	object = kzalloc(sizeof(*object), GFP_KERNEL_ACCOUNT);
	if (!object)
		goto err_account;
	object->handle = *handle;
	object->klass = klass;
	object->client = client;
	object->parent = parent;
	object->host = parent ? parent->host : NULL;
	INIT_LIST_HEAD(&object->children);
	INIT_LIST_HEAD(&object->depend_node);
	INIT_LIST_HEAD(&object->dependants);
	if (xa_insert(&client->objects, object->handle, object, GFP_KERNEL_ACCOUNT))
		goto err_object;
	status = klass->create(object, params);
	if (status)
		goto err_handle;
	list_add(&object->node, parent ? &parent->children : &client->devices);
	atomic_inc(&front_live.objects);
	return RM_OK;

err_handle:
	xa_erase(&client->objects, object->handle);
err_object:
	kfree(object);
err_account:
	atomic_dec(&client->account->objects);
	return status;
}

/* Depth is bounded by the class table: client, device, vaspace, tsg, channel. */
void front_object_destroy(struct front_object *object)
{
	struct front_client *client = object->client;

	lockdep_assert_held(&client->lock);
	if (object->klass->leave)
		object->klass->leave(object);
	while (!list_empty(&object->children))
		front_object_destroy(
			list_first_entry(&object->children, struct front_object, node));
	while (!list_empty(&object->dependants))
		front_object_destroy(
			list_first_entry(&object->dependants, struct front_object, depend_node));
	object->klass->destroy(object);
	list_del(&object->depend_node);
	list_del(&object->node);
	xa_erase(&client->objects, object->handle);
	atomic_dec(&client->account->objects);
	atomic_dec(&front_live.objects);
	kfree(object);
}
