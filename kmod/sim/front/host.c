// SPDX-License-Identifier: GPL-2.0
/*
 * host.c - a card as the driver has it: made at load, gone with its device or at unload, found by
 * its minor. The reaper is here: it releases TSGs that nobody owns once they are off the card.
 */
#include "host.h"

#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/wait.h>

#define CHANNEL_CONFIG 0xb65000u
#define CHANNEL_CONFIG_DOORBELLS BIT(31)

static DEFINE_SPINLOCK(hosts_lock);
static DECLARE_WAIT_QUEUE_HEAD(host_left);
static struct front_host *hosts[SIM_CARDS_MAX]; /* [hosts_lock] */

struct front_host *front_host_get(u32 minor)
{
	struct front_host *host = NULL;

	if (minor >= SIM_CARDS_MAX)
		return NULL;
	spin_lock(&hosts_lock);
	if (hosts[minor] && !hosts[minor]->retired) {
		host = hosts[minor];
		host->users++;
	}
	spin_unlock(&hosts_lock);
	return host;
}

void front_host_hold(struct front_host *host)
{
	spin_lock(&hosts_lock);
	host->users++;
	spin_unlock(&hosts_lock);
}

void front_host_put(struct front_host *host)
{
	spin_lock(&hosts_lock);
	if (!--host->users)
		wake_up_all(&host_left); /* under the lock: who waits may free the host next */
	spin_unlock(&hosts_lock);
}

/* Asked by who is about to sleep, and so must not sleep itself. */
static bool is_left(struct front_host *host)
{
	bool left;

	spin_lock(&hosts_lock);
	left = !host->users;
	spin_unlock(&hosts_lock);
	return left;
}

void front_host_retire(struct front_host *host)
{
	spin_lock(&hosts_lock);
	host->retired = true;
	spin_unlock(&hosts_lock);
	wait_event(host_left, is_left(host));
}

u32 front_host_count(void)
{
	u32 i, count = 0;

	spin_lock(&hosts_lock);
	for (i = 0; i < SIM_CARDS_MAX; i++)
		count = hosts[i] ? i + 1 : count;
	spin_unlock(&hosts_lock);
	return count;
}

void front_host_location(const struct front_host *host, char *out, size_t bytes)
{
	if (host->card->pdev)
		strscpy(out, pci_name(host->card->pdev), bytes);
	else
		snprintf(out, bytes, "0000:%02x:00.0", host->card->index + 1);
}

u32 front_host_gpu_id(const struct front_host *host)
{
	return (host->card->index + 1) << 8;
}

u64 front_host_time_ns(struct front_host *host)
{
	return host->card->ops->time_ns(host->card);
}

void front_host_start(struct front_host *host)
{
	sim_card_write32(host->card, CHANNEL_CONFIG, CHANNEL_CONFIG_DOORBELLS);
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

int front_host_init(struct front_host *host, struct sim_card *card)
{
	int err;

	host->card = card;
	mutex_init(&host->mutex);
	INIT_LIST_HEAD(&host->tsgs);
	INIT_LIST_HEAD(&host->zombies);
	INIT_DELAYED_WORK(&host->reaper, reap);
	front_restless_init(host);
	front_trace_init(host);
	ida_init(&host->tsg_ids);
	ida_init(&host->channel_ids);
	err = front_runlist_init(host);
	if (err)
		return err;
	front_host_start(host);
	spin_lock(&hosts_lock);
	hosts[card->index] = host;
	spin_unlock(&hosts_lock);
	return 0;
}

void front_host_fini(struct front_host *host)
{
	struct front_tsg *tsg, *next;

	spin_lock(&hosts_lock);
	hosts[host->card->index] = NULL;
	spin_unlock(&hosts_lock);
	front_restless_fini(host);
	cancel_delayed_work_sync(&host->reaper);
	front_trace_fini(host);
	host->card->ops->stop(host->card);
	mutex_lock(&host->mutex);
	list_for_each_entry_safe(tsg, next, &host->zombies, node)
		release_zombie_locked(tsg);
	WARN_ON_ONCE(!list_empty(&host->tsgs));
	mutex_unlock(&host->mutex);
	front_runlist_fini(host);
	host->card->ops->destroy(host->card);
	ida_destroy(&host->tsg_ids);
	ida_destroy(&host->channel_ids);
}
