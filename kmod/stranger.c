// SPDX-License-Identifier: GPL-2.0
/*
 * stranger.c - channels in the driver's list that the driver did not tell of. A list of ours would
 * leave them out, and they would never run again: so a card that has some is held by gates, which
 * touch nobody but those that are known. Looked for before the slot is taken, and each time that
 * somebody else's list is found in it.
 *
 * The list is read where the card reads it. One in video memory is not: that would take a window
 * that is the driver's (hardware page 12), so it counts as having strangers.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include "hw/tu104/list.h"
#include "hw/tu104/regs.h"
#include "qgpu.h"

#define PAGE_ENTRIES (PAGE_SIZE / TU104_RAMRL_ENTRY_BYTES)

int qgpu_strangers_init(struct qgpu_card *card)
{
	if (!card->io.kind->mem_map)
		return 0;
	card->known = kvcalloc(TU104_CHANNELS, sizeof(*card->known), GFP_KERNEL);
	return card->known ? 0 : -ENOMEM;
}

void qgpu_strangers_fini(struct qgpu_card *card)
{
	kvfree(card->known);
	card->known = NULL;
}

struct census {
	struct qgpu_card *card;
	u32 strangers;
};

/* Whose instance block a channel id is now, as far as the driver told; by id. */
static void note_known_locked(struct qgpu_card *card)
{
	struct qgpu_tsg *tsg;
	unsigned long serial;
	u32 i;

	memset(card->known, 0, TU104_CHANNELS * sizeof(*card->known));
	xa_for_each(&card->tsgs, serial, tsg)
		for (i = 0; i < tsg->turn.channel_count; i++)
			card->known[tsg->channels[i].id] = tsg->channels[i].inst_addr;
}

/* Ids are used again at once: a channel is its instance block. */
static void look_at(void *ctx, u16 tsg_id, const struct hw_channel *channel)
{
	struct census *census = ctx;

	census->strangers += census->card->known[channel->id] != channel->inst_addr;
}

static int count_locked(struct qgpu_card *card, const struct tu104_list *list, u32 *strangers)
{
	struct census census = { .card = card };
	struct tu104_list_reader reader = { .channel = look_at, .ctx = &census };
	u32 at, count;
	int err = 0;

	note_known_locked(card);
	for (at = 0; at < list->entries && !err; at += count) {
		const void *page;

		count = min_t(u32, list->entries - at, PAGE_ENTRIES);
		page = card->io.kind->mem_map(&card->io, list->target,
					      list->addr + (u64)at * TU104_RAMRL_ENTRY_BYTES);
		if (IS_ERR(page))
			return PTR_ERR(page);
		err = tu104_list_read(&reader, page, count);
		card->io.kind->mem_unmap(&card->io, page);
	}
	*strangers = census.strangers;
	return err ? err : reader.missing ? -EINVAL : 0;
}

int qgpu_strangers_found_locked(struct qgpu_card *card)
{
	struct tu104_list list;
	u32 strangers = 0;
	int err;

	lockdep_assert_held(&card->lock);
	if (!card->known)
		return 0;
	err = tu104_list_await(&card->hw, card->runlist, &list);
	if (!err)
		err = count_locked(card, &list, &strangers);
	if (err == -ENODEV)
		return err;
	if (err)
		pr_warn("qgpu: card %u: the driver's list cannot be read (error %d)\n", card->index,
			err);
	if (strangers)
		pr_warn("qgpu: card %u: the driver's list has %u channels that it did not tell "
			"of\n",
			card->index, strangers);
	return err || strangers;
}
