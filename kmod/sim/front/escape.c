// SPDX-License-Identifier: GPL-2.0
/*
 * escape.c - one call of a tenant, its struct already in kernel memory: the base group and the RM
 * escapes. Malformed calls (unknown, wrong size, wrong node) are the ioctl's own -EINVAL;
 * everything else is said in the status field.
 */
#include <linux/file.h>
#include <linux/pci.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "event_buffer.h"
#include "faults.h"
#include "host.h"
#include "memory.h"

/* What a T4 shows; addresses of a card that is on no bus are nobody's to map. */
#define PCI_VENDOR 0x10deu
#define PCI_DEVICE_T4 0x1eb8u
#define REG_BYTES (16ull << 20)
#define FB_BYTES (256ull << 20)

/* ---- base group ---- */

static void describe_card(const struct front_host *host, struct rm_card_info *info)
{
	struct pci_dev *pdev = host->card->pdev;
	u32 i = host->card->index;

	*info = (struct rm_card_info){
		.valid = 1,
		.pci.domain = pdev ? pci_domain_nr(pdev->bus) : 0,
		.pci.bus = pdev ? pdev->bus->number : i + 1,
		.pci.slot = pdev ? PCI_SLOT(pdev->devfn) : 0,
		.pci.vendor_id = PCI_VENDOR,
		.pci.device_id = PCI_DEVICE_T4,
		.gpu_id = front_host_gpu_id(host),
		.reg_address = pdev ? pci_resource_start(pdev, 0) : (0x100ull + i) << 32,
		.reg_bytes = REG_BYTES,
		.fb_address = (0x200ull + i) << 32,
		.fb_bytes = FB_BYTES,
		.minor_number = i,
	};
}

static long card_info(struct front_file *file, void *data, u32 bytes)
{
	struct rm_card_info *info = data;
	u32 count = front_host_count(), room = bytes / sizeof(*info), i;
	struct front_host *host;

	memset(data, 0, room * sizeof(*info));
	if (room < count)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		host = front_host_get(i);
		if (!host)
			continue;
		describe_card(host, &info[i]);
		front_host_put(host);
	}
	return 0;
}

static long register_fd(struct front_file *file, void *data, u32 bytes)
{
	const struct rm_register_fd *call = data;
	struct front_file *target;
	struct file *ctl;
	long err = -EINVAL;

	ctl = front_file_get(call->ctl_fd, true);
	if (!ctl)
		return -EINVAL;
	target = ctl->private_data;
	/* A target has no link of its own at that time, so links never form a ring. Only one is
	 * followed, whatever is linked later. */
	mutex_lock(&front_links_lock);
	if (!file->link && target != file && !target->link) {
		file->link = ctl;
		err = 0;
	}
	mutex_unlock(&front_links_lock);
	if (err)
		fput(ctl);
	return err;
}

static long check_version(struct front_file *file, void *data, u32 bytes)
{
	const char *version = front_version;
	struct rm_version *call = data;
	bool same;

	call->reply = 1;
	if (call->cmd == RM_VERSION_CMD_QUERY)
		same = true;
	else if (call->cmd == RM_VERSION_CMD_RELAXED)
		same = !strncmp(call->text, version, strcspn(version, ".") + 1);
	else
		same = !strncmp(call->text, version, sizeof(call->text));
	if (call->cmd == RM_VERSION_CMD_QUERY || !same) {
		memset(call->text, 0, sizeof(call->text));
		strscpy(call->text, version, sizeof(call->text));
	}
	return same ? 0 : -EINVAL;
}

static long alloc_os_event(struct front_file *file, void *data, u32 bytes)
{
	struct rm_os_event *call = data;

	call->status = front_os_event_create(file, call->client, call->fd);
	return 0;
}

static long free_os_event(struct front_file *file, void *data, u32 bytes)
{
	struct rm_os_event *call = data;

	call->status = front_os_event_destroy(file, call->client, call->fd);
	return 0;
}

static long sys_params(struct front_file *file, void *data, u32 bytes)
{
	/* Set once for the driver's life; every later caller must agree. */
	static atomic64_t memblock_bytes;
	const struct rm_sys_params *call = data;
	u64 before;

	before = atomic64_cmpxchg(&memblock_bytes, 0, call->memblock_bytes);
	return before && before != call->memblock_bytes ? -EBUSY : 0;
}

static long wait_open(struct front_file *file, void *data, u32 bytes)
{
	memset(data, 0, bytes);
	return 0;
}

/* ---- objects ---- */

static u32 alloc_root(struct front_file *file, struct rm_alloc *call)
{
	void __user *user = u64_to_user_ptr(call->params);
	struct front_client *client;
	u32 status;

	if (call->object)
		return RM_INVALID_OBJECT_HANDLE; /* client handles are the driver's choice */
	status = front_client_create(file, &call->object);
	if (status)
		return status;
	if (call->params && put_user(call->object, (u32 __user *)user)) {
		if (!front_client_get(file, call->object, &client)) {
			front_client_destroy(client);
			front_client_put(client);
		}
		call->object = 0;
		return RM_INVALID_ADDRESS;
	}
	return RM_OK;
}

static u32 alloc_object(struct front_file *file, struct rm_alloc *call)
{
	const struct front_class *klass = front_class_find(call->klass);
	void __user *user = u64_to_user_ptr(call->params);
	union front_params params = {};
	struct front_client *client;
	bool present = call->params;
	u32 status, bytes;

	if (!klass)
		return RM_INVALID_CLASS;
	bytes = front_release_params_bytes(klass);
	if (present ? !bytes : bytes && !klass->optional)
		return RM_INVALID_ARGUMENT;
	if (present && copy_from_user(&params, user, bytes))
		return RM_INVALID_ADDRESS;
	status = front_client_get(file, call->client, &client);
	if (status)
		return status;
	mutex_lock(&client->lock);
	if (client->dead)
		status = RM_INVALID_CLIENT;
	else
		status = front_object_create(client, call->parent, &call->object, klass, &params);
	/* A caller who can't be told gets no object. */
	if (!status && present && copy_to_user(user, &params, bytes)) {
		front_object_destroy(front_object_find(client, call->object));
		status = RM_INVALID_ADDRESS;
	}
	mutex_unlock(&client->lock);
	front_client_put(client);
	return status;
}

/* A word that the release has somewhere else. */
static u32 *word_at(void *data, u32 offset)
{
	return (u32 *)((u8 *)data + offset);
}

static long alloc(struct front_file *file, void *data, u32 bytes)
{
	const struct front_release *release = front_layout;
	struct rm_alloc_rights *wide = data;
	struct rm_alloc *call = data; /* both begin alike, up to params and rights */
	u32 status, object, mask;
	bool rights = bytes == release->rights_bytes;

	if (!rights && bytes != sizeof(*call))
		return -EINVAL;
	object = call->object;
	if (rights && *word_at(data, release->rights_flags))
		status = RM_NOT_SUPPORTED;
	else if (rights && wide->rights &&
		 copy_from_user(&mask, u64_to_user_ptr(wide->rights), sizeof(mask)))
		status = RM_INVALID_ADDRESS;
	else if (call->klass == RM_CLASS_ROOT || call->klass == RM_CLASS_ROOT_NON_PRIV ||
		 call->klass == RM_CLASS_ROOT_CLIENT)
		status = alloc_root(file, call);
	else
		status = alloc_object(file, call);
	if (status)
		call->object = object;
	*word_at(data, rights ? release->rights_status : release->alloc_status) = status;
	return 0;
}

static long free_object(struct front_file *file, void *data, u32 bytes)
{
	struct rm_free *call = data;
	struct front_client *client;
	struct front_object *object;

	call->status = front_client_get(file, call->client, &client);
	if (call->status)
		return 0;
	if (call->object == call->client) {
		front_client_destroy(client);
	} else {
		mutex_lock(&client->lock);
		/* What is not there counts as freed: the driver is built so. */
		object = front_object_find(client, call->object);
		if (object)
			front_object_destroy(object);
		mutex_unlock(&client->lock);
	}
	front_client_put(client);
	return 0;
}

static long control(struct front_file *file, void *data, u32 bytes)
{
	struct rm_control *call = data;
	struct front_client *client;

	if (!(call->cmd & 0xffffu)) { /* every class has a null command */
		call->status = RM_OK;
		return 0;
	}
	call->status = front_fault(call->cmd);
	if (call->status)
		return 0;
	call->status = front_client_get(file, call->client, &client);
	if (call->status)
		return 0;
	call->status = front_control(client, call);
	front_client_put(client);
	return 0;
}

/* ---- mappings ---- */

static u32 check_range(u64 offset, u64 length, u64 size)
{
	if (offset >= size)
		return RM_INVALID_BASE;
	if (!length || length > size - offset)
		return RM_INVALID_LIMIT;
	return RM_OK;
}

/* Tie @file to what its mmap shall map; once in a file's life. */
static u32 set_mapped(struct front_file *file, struct front_object *what, u64 bytes)
{
	bool is_memory = what->klass->id != RM_CLASS_USERMODE;
	u32 status = RM_STATE_IN_USE;

	mutex_lock(&file->map_lock);
	if (!file->mapped) {
		file->mapped = true;
		file->map_bytes = PAGE_ALIGN(bytes);
		file->read_only = what->klass == &front_class_deviceless;
		if (is_memory) {
			file->memory = what->memory;
			front_memory_get(file->memory);
		} else {
			file->bell_client = what->client;
			front_client_ref(file->bell_client);
		}
		status = RM_OK;
	}
	mutex_unlock(&file->map_lock);
	return status;
}

/* For its owner to read, through the client itself: it is on no card. */
static u32 map_deviceless(const struct front_client *client, const struct rm_map_memory *call,
			  struct front_file *file, struct front_object *what)
{
	u32 status = check_range(call->offset, call->length,
				 (u64)what->memory->page_count << PAGE_SHIFT);

	if (call->device != client->handle)
		return RM_INVALID_OBJECT_PARENT;
	if (!status && (call->offset || file->host || call->flags != RM_MAP_READ_ONLY))
		status = RM_INVALID_ARGUMENT;
	return status ? status : set_mapped(file, what, call->length);
}

static u32 map_locked(struct front_client *client, struct rm_map_memory *call, struct file *target)
{
	struct front_object *on = front_object_find(client, call->device);
	struct front_object *what = front_object_find(client, call->memory);
	struct front_file *file = target->private_data;
	u32 status;

	if (what && what->klass == &front_class_deviceless)
		return map_deviceless(client, call, file, what);
	if (!on || !what)
		return RM_OBJECT_NOT_FOUND;
	if (on->klass->id != RM_CLASS_DEVICE && on->klass->id != RM_CLASS_SUBDEVICE)
		return RM_INVALID_OBJECT_PARENT;
	if (on->host != what->host)
		return RM_INVALID_OBJECT_PARENT;
	if (what->klass->id == RM_CLASS_USERMODE) {
		status = check_range(call->offset, call->length, RM_USERMODE_BYTES);
		if (!status && (call->offset || file->host != what->host))
			status = RM_INVALID_ARGUMENT;
	} else if (what->klass == &front_class_memory) {
		status = check_range(call->offset, call->length,
				     (u64)what->memory->page_count << PAGE_SHIFT);
		if (!status && (call->offset || file->host))
			status = RM_INVALID_ARGUMENT;
	} else {
		status = RM_INVALID_OBJECT;
	}
	return status ? status : set_mapped(file, what, call->length);
}

static long map_memory(struct front_file *file, void *data, u32 bytes)
{
	struct rm_map_memory *call = data;
	struct front_client *client;
	struct file *target;

	call->status = front_client_get(file, call->client, &client);
	if (call->status)
		return 0;
	target = front_file_get(call->fd, false);
	mutex_lock(&client->lock);
	/* Only the process that made the client maps, as the driver has it. */
	if (client->dead || client->opener != task_tgid(current))
		call->status = RM_INVALID_CLIENT;
	else if (!target)
		call->status = RM_INVALID_ARGUMENT;
	else
		call->status = map_locked(client, call, target);
	mutex_unlock(&client->lock);
	if (target)
		fput(target);
	front_client_put(client);
	return 0;
}

/* Do @what to @call under the lock of the client that it names. Return: a status code. */
static u32 with_client(struct front_file *file, u32 handle,
		       u32 (*what)(struct front_client *client, void *call), void *call)
{
	struct front_client *client;
	u32 status = front_client_get(file, handle, &client);

	if (status)
		return status;
	mutex_lock(&client->lock);
	status = what(client, call);
	mutex_unlock(&client->lock);
	front_client_put(client);
	return status;
}

/* The mapping itself is undone by munmap; the driver only forgets its own note of it. */
static u32 unmap_memory_locked(struct front_client *client, void *call)
{
	const struct rm_unmap_memory *unmap = call;

	return front_object_find(client, unmap->memory) ? RM_OK : RM_OBJECT_NOT_FOUND;
}

static long unmap_memory(struct front_file *file, void *data, u32 bytes)
{
	struct rm_unmap_memory *call = data;

	call->status = with_client(file, call->client, unmap_memory_locked, call);
	return 0;
}

static u32 map_dma_locked(struct front_client *client, void *call)
{
	return front_map_dma(client, call);
}

static long map_dma(struct front_file *file, void *data, u32 bytes)
{
	const struct front_release *release = front_layout;
	struct rm_map_dma call = {};
	u64 *va = (u64 *)((u8 *)data + release->map_va);

	if (bytes != release->map_bytes)
		return -EINVAL;
	memcpy(&call, data, offsetofend(struct rm_map_dma, flags));
	call.va = *va;
	*word_at(data, release->map_status) = with_client(file, call.client, map_dma_locked, &call);
	*va = call.va;
	return 0;
}

static u32 unmap_dma_locked(struct front_client *client, void *call)
{
	return front_unmap_dma(client, call);
}

static long unmap_dma(struct front_file *file, void *data, u32 bytes)
{
	const struct front_release *release = front_layout;
	struct rm_unmap_dma call = {};

	if (bytes != release->unmap_bytes)
		return -EINVAL;
	/* Where there is no room for how much, it is all. */
	memcpy(&call, data,
	       bytes == sizeof(call) ? sizeof(call) : offsetofend(struct rm_unmap_dma, va));
	*word_at(data, release->unmap_status) =
		with_client(file, call.client, unmap_dma_locked, &call);
	return 0;
}

/* Which node a call may come through. */
enum escape_node { ANY_NODE, CTL_NODE };

/* @bytes: size of the struct; 0: @run knows better */
static const struct {
	u32 nr;
	enum escape_node node;
	u32 bytes;
	long (*run)(struct front_file *file, void *data, u32 bytes);
} escapes[] = {
	{ RM_NR_CARD_INFO, CTL_NODE, 0, card_info },
	{ RM_NR_REGISTER_FD, ANY_NODE, sizeof(struct rm_register_fd), register_fd },
	{ RM_NR_ALLOC_OS_EVENT, CTL_NODE, sizeof(struct rm_os_event), alloc_os_event },
	{ RM_NR_FREE_OS_EVENT, CTL_NODE, sizeof(struct rm_os_event), free_os_event },
	{ RM_NR_CHECK_VERSION, CTL_NODE, sizeof(struct rm_version), check_version },
	{ RM_NR_SYS_PARAMS, CTL_NODE, sizeof(struct rm_sys_params), sys_params },
	{ RM_NR_WAIT_OPEN, ANY_NODE, sizeof(struct rm_wait_open), wait_open },
	{ RM_NR_FREE, CTL_NODE, sizeof(struct rm_free), free_object },
	{ RM_NR_CONTROL, CTL_NODE, sizeof(struct rm_control), control },
	{ RM_NR_ALLOC, CTL_NODE, 0, alloc },
	{ RM_NR_MAP_MEMORY, CTL_NODE, sizeof(struct rm_map_memory), map_memory },
	{ RM_NR_UNMAP_MEMORY, CTL_NODE, sizeof(struct rm_unmap_memory), unmap_memory },
	{ RM_NR_MAP_DMA, CTL_NODE, 0, map_dma },
	{ RM_NR_UNMAP_DMA, CTL_NODE, 0, unmap_dma },
};

long front_escape(struct front_file *file, u32 nr, void *data, u32 bytes)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(escapes); i++) {
		if (escapes[i].nr != nr)
			continue;
		if (escapes[i].node == CTL_NODE && file->host)
			return -EINVAL;
		if (escapes[i].bytes && escapes[i].bytes != bytes)
			return -EINVAL;
		return escapes[i].run(file, data, bytes);
	}
	return -EINVAL;
}
