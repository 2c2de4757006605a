// SPDX-License-Identifier: GPL-2.0
/*
 * memory.c - system memory objects: pages for a tenant, mapped through /dev/nvidiactl, read and
 * written by the card. User mappings and USERD may outlive the object; the pages stay as long.
 */
#include "memory.h"

#include <linux/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "event_buffer.h"
#include "host.h"

void front_memory_get(struct front_memory *memory)
{
	kref_get(&memory->ref);
}

static void memory_release(struct kref *ref)
{
	struct front_memory *memory = container_of(ref, struct front_memory, ref);
	u32 i;

	for (i = 0; i < memory->page_count && memory->pages[i]; i++)
		put_page(memory->pages[i]);
	atomic64_sub((u64)memory->page_count << PAGE_SHIFT, &memory->account->bytes);
	front_account_put(memory->account);
	atomic_dec(&front_live.memories);
	kvfree(memory);
}

void front_memory_put(struct front_memory *memory)
{
	kref_put(&memory->ref, memory_release);
}

/* Pages for @object as @p asks, charged to its control file. Return: a status code. */
static u32 get_pages(struct front_object *object, struct rm_memory_params *p)
{
	struct front_account *account = object->client->account;
	struct front_memory *memory;
	u32 i;

	if (!p->bytes)
		return RM_INVALID_ARGUMENT;
	if (p->bytes > FRONT_MAX_BYTES)
		return RM_NO_MEMORY;
	p->bytes = PAGE_ALIGN(p->bytes);
	p->limit = p->bytes - 1;
	if (atomic64_add_return(p->bytes, &account->bytes) > (s64)FRONT_MAX_BYTES)
		goto err_bytes;
	memory = kvzalloc(struct_size(memory, pages, p->bytes >> PAGE_SHIFT), GFP_KERNEL_ACCOUNT);
	if (!memory)
		goto err_bytes;
	kref_init(&memory->ref);
	INIT_LIST_HEAD(&memory->mappings);
	memory->account = account;
	front_account_get(account);
	memory->page_count = p->bytes >> PAGE_SHIFT;
	atomic_inc(&front_live.memories);
	for (i = 0; i < memory->page_count; i++) {
		memory->pages[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!memory->pages[i]) {
			front_memory_put(memory);
			return RM_NO_MEMORY;
		}
	}
	object->memory = memory;
	return RM_OK;

err_bytes:
	atomic64_sub(p->bytes, &account->bytes);
	return RM_NO_MEMORY;
}

static u32 memory_create(struct front_object *object, union front_params *params)
{
	u32 location = (params->memory.attr >> RM_ATTR_LOCATION_SHIFT) & 3u;

	if (location != RM_ATTR_LOCATION_PCI && location != RM_ATTR_LOCATION_ANY)
		return RM_INVALID_ARGUMENT;
	return get_pages(object, &params->memory);
}

/* On no card: only the driver writes it, for its owner to read. */
static u32 deviceless_create(struct front_object *object, union front_params *params)
{
	const struct rm_memory_params *p = &params->memory;

	if (p->attr >> RM_ATTR_COHERENCY_SHIFT != RM_ATTR_COHERENCY_WRITE_BACK ||
	    !(p->attr2 & RM_ATTR2_USER_READ_ONLY))
		return RM_INVALID_ARGUMENT;
	return get_pages(object, &params->memory);
}

static void memory_destroy(struct front_object *object)
{
	front_unmap_memory(object->client, object->memory);
	front_memory_put(object->memory);
}

static vm_fault_t memory_fault(struct vm_fault *vmf)
{
	struct front_memory *memory = vmf->vma->vm_private_data;

	if (vmf->pgoff >= memory->page_count)
		return VM_FAULT_SIGBUS;
	vmf->page = memory->pages[vmf->pgoff];
	get_page(vmf->page);
	return 0;
}

static const struct vm_operations_struct memory_vm_ops = {
	.fault = memory_fault,
};

/* The file that is mapped holds the reference on @memory, and the mapping holds the file. */
int front_memory_map(struct front_memory *memory, u64 bytes, struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_end - vma->vm_start > bytes)
		return -ERANGE;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_private_data = memory;
	vma->vm_ops = &memory_vm_ops;
	return 0;
}

const struct front_class front_class_memory = {
	.id = RM_CLASS_MEMORY_SYSTEM,
	.parents = { RM_CLASS_DEVICE },
	.params_bytes = sizeof(struct rm_memory_params),
	.create = memory_create,
	.destroy = memory_destroy,
};

const struct front_class front_class_deviceless = {
	.id = RM_CLASS_MEMORY_DEVICELESS,
	.parents = { RM_CLASS_ROOT_CLIENT },
	.params_bytes = sizeof(struct rm_memory_params),
	.create = deviceless_create,
	.destroy = memory_destroy,
};
