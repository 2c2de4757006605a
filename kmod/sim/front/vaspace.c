// SPDX-License-Identifier: GPL-2.0
/*
 * vaspace.c - GPU address spaces (class 0x90f1), ranges of them (0x70), and mappings of memory
 * into them. What the card looks up is struct sim_space; the list here is for people who unmap.
 */
#include "memory.h"

#include <linux/mm.h>
#include <linux/slab.h>

#include "host.h"

/* Addresses that a GPFIFO entry can name (40 bits), low ones left out so that 0 is nobody's. */
#define VA_FIRST (1ull << 32)
#define VA_END (1ull << 40)

/*
 * @pages, some of @memory's, at [@va, @va + @bytes) of @vaspace. @virtual is the handle of the
 * object it was mapped through; @space_node is in the address space, by address.
 */
struct mapping {
	struct list_head space_node, memory_node;
	struct front_vaspace *vaspace;
	struct front_memory *memory;
	struct page *const *pages;
	u32 virtual;
	u64 va, bytes;
};

void front_vaspace_get(struct front_vaspace *vaspace)
{
	kref_get(&vaspace->ref);
}

static void vaspace_release(struct kref *ref)
{
	struct front_vaspace *vaspace = container_of(ref, struct front_vaspace, ref);

	vaspace->card->ops->space_destroy(vaspace->card, vaspace->space);
	kfree(vaspace);
}

void front_vaspace_put(struct front_vaspace *vaspace)
{
	kref_put(&vaspace->ref, vaspace_release);
}

static u32 vaspace_create(struct front_object *object, union front_params *params)
{
	struct sim_card *card = object->host->card;
	struct front_vaspace *vaspace;

	if (params->vaspace.index != 0)
		return RM_NOT_SUPPORTED; /* only a new one of its own */
	vaspace = kzalloc(sizeof(*vaspace), GFP_KERNEL_ACCOUNT);
	if (!vaspace)
		return RM_NO_MEMORY;
	kref_init(&vaspace->ref);
	INIT_LIST_HEAD(&vaspace->mappings);
	vaspace->card = card;
	vaspace->space = card->ops->space_create(card);
	if (!vaspace->space) {
		kfree(vaspace);
		return RM_NO_MEMORY;
	}
	params->vaspace.va_size = VA_END;
	params->vaspace.va_base = VA_FIRST;
	object->vaspace = vaspace;
	return RM_OK;
}

static void mapping_destroy(struct front_client *client, struct mapping *mapping)
{
	struct front_vaspace *vaspace = mapping->vaspace;

	vaspace->card->ops->space_unmap(vaspace->card, vaspace->space, mapping->va >> PAGE_SHIFT,
					mapping->pages, mapping->bytes >> PAGE_SHIFT);
	list_del(&mapping->space_node);
	list_del(&mapping->memory_node);
	front_memory_put(mapping->memory);
	atomic_dec(&client->account->mappings);
	atomic_dec(&front_live.mappings);
	kfree(mapping);
}

void front_unmap_memory(struct front_client *client, struct front_memory *memory)
{
	struct mapping *mapping, *next;

	list_for_each_entry_safe(mapping, next, &memory->mappings, memory_node)
		mapping_destroy(client, mapping);
}

static void vaspace_destroy(struct front_object *object)
{
	struct mapping *mapping, *next;

	list_for_each_entry_safe(mapping, next, &object->vaspace->mappings, space_node)
		mapping_destroy(object->client, mapping);
	front_vaspace_put(object->vaspace);
}

static u32 virtual_create(struct front_object *object, union front_params *params)
{
	struct front_object *on = front_object_find(object->client, params->virtual.vaspace);

	if (!on || on->klass != &front_class_vaspace || on->host != object->host)
		return RM_INVALID_OBJECT_HANDLE;
	if (params->virtual.limit && params->virtual.limit < params->virtual.offset)
		return RM_INVALID_ARGUMENT;
	if (!params->virtual.limit || params->virtual.limit >= VA_END)
		params->virtual.limit = VA_END - 1;
	object->vaspace = on->vaspace;
	front_vaspace_get(on->vaspace);
	front_object_depend(object, on);
	return RM_OK;
}

static void virtual_destroy(struct front_object *object)
{
	struct mapping *mapping, *next;

	list_for_each_entry_safe(mapping, next, &object->vaspace->mappings, space_node) {
		if (mapping->virtual == object->handle)
			mapping_destroy(object->client, mapping);
	}
	front_vaspace_put(object->vaspace);
}

/* Find where @bytes fit, at @fixed if that is not 0; @after is the list entry to insert behind. */
static u32 find_place(struct front_vaspace *vaspace, u64 fixed, u64 bytes, u64 *va,
		      struct list_head **after)
{
	u64 from = VA_FIRST, end;
	struct mapping *mapping;

	*after = &vaspace->mappings;
	list_for_each_entry(mapping, &vaspace->mappings, space_node) {
		end = mapping->va;
		if (fixed ? fixed >= from && fixed + bytes <= end : end - from >= bytes)
			goto found;
		from = mapping->va + mapping->bytes;
		*after = &mapping->space_node;
		if (fixed && fixed < from)
			return RM_STATE_IN_USE;
	}
	end = VA_END;
	if (fixed ? fixed < from || fixed + bytes > end : end - from < bytes)
		return fixed ? RM_INVALID_OFFSET : RM_NO_MEMORY;
found:
	*va = fixed ? fixed : from;
	return RM_OK;
}

/* The device and the memory that a call names, checked against the mapper. */
static u32 find_parties(struct front_client *client, u32 device, u32 dma, u32 memory,
			struct front_object **mapper, struct front_object **what)
{
	struct front_object *on = front_object_find(client, device);

	*mapper = front_object_find(client, dma);
	*what = front_object_find(client, memory);
	if (!on || !*mapper || !*what)
		return RM_OBJECT_NOT_FOUND;
	if (on->klass->id != RM_CLASS_DEVICE && on->klass->id != RM_CLASS_SUBDEVICE)
		return RM_INVALID_OBJECT;
	if ((*mapper)->klass != &front_class_virtual)
		return RM_INVALID_OBJECT_HANDLE;
	if ((*what)->klass != &front_class_memory)
		return RM_INVALID_OBJECT;
	if (on->host != (*mapper)->host || on->host != (*what)->host)
		return RM_INVALID_OBJECT;
	return RM_OK;
}

static int map_pages(const struct mapping *mapping)
{
	struct front_vaspace *vaspace = mapping->vaspace;

	return vaspace->card->ops->space_map(vaspace->card, vaspace->space,
					     mapping->va >> PAGE_SHIFT, mapping->pages,
					     mapping->bytes >> PAGE_SHIFT);
}

u32 front_map_dma(struct front_client *client, struct rm_map_dma *call)
{
	struct front_object *mapper, *what;
	struct list_head *after;
	struct mapping *mapping;
	u64 bytes, fixed = 0, size;
	u32 status;

	status = find_parties(client, call->device, call->dma, call->memory, &mapper, &what);
	if (status)
		return status;
	size = (u64)what->memory->page_count << PAGE_SHIFT;
	if (!call->length || call->offset > size || call->length > size - call->offset)
		return RM_INVALID_LIMIT;
	if (offset_in_page(call->offset))
		return RM_INVALID_OFFSET;
	bytes = PAGE_ALIGN(call->length);
	if (call->flags & RM_MAP_DMA_OFFSET_FIXED) {
		fixed = call->va;
		if (offset_in_page(fixed) || fixed < VA_FIRST || fixed >= VA_END)
			return RM_INVALID_OFFSET;
	}
	if (!front_account_take(&client->account->mappings, FRONT_MAX_MAPPINGS))
		return RM_INSUFFICIENT_RESOURCES;
	mapping = kzalloc(sizeof(*mapping), GFP_KERNEL_ACCOUNT);
	status = mapping ? RM_OK : RM_NO_MEMORY;
	if (status)
		goto err_account;
	mapping->vaspace = mapper->vaspace;
	mapping->memory = what->memory;
	mapping->pages = &what->memory->pages[call->offset >> PAGE_SHIFT];
	mapping->virtual = mapper->handle;
	mapping->bytes = bytes;
	status = find_place(mapper->vaspace, fixed, bytes, &mapping->va, &after);
	if (status)
		goto err_mapping;
	if (map_pages(mapping)) {
		status = RM_NO_MEMORY;
		goto err_mapping;
	}
	front_memory_get(mapping->memory);
	list_add(&mapping->space_node, after);
	list_add(&mapping->memory_node, &mapping->memory->mappings);
	atomic_inc(&front_live.mappings);
	call->va = mapping->va;
	return RM_OK;

err_mapping:
	kfree(mapping);
err_account:
	atomic_dec(&client->account->mappings);
	return status;
}

u32 front_unmap_dma(struct front_client *client, const struct rm_unmap_dma *call)
{
	struct front_object *mapper = front_object_find(client, call->dma);
	struct mapping *mapping;

	if (!mapper || !front_object_find(client, call->device))
		return RM_OBJECT_NOT_FOUND;
	if (mapper->klass != &front_class_virtual)
		return RM_INVALID_OBJECT_HANDLE;
	list_for_each_entry(mapping, &mapper->vaspace->mappings, space_node) {
		if (mapping->virtual != mapper->handle || mapping->va != call->va)
			continue;
		if (call->bytes && call->bytes != mapping->bytes)
			return RM_INVALID_ARGUMENT;
		mapping_destroy(client, mapping);
		return RM_OK;
	}
	return RM_OBJECT_NOT_FOUND;
}

const struct front_class front_class_vaspace = {
	.id = RM_CLASS_VASPACE,
	.parents = { RM_CLASS_DEVICE, RM_CLASS_SUBDEVICE },
	.params_bytes = sizeof(struct rm_vaspace_params),
	.create = vaspace_create,
	.destroy = vaspace_destroy,
};

const struct front_class front_class_virtual = {
	.id = RM_CLASS_MEMORY_VIRTUAL,
	.parents = { RM_CLASS_DEVICE },
	.params_bytes = sizeof(struct rm_virtual_params),
	.create = virtual_create,
	.destroy = virtual_destroy,
};
