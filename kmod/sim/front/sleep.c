// SPDX-License-Identifier: GPL-2.0
/*
 * sleep.c - the driver takes its card's power away and brings it back: around the machine's sleep,
 * and whenever debugfs says so ("power_cycle"), as drivers do with a card that idles or hangs,
 * without a word to anybody. What is in registers is lost and set anew from what the driver knows.
 * Rings are in memory and stay; the model keeps what it saves of a kernel in itself, so that is
 * lost.
 */
#include "host.h"
#include "regs.h"

#define PMC_ENABLE 0x000200u
#define PMC_ENABLE_PFIFO BIT(8)

static void put_to_sleep_locked(struct front_host *host)
{
	struct front_channel *channel;
	struct front_tsg *tsg;
	u32 enabled;

	list_for_each_entry(tsg, &host->tsgs, node)
		list_for_each_entry(channel, &tsg->channels, node)
			front_channel_disable_locked(channel);
	list_for_each_entry(tsg, &host->tsgs, node)
		front_tsg_evict_locked(tsg, NULL);
	enabled = sim_card_read32(host->card, PMC_ENABLE);
	sim_card_write32(host->card, PMC_ENABLE, enabled & ~PMC_ENABLE_PFIFO);
}

/* As they were made: bound, listed, enabled, and looked at. */
static void wake_locked(struct front_host *host)
{
	struct sim_card *card = host->card;
	struct front_channel *channel;
	struct front_tsg *tsg;

	sim_card_write32(card, PMC_ENABLE, sim_card_read32(card, PMC_ENABLE) | PMC_ENABLE_PFIFO);
	front_host_start(host);
	list_for_each_entry(tsg, &host->tsgs, node)
		list_for_each_entry(channel, &tsg->channels, node)
			sim_card_write32(card, PCCSR_INST(channel->id),
					 front_channel_instance(channel));
	front_runlist_publish_locked(host);
	list_for_each_entry(tsg, &host->tsgs, node)
		list_for_each_entry(channel, &tsg->channels, node)
			if (channel->scheduled && channel->gate == GATE_OPEN)
				front_channel_enable_locked(channel);
}

void front_host_sleep(struct front_host *host)
{
	mutex_lock(&host->mutex);
	put_to_sleep_locked(host);
	mutex_unlock(&host->mutex);
}

void front_host_wake(struct front_host *host)
{
	mutex_lock(&host->mutex);
	wake_locked(host);
	mutex_unlock(&host->mutex);
}

void front_host_power_cycle(struct front_host *host)
{
	mutex_lock(&host->mutex);
	put_to_sleep_locked(host);
	wake_locked(host);
	mutex_unlock(&host->mutex);
}
