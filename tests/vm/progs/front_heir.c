// SPDX-License-Identifier: GPL-2.0
/*
 * front_heir - a tenant whose opener is gone: the process that makes a TSG leaves it to a child and
 * exits. Prints the child's pid; the child has the card until it is killed.
 */
#include <signal.h>

#include "rm.h"

int main(void)
{
	struct rm_tenant tenant;
	struct rm_channel channel;
	pid_t child;

	if (rm_tenant_open(&tenant, 0) || rm_channel_create(&tenant, &channel) ||
	    rm_tenant_schedule(&tenant))
		return 1;
	child = fork();
	if (child < 0)
		return 1;
	if (child) {
		printf("%d\n", (int)child);
		return 0;
	}
	fclose(stdout);
	for (;;)
		pause();
}
