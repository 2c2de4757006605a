// SPDX-License-Identifier: GPL-2.0
/*
 * host.c - a card as the driver has it: made at load, gone at unload, found by its minor. The
 * reaper is here: it releases TSGs that nobody owns once they are off the card.
 */
#include "host.h"

#include <linux/slab.h>

#define CHANNEL_CONFIG 0xb65000u
#define CHANNEL_CONFIG_DOORBELLS BIT(31)

/* Set at load, before any file can be opened. */
static struct front_host *hosts[SIM_CARDS_MAX];
static u32 host_count;

struct front_host *front_host_find(u32 minor)
{
	return minor < host_count ? hosts[minor] : NULL;
}

u32 front_host_count(void)
{
	return host_count;
}

u32 front_host_gpu_id(const struct front_host *host)
{
	return (host->card.index + 1) << 8;
}

u64 front_host_time_ns(struct front_host *host)
{
	return sim_card_time_ns(&host->card);
}

static void release_zombie_locked(struct front_tsg *tsg)
{
	atomic_dec(&front_live.zombies);
	front_tsg_release_locked(tsg);
}

static void reap(struct work_struct *work)
{
	struct front_host *host = container_of(work, struct front_host, reaper.work);
	struct front_tsg *tsg, *next;

	mutex_lock(&host->mutex);
	list_for_each_entry_safe(tsg, next, &host->zombies, node) {
		if (front_tsg_off_locked(tsg))
			release_zombie_locked(tsg);
	}
	if (!list_empty(&host->zombies))
		schedule_delayed_work(&host->reaper, msecs_to_jiffies(HOST_REAP_MS));
	mutex_unlock(&host->mutex);
}

int front_host_init(struct front_host *host, u32 index)
{
	int err;

	mutex_init(&host->mutex);
	INIT_LIST_HEAD(&host->tsgs);
	INIT_LIST_HEAD(&host->zombies);
	INIT_DELAYED_WORK(&host->reaper, reap);
	front_trace_init(host);
	ida_init(&host->tsg_ids);
	ida_init(&host->channel_ids);
	err = sim_card_init(&host->card, index);
	if (err)
		return err;
	err = front_runlist_init(host);
	if (err) {
		sim_card_stop(&host->card);
		sim_card_fini(&host->card);
		return err;
	}
	sim_card_write32(&host->card, CHANNEL_CONFIG, CHANNEL_CONFIG_DOORBELLS);
	hosts[index] = host;
	host_count = index + 1;
	return 0;
}

void front_host_fini(struct front_host *host)
{
	struct front_tsg *tsg, *next;

	host_count = 0;
	cancel_delayed_work_sync(&host->reaper);
	front_trace_fini(host);
	sim_card_stop(&host->card);
	mutex_lock(&host->mutex);
	list_for_each_entry_safe(tsg, next, &host->zombies, node)
		release_zombie_locked(tsg);
	WARN_ON_ONCE(!list_empty(&host->tsgs));
	mutex_unlock(&host->mutex);
	front_runlist_fini(host);
	sim_card_fini(&host->card);
	ida_destroy(&host->tsg_ids);
	ida_destroy(&host->channel_ids);
}
