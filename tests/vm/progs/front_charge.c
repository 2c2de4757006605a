// SPDX-License-Identifier: GPL-2.0
/*
 * front_charge CGROUP - what the driver remembers of a tenant's GPU mappings is charged to the
 * tenant's cgroup. Moves itself there; prints TAP lines (no plan) and exits with their verdict.
 */
#include "rm.h"

#define MAPPINGS 64
#define MEMORY_BYTES (64ull << 20)

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
	struct rm_tenant tenant;
	struct rm_buffer buffer;
	uint64_t va = 0, before, after;
	uint32_t i, status = 0;
	FILE *procs;

	cgroup = argc > 1 ? argv[1] : "";
	procs = cgroup_file("cgroup.procs", "w");
	tap(procs && fprintf(procs, "0") == 1 && !fclose(procs), "a tenant in a cgroup");
	tap_status(rm_tenant_open(&tenant, 0), 0, "opens the card");
	tap_status(rm_buffer_create(&tenant, MEMORY_BYTES, &buffer), 0, "has 64 MiB");
	before = charged_bytes();
	tap(before >= MEMORY_BYTES, "and is charged for them");
	for (i = 0; i < MAPPINGS; i++)
		status |= rm_map_dma(tenant.ctl, tenant.client, tenant.device, tenant.virtual,
				     buffer.handle, MEMORY_BYTES, 0, &va);
	tap_status(status, 0, "it maps them 64 times");
	after = charged_bytes();
	printf("# %llu KiB for the mappings\n", (unsigned long long)(after - before) / 1024);
	tap(after >= before + MAPPINGS * (MEMORY_BYTES >> 12) * 8,
	    "and is charged a word for each page");
	return tap_failed;
}
