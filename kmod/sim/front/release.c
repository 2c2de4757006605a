// SPDX-License-Identifier: GPL-2.0
/*
 * release.c - see release.h. Each row was read from the published headers of its release:
 * 525.105.17, 535.129.03, 550.90.07, 580.65.06 (docs/rm-abi.md).
 */
#include "release.h"

#include <linux/kernel.h>

#include "front.h"

static const struct front_release releases[] = {
	{
		.branch = 550,
		.alloc_status = 28,
		.rights_bytes = 48,
		.rights_flags = 36,
		.rights_status = 40,
		.map_bytes = 56,
		.map_va = 40,
		.map_status = 48,
		.unmap_bytes = 48,
		.unmap_status = 40,
		.memory_bytes = 128,
		.channel_bytes = 360,
		.vaspace_bytes = 48,
		.schedule_bytes = 2,
	},
	{
		.branch = 525,
		.alloc_status = 24,
		.rights_bytes = 40,
		.rights_flags = 32,
		.rights_status = 36,
		.map_bytes = 56,
		.map_va = 40,
		.map_status = 48,
		.unmap_bytes = 40,
		.unmap_status = 32,
		.memory_bytes = 120,
		.channel_bytes = 304,
		.vaspace_bytes = 48,
		.schedule_bytes = 2,
	},
	{
		.branch = 535,
		.alloc_status = 28,
		.rights_bytes = 48,
		.rights_flags = 36,
		.rights_status = 40,
		.map_bytes = 56,
		.map_va = 40,
		.map_status = 48,
		.unmap_bytes = 40,
		.unmap_status = 32,
		.memory_bytes = 120,
		.channel_bytes = 360,
		.vaspace_bytes = 48,
		.schedule_bytes = 2,
	},
	{
		.branch = 580,
		.alloc_status = 28,
		.rights_bytes = 48,
		.rights_flags = 36,
		.rights_status = 40,
		.map_bytes = 64,
		.map_va = 48,
		.map_status = 56,
		.unmap_bytes = 48,
		.unmap_status = 40,
		.memory_bytes = 128,
		.channel_bytes = FRONT_PARAMS_MAX,
		.vaspace_bytes = 56,
		.schedule_bytes = 3,
	},
};

const struct front_release *front_layout = &releases[0];

void front_release_choose(const char *version)
{
	unsigned int branch = 0;
	u32 i;

	if (sscanf(version, "%u", &branch) != 1)
		return;
	for (i = 0; i < ARRAY_SIZE(releases); i++)
		if (releases[i].branch == branch)
			front_layout = &releases[i];
}

u32 front_release_params_bytes(const struct front_class *klass)
{
	switch (klass->id) {
	case RM_CLASS_MEMORY_SYSTEM:
	case RM_CLASS_MEMORY_DEVICELESS:
		return front_layout->memory_bytes;
	case RM_CLASS_CHANNEL:
		return front_layout->channel_bytes;
	case RM_CLASS_VASPACE:
		return front_layout->vaspace_bytes;
	default:
		return klass->params_bytes;
	}
}
