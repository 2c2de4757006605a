/* SPDX-License-Identifier: GPL-2.0 */
/*
 * release.h - where the interface of driver releases differs. rm_abi.h is that of 550; what another
 * release has elsewhere, shorter or longer is here, and escape.c and control.c translate.
 */
#ifndef SIM_FRONT_RELEASE_H
#define SIM_FRONT_RELEASE_H

#include <linux/types.h>

/**
 * struct front_release - sizes and offsets in bytes
 * @branch: the first number of its version
 * @alloc_status: NVOS21
 * @rights_bytes, @rights_flags, @rights_status: NVOS64
 * @map_bytes, @map_va, @map_status: NVOS46
 * @unmap_bytes, @unmap_status: NVOS47; with 48 it also says how much
 * @memory_bytes, @channel_bytes, @vaspace_bytes: parameters of the classes; what is longer than in
 *                                                550 is at their ends
 * @schedule_bytes: of GPFIFO_SCHEDULE of a TSG
 */
struct front_release {
	u16 branch;
	u8 alloc_status;
	u8 rights_bytes, rights_flags, rights_status;
	u8 map_bytes, map_va, map_status;
	u8 unmap_bytes, unmap_status;
	u8 memory_bytes;
	u16 channel_bytes;
	u8 vaspace_bytes;
	u8 schedule_bytes;
};

/* The longest parameters of a class in any of them. */
#define FRONT_PARAMS_MAX 368

/* The one whose interface is offered; set at load. */
extern const struct front_release *front_layout;

/* By the branch of @version; one that is not known has 550's. */
void front_release_choose(const char *version);

struct front_class;

/* How long the parameters of @klass are in this release; 0: it has none. */
u32 front_release_params_bytes(const struct front_class *klass);

#endif
