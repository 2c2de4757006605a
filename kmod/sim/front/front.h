/* SPDX-License-Identifier: GPL-2.0 */
/*
 * front.h - the simulated driver: files, clients and objects. What a tenant calls is in
 * rm_abi.h, what the card does in ../card.h, what concerns TSGs and lists in host.h.
 *
 * Locks, in this order:
 *   sim_main's hosts_lock  which cards there are; held while one that was taken away is waited for.
 *   links_lock (one)       client handles, REGISTER_FD links, a file's list of clients. Short.
 *   client->lock           a client's object tree and its GPU mappings.
 *   host->mutex            TSGs, channels, lists of one card; held while qgpu.ko is told.
 *   trace->lock            readers of a card's trace, and what is in their buffers.
 *   events_lock (one)      events that wake readers. Short.
 *   card->bus_lock         bus addresses of one card. Short; under qgpu.ko's own lock too.
 *   hosts_lock (one)       who uses a card; spinlock.
 *   client->ring_lock      channels that a doorbell rings; spinlock.
 *   file->map_lock         what mmap on this file maps; taken under mmap_lock too.
 *   card->chip_lock        interrupts off; what a card itself locks is in ../chip_card.h and
 *                          ../pci_card.h.
 *   trace->ring_lock       leaf, interrupts off.
 *
 * None of them is taken in a fault handler. client->lock may be held over a copy of parameters (its
 * owner hurts only itself), the others never.
 */
#ifndef SIM_FRONT_H
#define SIM_FRONT_H

#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "doorbell.h"
#include "release.h"
#include "rm_abi.h"
#include "sim/card.h"

struct front_channel;
struct front_event_buffer;
struct front_host;
struct front_tsg;

/* What one open /dev/nvidiactl may hold, so that a hostile tenant runs into a status code. */
#define FRONT_MAX_CLIENTS 64
#define FRONT_MAX_OBJECTS 4096
#define FRONT_MAX_TSGS 64
#define FRONT_MAX_CHANNELS 256
#define FRONT_MAX_MAPPINGS 4096
#define FRONT_MAX_BYTES (256ull << 20)

/**
 * struct front_account - what an open control file holds, until the last of it is gone
 */
struct front_account {
	struct kref ref;
	atomic_t clients, objects, tsgs, channels, mappings;
	atomic64_t bytes;
};

struct front_account *front_account_create(void);
void front_account_get(struct front_account *account);
void front_account_put(struct front_account *account);
/* Take one of a limited count. Return: false at the limit. */
bool front_account_take(atomic_t *count, int limit);

/* Live things of all files, for debugfs: all zero when nobody is there. */
struct front_live {
	atomic_t files, clients, objects, memories, mappings, tsgs, channels, zombies;
};
extern struct front_live front_live;

/**
 * struct front_file - an open /dev/nvidiactl (host NULL) or /dev/nvidiaN
 * @link: [links_lock, set once] the control file named by REGISTER_FD; a reference
 * @clients: [links_lock] clients owned by this file
 * @map_lock: @mapped, @memory, @bell_client
 * @mapped: MAP_MEMORY named this file; set once
 * @memory: what mmap maps on a control file; a reference
 * @map_bytes: length of the mapping
 * @read_only: what mmap maps may not be written
 * @bell_client: whose channels the doorbell page rings; a reference
 * @os_event_count: [events_lock] events that wake this file
 * @event_pending, @event_wait: one of them came; poll() takes it
 * @bell: the doorbell page; on /dev/nvidiaN only
 */
struct front_file {
	struct front_host *host;
	struct file *link;
	struct front_account *account;
	struct list_head clients;
	struct mutex map_lock;
	bool mapped, read_only;
	struct front_memory *memory;
	u64 map_bytes;
	struct front_client *bell_client;
	u32 os_event_count;
	bool event_pending;
	wait_queue_head_t event_wait;
	struct front_doorbell bell;
};

extern const struct file_operations front_fops;

/**
 * struct front_client - a root object
 * @owner: the control file it was made through; compared only
 * @opener: the process that made it
 * @dead: [lock] freed; only references are left
 * @objects: [lock] handle -> struct front_object
 * @devices: [lock] the roots of the tree
 * @next_handle: [lock] for handles that RM picks
 * @channels: [ring_lock]
 */
struct front_client {
	struct kref ref;
	u32 handle;
	const struct front_file *owner;
	struct list_head owner_node;
	struct pid *opener;
	struct front_account *account;
	struct mutex lock;
	bool dead;
	struct xarray objects;
	struct list_head devices;
	u32 next_handle;
	spinlock_t ring_lock;
	struct list_head channels;
};

struct front_class;

/**
 * struct front_object - a node of a client's tree; all [client->lock]
 * @dependants: objects that are freed before this one
 * @host: the card it is on
 */
struct front_object {
	u32 handle;
	const struct front_class *klass;
	struct front_client *client;
	struct front_object *parent;
	struct list_head node, children;
	struct list_head depend_node, dependants;
	struct front_host *host;
	union {
		struct front_memory *memory;
		struct front_vaspace *vaspace;
		struct front_tsg *tsg;
		struct front_channel *channel;
		struct front_event_buffer *event_buffer;
	};
};

union front_params {
	struct rm_device_params device;
	struct rm_subdevice_params subdevice;
	struct rm_memory_params memory;
	struct rm_virtual_params virtual;
	struct rm_vaspace_params vaspace;
	struct rm_tsg_params tsg;
	struct rm_channel_params channel;
	struct rm_event_buffer_params event_buffer;
	u8 longest[FRONT_PARAMS_MAX];
};

/**
 * struct front_class - a class that tenants may allocate
 * @parents: classes a parent may have, 0 ends
 * @params_bytes: size of the parameters in 550; 0: must have none
 * @optional: parameters may be absent (then zero)
 * @create: fill @object from @params; a status code. Under client->lock.
 * @leave: called before children and dependants go; may be NULL
 * @destroy: undo it. Under client->lock; children and dependants are gone.
 */
struct front_class {
	u32 id;
	u32 parents[3];
	u32 params_bytes;
	bool optional;
	u32 (*create)(struct front_object *object, union front_params *params);
	void (*leave)(struct front_object *object);
	void (*destroy)(struct front_object *object);
};

/* ---- client.c ---- */

extern struct mutex front_links_lock;

/* A status code and a reference, or RM_INVALID_CLIENT: none, or another file's. */
u32 front_client_get(const struct front_file *file, u32 handle, struct front_client **out);
/* Whoever's it is: what the driver itself looks up without asking who calls. */
u32 front_client_get_any(u32 handle, struct front_client **out);
void front_client_ref(struct front_client *client);
void front_client_put(struct front_client *client);
u32 front_client_create(struct front_file *file, u32 *handle);
/* Free everything in it; later calls find it dead. */
void front_client_destroy(struct front_client *client);
void front_file_destroy_clients(struct front_file *file);
void front_clients_exit(void);

/* ---- object.c: allocation and freeing, under client->lock ---- */

struct front_object *front_object_find(struct front_client *client, u32 handle);
const struct front_class *front_class_find(u32 id);
u32 front_object_create(struct front_client *client, u32 parent, u32 *handle,
			const struct front_class *klass, union front_params *params);
void front_object_destroy(struct front_object *object);
/* @object is freed before @on is. */
void front_object_depend(struct front_object *object, struct front_object *on);

/* ---- escape.c ---- */

/* One decoded call on @data of @bytes. Return: 0 (its status is in @data) or -errno. */
long front_escape(struct front_file *file, u32 nr, void *data, u32 bytes);

/* ---- control.c ---- */

u32 front_control(struct front_client *client, const struct rm_control *call);

/* ---- file.c ---- */

/* The version that the driver says it has, and the firmware that runs the cards; set at load. */
extern const char *front_version;
extern const char *front_firmware;

/* fget() of one of our files, control or card's. Return: NULL if it is not. */
struct file *front_file_get(int fd, bool ctl);

#endif
