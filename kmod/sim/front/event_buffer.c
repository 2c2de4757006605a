// SPDX-License-Identifier: GPL-2.0
/*
 * event_buffer.c - event buffers (class 0x90cd) on memory that belongs to no card (0x90ce). What
 * goes in is trace.c's.
 */
#include "event_buffer.h"

#include <linux/mm.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "host.h"
#include "memory.h"

#define RECORD_BYTES ((u32)sizeof(struct rm_trace_record))
#define RECORDS_A_PAGE ((u32)PAGE_SIZE / RECORD_BYTES)
#define RECORDS_MIN 2u

struct rm_trace_record *front_event_buffer_slot(const struct front_event_buffer *buffer, u32 slot)
{
	struct rm_trace_record *page = page_address(buffer->records->pages[slot / RECORDS_A_PAGE]);

	return page + slot % RECORDS_A_PAGE;
}

void front_event_buffer_publish(struct front_event_buffer *buffer)
{
	event_header_fill(page_address(buffer->header->pages[0]), &buffer->ring);
	if (buffer->fed && buffer->notify_fd && event_ring_room(&buffer->ring) <= buffer->threshold)
		front_os_event_wake(buffer->client, buffer->notify_fd);
}

static struct front_object *find_memory(struct front_client *client, u32 handle)
{
	struct front_object *object = front_object_find(client, handle);

	return object && object->klass == &front_class_deviceless ? object : NULL;
}

static u32 check_params(struct front_client *client, const struct rm_event_buffer_params *p,
			const struct front_object *header, const struct front_object *records)
{
	struct front_object *subdevice = front_object_find(client, p->subdevice);

	/* Without a subdevice the driver's constructor uses a pointer that it does not have. */
	if (!subdevice || subdevice->klass->id != RM_CLASS_SUBDEVICE || !header || !records)
		return RM_INVALID_OBJECT_HANDLE;
	if (p->record_bytes != RECORD_BYTES || p->record_count < RECORDS_MIN ||
	    p->records_free_threshold > p->record_count)
		return RM_INVALID_ARGUMENT;
	if (p->vardata_bytes || p->vardata_memory || p->vardata_free_threshold || p->flags)
		return RM_NOT_SUPPORTED;
	if (DIV_ROUND_UP(p->record_count, RECORDS_A_PAGE) > records->memory->page_count)
		return RM_INVALID_ARGUMENT;
	return RM_OK;
}

static u32 event_buffer_create(struct front_object *object, union front_params *params)
{
	const struct rm_event_buffer_params *p = &params->event_buffer;
	struct front_client *client = object->client;
	struct front_object *header = find_memory(client, p->header_memory);
	struct front_object *records = find_memory(client, p->record_memory);
	struct front_event_buffer *buffer;
	u32 status = check_params(client, p, header, records);

	if (status)
		return status;
	buffer = kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);
	if (!buffer)
		return RM_NO_MEMORY;
	INIT_LIST_HEAD(&buffer->node);
	event_ring_init(&buffer->ring, p->record_count);
	buffer->header = header->memory;
	buffer->records = records->memory;
	front_memory_get(buffer->header);
	front_memory_get(buffer->records);
	buffer->pid_ns = get_pid_ns(task_active_pid_ns(current));
	buffer->client = client->handle;
	buffer->notify_fd = p->notification;
	buffer->threshold = p->records_free_threshold;
	object->host = front_object_find(client, p->subdevice)->host;
	front_host_hold(object->host);
	object->event_buffer = buffer;
	return RM_OK;
}

static void event_buffer_destroy(struct front_object *object)
{
	struct front_event_buffer *buffer = object->event_buffer;

	front_trace_unbind(object->host, buffer);
	front_host_put(object->host);
	front_memory_put(buffer->header);
	front_memory_put(buffer->records);
	put_pid_ns(buffer->pid_ns);
	kfree(buffer);
}

const struct front_class front_class_event_buffer = {
	.id = RM_CLASS_EVENT_BUFFER,
	.parents = { RM_CLASS_ROOT_CLIENT },
	.params_bytes = sizeof(struct rm_event_buffer_params),
	.create = event_buffer_create,
	.destroy = event_buffer_destroy,
};
