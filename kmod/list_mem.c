// SPDX-License-Identifier: GPL-2.0
/*
 * list_mem.c - memory of the two lists that a card's turn puts in the slot, and when it may be
 * anybody's again. A card reads a list by DMA whenever it was told to: after a submit that was
 * never acknowledged, or a driver whose own list was not taken, it may do so still. Called by
 * card.c as a card comes and goes.
 */
#include "hw/tu104/list.h"
#include "qgpu.h"

/* Every channel with its TSG's header, and one TSG twice. */
#define LIST_BYTES ALIGN((QGPU_TSGS_MAX + 4096u + 1 + HW_MAX_TSG_CHANNELS) * 16, 4096)

int qgpu_lists_alloc(struct qgpu_card *card)
{
	u32 i;
	int err;

	for (i = 0; i < ARRAY_SIZE(card->images); i++) {
		err = card->io.kind->mem_alloc(&card->io, LIST_BYTES, &card->images[i]);
		if (err) {
			card->images[i].cpu = NULL;
			qgpu_lists_free(card);
			return err;
		}
	}
	return 0;
}

void qgpu_lists_free(struct qgpu_card *card)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(card->images); i++)
		if (card->images[i].cpu)
			card->io.kind->mem_free(&card->io, &card->images[i]);
}

/* What cannot be seen may be ours. */
static bool may_be_read(struct qgpu_card *card)
{
	struct tu104_list list;
	u32 i;

	if (!turn_has_submitted(card->turn))
		return false;
	if (tu104_list_await(&card->hw, card->runlist, &list))
		return true;
	for (i = 0; i < ARRAY_SIZE(card->images); i++)
		if (list.entries && list.addr - card->images[i].bus_addr < card->images[i].bytes)
			return true;
	return false;
}

void qgpu_lists_release(struct qgpu_card *card)
{
	if (may_be_read(card))
		pr_warn("qgpu: card %u: its driver's list is not in the slot: %u bytes that the "
			"card may read are never freed\n",
			card->index, card->images[0].bytes + card->images[1].bytes);
	else
		qgpu_lists_free(card);
}
