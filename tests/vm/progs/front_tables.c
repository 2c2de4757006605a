// SPDX-License-Identifier: GPL-2.0
/*
 * front_tables CGROUP - page tables of a card on the PCI bus are charged to whose mappings need them
 * and go with the last of those. Moves itself to CGROUP; prints TAP lines (no plan) and exits with
 * their verdict.
 */
#include "rm.h"

#define PLACES 512u
#define APART (1ull << 30) /* each needs tables of its own */
#define SLACK (1ull << 20) /* the kernel charges in lots */

static const char *cgroup;

static FILE *cgroup_file(const char *name, const char *mode)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", cgroup, name);
	return fopen(path, mode);
}

static uint64_t charged_bytes(void)
{
	FILE *file = cgroup_file("memory.current", "r");
	unsigned long long bytes = 0;

	if (!file || fscanf(file, "%llu", &bytes) != 1)
		return 0;
	fclose(file);
	return bytes;
}

int main(int argc, char **argv)
{
	uint64_t va, before, mapped, after;
	uint32_t i, status = 0;
	struct rm_tenant tenant;
	struct rm_buffer buffer;
	FILE *procs;

	cgroup = argc > 1 ? argv[1] : "";
	procs = cgroup_file("cgroup.procs", "w");
	tap(procs && fprintf(procs, "0") == 1 && !fclose(procs), "a tenant in a cgroup");
	tap_status(rm_tenant_open(&tenant, 0), 0, "opens the card");
	tap_status(rm_buffer_create(&tenant, 4096, &buffer), 0, "has a page");
	before = charged_bytes();
	for (i = 0; i < PLACES; i++) {
		va = (i + 16) * APART;
		status |= rm_map_dma(tenant.ctl, tenant.client, tenant.device, tenant.virtual,
				     buffer.handle, 4096, RM_MAP_DMA_OFFSET_FIXED, &va);
	}
	tap_status(status, 0, "maps it in 512 places, 1 GiB apart");
	mapped = charged_bytes();
	printf("# %llu KiB for the tables\n", (unsigned long long)(mapped - before) / 1024);
	tap(mapped >= before + PLACES * 2 * 4096 - SLACK, "and is charged for two tables each");
	for (i = 0; i < PLACES; i++)
		status |= rm_unmap_dma(tenant.ctl, tenant.client, tenant.device, tenant.virtual,
				       (i + 16) * APART, 4096);
	tap_status(status, 0, "it unmaps them");
	after = charged_bytes();
	printf("# %lld KiB are left\n", ((long long)after - (long long)before) / 1024);
	tap(after < before + SLACK, "and the tables are gone");
	return tap_failed;
}
