// SPDX-License-Identifier: GPL-2.0
/*
 * front_heir - a tenant whose opener is gone: the process that makes a TSG leaves it to a child and
 * exits, and then the child makes another of the same client. Prints the child's pid; the child has
 * the card until it is killed.
 */
#include <signal.h>

#include "rm.h"

static uint32_t another_tsg(struct rm_tenant *t, const struct rm_buffer *memory)
{
	struct rm_tsg_params tsg = { .vaspace = t->vaspace, .engine_type = RM_ENGINE_GRAPHICS };
	struct rm_channel_params p = { .engine_type = RM_ENGINE_GRAPHICS, .gpfifo_entries = 64 };
	uint32_t channel = rm_next_handle(t);

	t->tsg = rm_next_handle(t);
	RM_TRY(rm_alloc(t->ctl, t->client, t->device, &t->tsg, RM_CLASS_TSG, &tsg, sizeof(tsg)));
	p.gpfifo_va = memory->va + 4096;
	p.userd_memory[0] = memory->handle;
	RM_TRY(rm_alloc(t->ctl, t->client, t->tsg, &channel, RM_CLASS_CHANNEL, &p, sizeof(p)));
	return rm_tenant_schedule(t);
}

int main(void)
{
	struct rm_tenant tenant;
	struct rm_channel channel;
	struct rm_buffer memory;
	pid_t opener = getpid(), child;

	if (rm_tenant_open(&tenant, 0) || rm_channel_create(&tenant, &channel) ||
	    rm_buffer_create(&tenant, 16384, &memory) || rm_tenant_schedule(&tenant))
		return 1;
	child = fork();
	if (child < 0)
		return 1;
	if (child) {
		printf("%d\n", (int)child);
		return 0;
	}
	fclose(stdout);
	while (getppid() == opener)
		sleep_ns(1000000);
	if (another_tsg(&tenant, &memory))
		return 1;
	for (;;)
		pause();
}
