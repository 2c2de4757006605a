// SPDX-License-Identifier: GPL-2.0
/*
 * client.c - clients: handles that are the driver's own (0xc1d00000 + a counter), owned
 * by the control file they were made through, gone with it; and what a control file may hold.
 */
#include <linux/sched.h>
#include <linux/slab.h>

#include "host.h"

#define CLIENTS_MAX 0x100000u

DEFINE_MUTEX(front_links_lock);
struct front_live front_live;

/* [front_links_lock] index -> struct front_client */
static DEFINE_XARRAY_FLAGS(clients, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
static u32 next_index; /* [front_links_lock] */

struct front_account *front_account_create(void)
{
	struct front_account *account = kzalloc(sizeof(*account), GFP_KERNEL_ACCOUNT);

	if (account)
		kref_init(&account->ref);
	return account;
}

void front_account_get(struct front_account *account)
{
	kref_get(&account->ref);
}

static void account_release(struct kref *ref)
{
	kfree(container_of(ref, struct front_account, ref));
}

void front_account_put(struct front_account *account)
{
	kref_put(&account->ref, account_release);
}

bool front_account_take(atomic_t *count, int limit)
{
	if (atomic_inc_return(count) <= limit)
		return true;
	atomic_dec(count);
	return false;
}

void front_client_ref(struct front_client *client)
{
	kref_get(&client->ref);
}

static void client_release(struct kref *ref)
{
	struct front_client *client = container_of(ref, struct front_client, ref);

	xa_destroy(&client->objects);
	put_pid(client->opener);
	front_account_put(client->account);
	kfree(client);
}

void front_client_put(struct front_client *client)
{
	kref_put(&client->ref, client_release);
}

static struct front_client *find_locked(u32 handle)
{
	if (handle - RM_CLIENT_HANDLE_BASE >= CLIENTS_MAX)
		return NULL;
	return xa_load(&clients, handle - RM_CLIENT_HANDLE_BASE);
}

u32 front_client_get_any(u32 handle, struct front_client **out)
{
	mutex_lock(&front_links_lock);
	*out = find_locked(handle);
	if (*out)
		front_client_ref(*out);
	mutex_unlock(&front_links_lock);
	return *out ? RM_OK : RM_INVALID_CLIENT;
}

u32 front_client_get(const struct front_file *file, u32 handle, struct front_client **out)
{
	struct front_client *client;

	mutex_lock(&front_links_lock);
	if (file->link)
		file = file->link->private_data;
	client = find_locked(handle);
	if (client && client->owner == file)
		front_client_ref(client);
	else
		client = NULL;
	mutex_unlock(&front_links_lock);
	*out = client;
	return client ? RM_OK : RM_INVALID_CLIENT;
}

u32 front_client_create(struct front_file *file, u32 *handle)
{
	struct front_client *client;
	u32 index;
	int err;

	client = kzalloc(sizeof(*client), GFP_KERNEL_ACCOUNT);
	if (!client)
		return RM_NO_MEMORY;
	kref_init(&client->ref);
	mutex_init(&client->lock);
	xa_init_flags(&client->objects, XA_FLAGS_ACCOUNT);
	INIT_LIST_HEAD(&client->devices);
	spin_lock_init(&client->ring_lock);
	INIT_LIST_HEAD(&client->channels);
	client->opener = get_pid(task_tgid(current));

	mutex_lock(&front_links_lock);
	if (file->link)
		file = file->link->private_data;
	client->owner = file;
	client->account = file->account;
	front_account_get(client->account);
	err = -ENOSPC;
	if (front_account_take(&client->account->clients, FRONT_MAX_CLIENTS)) {
		err = xa_alloc_cyclic(&clients, &index, client, XA_LIMIT(0, CLIENTS_MAX - 1),
				      &next_index, GFP_KERNEL_ACCOUNT);
		err = min(err, 0); /* 1: the counter went round */
		if (err)
			atomic_dec(&client->account->clients);
	}
	if (!err) {
		client->handle = RM_CLIENT_HANDLE_BASE + index;
		list_add(&client->owner_node, &file->clients);
		atomic_inc(&front_live.clients);
	}
	mutex_unlock(&front_links_lock);
	if (err) {
		front_client_put(client);
		return err == -ENOMEM ? RM_NO_MEMORY : RM_INSUFFICIENT_RESOURCES;
	}
	*handle = client->handle;
	return RM_OK;
}

/* The caller took it out of its owner's list. */
static void empty_client(struct front_client *client)
{
	mutex_lock(&client->lock);
	client->dead = true;
	while (!list_empty(&client->devices))
		front_object_destroy(list_first_entry(&client->devices, struct front_object, node));
	mutex_unlock(&client->lock);

	/* Only now may the handle be another client's. */
	mutex_lock(&front_links_lock);
	xa_erase(&clients, client->handle - RM_CLIENT_HANDLE_BASE);
	mutex_unlock(&front_links_lock);
	atomic_dec(&client->account->clients);
	atomic_dec(&front_live.clients);
	front_client_put(client);
}

void front_client_destroy(struct front_client *client)
{
	bool mine;

	mutex_lock(&front_links_lock);
	mine = !list_empty(&client->owner_node);
	list_del_init(&client->owner_node);
	mutex_unlock(&front_links_lock);
	if (mine) /* else another thread is at it */
		empty_client(client);
}

void front_file_destroy_clients(struct front_file *file)
{
	struct front_client *client;

	for (;;) {
		mutex_lock(&front_links_lock);
		client = list_first_entry_or_null(&file->clients, struct front_client, owner_node);
		if (client)
			list_del_init(&client->owner_node);
		mutex_unlock(&front_links_lock);
		if (!client)
			return;
		empty_client(client);
	}
}

void front_clients_exit(void)
{
	WARN_ON_ONCE(!xa_empty(&clients));
	xa_destroy(&clients);
}
