/* SPDX-License-Identifier: GPL-2.0 */
/*
 * list.h - the list that is in a runlist's slot, as the card reads it: where it lies, and what is
 * in it. Whose memory that is and how it is reached is the caller's.
 */
#ifndef QGPU_TU104_LIST_H
#define QGPU_TU104_LIST_H

#include "hw/hw_ops.h"

/**
 * struct tu104_list - where a list lies
 * @target: what @addr is an address of
 */
struct tu104_list {
	u64 addr;
	enum hw_target target;
	u32 entries;
};

/**
 * tu104_list_find() - the list in the slot of @runlist
 *
 * Return: 0; -EAGAIN: it is being changed; -EOPNOTSUPP: it begins somewhere in the middle (OFFSET),
 * which no known driver does, and what is before that is not known to be in force; -ENODEV, -EIO.
 * At most seven register reads.
 */
int tu104_list_find(struct hw *hw, u32 runlist, struct tu104_list *out);

/**
 * tu104_list_await() - the same, once a change in progress is over; sleeps for half a millisecond
 * at most
 *
 * Return: as tu104_list_find().
 */
int tu104_list_await(struct hw *hw, u32 runlist, struct tu104_list *out);

/**
 * struct tu104_list_reader - goes over the entries of a list in pieces
 * @channel: told of each channel entry, with the TSG it belongs to
 * @tsg_id, @missing: the reader's own: of the TSG that is open, and how many channels it still
 * wants
 */
struct tu104_list_reader {
	void (*channel)(void *ctx, u16 tsg_id, const struct hw_channel *channel);
	void *ctx;
	u16 tsg_id;
	u32 missing;
};

/**
 * tu104_list_read() - the next @count entries at @entries, which may be read once only
 *
 * Return: 0, or -EINVAL: a card would not take this list either. At its end @missing is 0.
 */
int tu104_list_read(struct tu104_list_reader *reader, const void *entries, u32 count);

#endif
