// SPDX-License-Identifier: GPL-2.0
/*
 * runlist.c - the driver's own list for the graphics runlist: every scheduled channel of every
 * TSG, in the order of creation, in two buffers of which the card owns one. As host-side RM does,
 * a changed list is submitted; while somebody else holds the slot it is only written and told.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "host.h"
#include "regs.h"

#define ENTRY_BYTES 16u
#define ENTRIES_MAX (CHIP_CHANNELS + CHIP_TSGS)
#define TIMEOUT_MAX 255u
#define SCALE_MAX 15u

/* TSG header (hardware page 3.3). The driver takes microseconds for units of 1024 ns. */
static void write_header(__le32 *entry, const struct front_tsg *tsg, u32 channels)
{
	u64 timeout = max_t(u64, tsg->timeslice_us, 1);
	u32 scale = 0;

	while (timeout > TIMEOUT_MAX && scale < SCALE_MAX) {
		timeout >>= 1;
		scale++;
	}
	timeout = min_t(u64, timeout, TIMEOUT_MAX);
	entry[0] = cpu_to_le32(1u | scale << 16 | (u32)timeout << 24);
	entry[1] = cpu_to_le32(channels);
	entry[2] = cpu_to_le32(tsg->id);
	entry[3] = 0;
}

static void write_channel(__le32 *entry, const struct front_channel *channel)
{
	u64 userd = channel->userd_addr, instance = channel->instance.addr;

	entry[0] =
		cpu_to_le32((u32)HW_TARGET_SYSMEM_COHERENT << 4 |
			    (u32)HW_TARGET_SYSMEM_COHERENT << 6 | (lower_32_bits(userd) & ~0xffu));
	entry[1] = cpu_to_le32(upper_32_bits(userd));
	entry[2] = cpu_to_le32(channel->id | (lower_32_bits(instance) & ~0xfffu));
	entry[3] = cpu_to_le32(upper_32_bits(instance));
}

/* Return: entries written. */
static u32 write_list(struct front_host *host, void *buffer)
{
	struct front_channel *channel;
	struct front_tsg *tsg;
	u32 entries = 0;

	list_for_each_entry(tsg, &host->tsgs, node) {
		u32 head = entries, channels = 0;

		list_for_each_entry(channel, &tsg->channels, node) {
			if (!channel->scheduled || channel->gate == GATE_UNLISTED)
				continue;
			channels++;
			write_channel(buffer + (head + channels) * ENTRY_BYTES, channel);
		}
		if (!channels)
			continue;
		write_header(buffer + head * ENTRY_BYTES, tsg, channels);
		entries += 1 + channels;
	}
	return entries;
}

/* TIMEOUT: 3 s, as nvgpu waits for a runlist. Return: false if it is still pending. */
static bool wait_taken(struct front_host *host)
{
	u32 info = RUNLIST_SUBMIT_INFO(host->card->gr_runlist);
	u64 deadline = ktime_get_ns() + 3 * NSEC_PER_SEC;

	while (sim_card_read32(host->card, info) & RUNLIST_PENDING) {
		if (ktime_get_ns() > deadline)
			return false;
		usleep_range(10, 50);
	}
	return true;
}

/* What is pending here was submitted by who had the slot before and may be malformed: such a list
 * stays pending until a sound one comes, so this one goes in all the same. */
static void submit(struct front_host *host, const struct sim_mem *list, u32 entries)
{
	u32 r = host->card->gr_runlist;

	host->last_list = list->addr;
	host->last_entries = entries;
	wait_taken(host);
	sim_card_write32(host->card, RUNLIST_BASE_LO(r),
			 lower_32_bits(list->addr) | HW_TARGET_SYSMEM_COHERENT);
	sim_card_write32(host->card, RUNLIST_BASE_HI(r), upper_32_bits(list->addr));
	sim_card_write32(host->card, RUNLIST_SUBMIT(r), entries);
	if (wait_taken(host)) {
		host->list_lost = false;
		return;
	}
	if (!host->list_lost)
		pr_err("qgpu_sim: card %u did not take a runlist within 3 s\n", host->card->index);
	host->list_lost = true;
}

void front_runlist_publish_locked(struct front_host *host)
{
	struct sim_mem *list = &host->lists[host->spare];
	u32 entries;

	lockdep_assert_held(&host->mutex);
	entries = write_list(host, list->cpu);
	if (host->slot_taken) {
		front_tell_list_locked(host);
		return;
	}
	submit(host, list, entries);
	host->spare ^= 1;
	if (host->list_followed)
		front_tell_list_locked(host);
}

void front_runlist_insist(struct front_host *host)
{
	struct sim_mem *list = &host->lists[host->spare];

	mutex_lock(&host->mutex);
	submit(host, list, write_list(host, list->cpu));
	host->spare ^= 1;
	mutex_unlock(&host->mutex);
}

int front_runlist_init(struct front_host *host)
{
	int err;

	host->serials = kvmalloc_array(CHIP_TSGS, sizeof(u64), GFP_KERNEL);
	if (!host->serials)
		return -ENOMEM;
	err = sim_mem_alloc(host->card, ENTRIES_MAX * ENTRY_BYTES, &host->lists[0]);
	if (err)
		goto err_serials;
	err = sim_mem_alloc(host->card, ENTRIES_MAX * ENTRY_BYTES, &host->lists[1]);
	if (err)
		goto err_list;
	return 0;

err_list:
	sim_mem_free(host->card, &host->lists[0]);
err_serials:
	kvfree(host->serials);
	return err;
}

void front_runlist_fini(struct front_host *host)
{
	sim_mem_free(host->card, &host->lists[0]);
	sim_mem_free(host->card, &host->lists[1]);
	kvfree(host->serials);
}
