// SPDX-License-Identifier: GPL-2.0
/*
 * os_event.c - calls 206 and 207: a control file that becomes readable when an event comes. The
 * event is named by a client and a number that its owner calls an fd; the number is never looked
 * up. As in the driver, poll() takes the news.
 */
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "event_buffer.h"

/* See above; all [events_lock]. */
struct os_event {
	struct list_head node;
	struct front_file *file;
	u32 client;
	s32 fd;
};

static DEFINE_MUTEX(events_lock);
static LIST_HEAD(events);

static struct os_event *find_locked(const struct front_file *file, u32 client, s32 fd)
{
	struct os_event *event;

	list_for_each_entry(event, &events, node) {
		if (event->file == file && event->client == client && event->fd == fd)
			return event;
	}
	return NULL;
}

/* The driver looks at the client's number only; here it must be the caller's own, or one tenant
 * could be woken by another's events. */
static bool is_own(u32 handle)
{
	struct front_client *client;
	bool own;

	if (front_client_get_any(handle, &client))
		return false;
	own = client->opener == task_tgid(current);
	front_client_put(client);
	return own;
}

u32 front_os_event_create(struct front_file *file, u32 client, s32 fd)
{
	struct os_event *event;
	u32 status = RM_OK;

	if (!is_own(client))
		return RM_INVALID_CLIENT;
	event = kzalloc(sizeof(*event), GFP_KERNEL_ACCOUNT);
	if (!event)
		return RM_NO_MEMORY;
	event->file = file;
	event->client = client;
	event->fd = fd;
	mutex_lock(&events_lock);
	if (find_locked(file, client, fd))
		status = RM_INVALID_ARGUMENT;
	else if (file->os_event_count == FRONT_MAX_OS_EVENTS)
		status = RM_INSUFFICIENT_RESOURCES;
	if (!status) {
		file->os_event_count++;
		list_add(&event->node, &events);
	}
	mutex_unlock(&events_lock);
	if (status)
		kfree(event);
	return status;
}

static void destroy_locked(struct os_event *event)
{
	list_del(&event->node);
	event->file->os_event_count--;
	kfree(event);
}

u32 front_os_event_destroy(struct front_file *file, u32 client, s32 fd)
{
	struct os_event *event;

	mutex_lock(&events_lock);
	event = find_locked(file, client, fd);
	if (event)
		destroy_locked(event);
	mutex_unlock(&events_lock);
	return event ? RM_OK : RM_INVALID_ARGUMENT;
}

void front_os_event_destroy_all(struct front_file *file)
{
	struct os_event *event, *next;

	mutex_lock(&events_lock);
	list_for_each_entry_safe(event, next, &events, node) {
		if (event->file == file)
			destroy_locked(event);
	}
	mutex_unlock(&events_lock);
}

void front_os_event_wake(u32 client, u64 fd)
{
	struct os_event *event;

	mutex_lock(&events_lock);
	list_for_each_entry(event, &events, node) {
		if (event->client != client || (u64)event->fd != fd)
			continue;
		WRITE_ONCE(event->file->event_pending, true);
		wake_up_interruptible(&event->file->event_wait);
	}
	mutex_unlock(&events_lock);
}
