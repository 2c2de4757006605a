/* SPDX-License-Identifier: GPL-2.0 */
/*
 * memory.h - system memory of tenants (class 0x3e) and GPU address spaces (0x90f1, 0x70).
 */
#ifndef SIM_FRONT_MEMORY_H
#define SIM_FRONT_MEMORY_H

#include "front.h"

/**
 * struct front_memory - pages that a tenant and the card share
 * @mappings: [client->lock] its GPU mappings
 */
struct front_memory {
	struct kref ref;
	struct front_account *account;
	struct list_head mappings;
	u32 page_count;
	struct page *pages[];
};

void front_memory_get(struct front_memory *memory);
void front_memory_put(struct front_memory *memory);
int front_memory_map(struct front_memory *memory, u64 bytes, struct vm_area_struct *vma);

/**
 * struct front_vaspace - a GPU address space; lives until the last channel in it is gone
 * @mappings: [client->lock] by address
 */
struct front_vaspace {
	struct kref ref;
	struct sim_card *card;
	struct sim_space *space;
	struct list_head mappings;
};

void front_vaspace_get(struct front_vaspace *vaspace);
void front_vaspace_put(struct front_vaspace *vaspace);

/* MAP_/UNMAP_MEMORY_DMA; a status code. Under client->lock. */
u32 front_map_dma(struct front_client *client, struct rm_map_dma *call);
u32 front_unmap_dma(struct front_client *client, const struct rm_unmap_dma *call);
/* Remove every GPU mapping of @memory. Under client->lock. */
void front_unmap_memory(struct front_client *client, struct front_memory *memory);

extern const struct front_class front_class_memory, front_class_vaspace, front_class_virtual;

#endif
