// SPDX-License-Identifier: GPL-2.0
/*
 * restless.c - a driver that does not keep still: from time to time it gives some TSG another slice
 * and submits its list, whoever holds the slot, as a real one does when a program anywhere makes,
 * frees or re-slices something. How often is debugfs's to say ("restless_ms").
 */
#include <linux/random.h>

#include "host.h"

/* A slice of 1 to 8 ms, in the driver's microseconds. */
#define SLICE_US() (1000u * (1 + get_random_u32() % 8))

/* Some TSG in the list, each as likely as another; NULL: the list is empty. */
static struct front_tsg *choose_locked(struct front_host *host)
{
	struct front_tsg *tsg, *chosen = NULL;
	u32 seen = 0;

	list_for_each_entry(tsg, &host->tsgs, node)
		if (tsg->scheduled && !(get_random_u32() % ++seen))
			chosen = tsg;
	return chosen;
}

static void stir(struct work_struct *work)
{
	struct front_host *host = container_of(work, struct front_host, restless.work);
	u32 every_ms = READ_ONCE(host->restless_ms);
	struct front_tsg *tsg;

	if (!every_ms)
		return;
	mutex_lock(&host->mutex);
	tsg = choose_locked(host);
	if (tsg) {
		tsg->timeslice_us = SLICE_US();
		front_tell_slice_locked(tsg);
	}
	mutex_unlock(&host->mutex);
	front_runlist_insist(host);
	schedule_delayed_work(&host->restless,
			      msecs_to_jiffies(every_ms / 2 + get_random_u32() % (every_ms + 1)));
}

void front_restless_set(struct front_host *host, u32 every_ms)
{
	WRITE_ONCE(host->restless_ms, every_ms);
	if (every_ms)
		schedule_delayed_work(&host->restless, 0);
}

void front_restless_init(struct front_host *host)
{
	INIT_DELAYED_WORK(&host->restless, stir);
}

void front_restless_fini(struct front_host *host)
{
	WRITE_ONCE(host->restless_ms, 0);
	cancel_delayed_work_sync(&host->restless);
}
