// SPDX-License-Identifier: GPL-2.0
/*
 * runlist.c - the slot of each runlist: base, submit, fetch, and the list in force.
 *
 * A fetched list is a snapshot. Its source belongs to the chip until the next submit: it is
 * hashed when submitted, when fetched and when replaced, and a difference is a protocol error.
 */
#include "chip_state.h"

#define CHUNK_ENTRIES 16u
#define HASH_START 0xcbf29ce484222325ull
#define HASH_PRIME 0x100000001b3ull

/* Where a parse stands. */
struct parse {
	struct chip_runlist *rl;
	u32 entry;
	u32 channels_missing;
	u64 hash;
	bool garbled;
};

u32 chip_runlist_read(struct chip *chip, u32 runlist, u32 reg)
{
	const struct chip_runlist *rl = &chip->runlists[runlist];

	switch (reg) {
	case CHIP_RUNLIST_BASE_LO:
		return rl->base_lo;
	case CHIP_RUNLIST_BASE_HI:
		return rl->base_hi;
	case CHIP_RUNLIST_SUBMIT:
		return rl->submit;
	default:
		return rl->preempted | (rl->pending ? CHIP_SUBMIT_INFO_PENDING : 0);
	}
}

static u64 hash_words(u64 hash, const u32 *words, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++)
		hash = (hash ^ words[i]) * HASH_PRIME;
	return hash;
}

/* Return: 0 when the source cannot be read; a list that hashes to 0 will not be met. */
static u64 hash_source(struct chip *chip, const struct chip_runlist *rl)
{
	u32 words[CHUNK_ENTRIES * 4];
	u64 hash = HASH_START;
	u32 entry, count;

	for (entry = 0; entry < rl->length; entry += count) {
		count = min(rl->length - entry, CHUNK_ENTRIES);
		if (chip->ops.read(chip->ctx, rl->target,
				   rl->address + (u64)entry * CHIP_RL_ENTRY_BYTES, words,
				   count * CHIP_RL_ENTRY_BYTES))
			return 0;
		hash = hash_words(hash, words, count * 4);
	}
	return hash;
}

static bool checks_ownership(const struct chip *chip)
{
	return !chip->cfg.sw.ignore_owned_list_change && !chip->cfg.sw.list_reread;
}

/* Which TSG the old list is cut at (reading of the page, 3.1). */
static void record_preempted(struct chip *chip, u32 runlist)
{
	struct chip_runlist *rl = &chip->runlists[runlist];
	const struct chip_unit *unit = &chip->units[runlist];

	rl->preempted = 0;
	if (unit->stage != CHIP_RUN || chip->cfg.sw.preempted_not_recorded)
		return;
	rl->preempted = unit->tsg | CHIP_SUBMIT_INFO_VALID;
	if (unit->visit != CHIP_NONE)
		rl->preempted |= (u32)rl->visits[unit->visit].entry
				 << CHIP_SUBMIT_INFO_OFFSET_SHIFT;
}

void chip_runlist_start_fetch(struct chip *chip, u32 runlist)
{
	struct chip_runlist *rl = &chip->runlists[runlist];
	const struct chip_latency *lat = &chip->cfg.lat;

	if (chip->trouble.fetch_stuck & (1u << runlist))
		return;
	rl->fetch_end_ns =
		chip_later(chip->now_ns, lat->fetch_ns + (u64)rl->length * lat->fetch_entry_ns);
}

static void submit(struct chip *chip, u32 runlist, u32 value)
{
	struct chip_runlist *rl = &chip->runlists[runlist];
	struct chip_unit *unit = &chip->units[runlist];

	unit->totals.submits++;
	if (rl->fetching) {
		chip_protocol_error(chip, "submit while an earlier one is being fetched");
		if (chip->cfg.sw.pending_submit_kept)
			return;
	} else {
		record_preempted(chip, runlist);
	}
	rl->submit = value;
	if (rl->owned && checks_ownership(chip) && hash_source(chip, rl) != rl->hash)
		chip_protocol_error(chip, "the list in force was changed in memory");
	rl->owned = false;
	rl->target = rl->base_lo & CHIP_RUNLIST_BASE_LO_TARGET;
	rl->address = (rl->base_lo & 0xfffff000u) | (u64)rl->base_hi << 32;
	rl->length = value & CHIP_RUNLIST_SUBMIT_LENGTH;
	rl->offset = value >> CHIP_RUNLIST_SUBMIT_OFFSET_SHIFT;
	rl->hash = checks_ownership(chip) ? hash_source(chip, rl) : 0;
	rl->pending = true;
	rl->fetching = true;
	rl->fetch_end_ns = CHIP_NEVER;
	if (!chip->cfg.sw.fetch_waits_for_sched_enable || !(chip->sched_disable & (1u << runlist)))
		chip_runlist_start_fetch(chip, runlist);
	if (!chip->cfg.sw.submit_keeps_running)
		chip_engine_expire(chip, unit);
	chip_engine_arm(chip, unit);
}

void chip_runlist_write(struct chip *chip, u32 runlist, u32 reg, u32 value)
{
	struct chip_runlist *rl = &chip->runlists[runlist];

	switch (reg) {
	case CHIP_RUNLIST_BASE_LO:
		rl->base_lo = value & CHIP_RUNLIST_BASE_LO_BITS;
		break;
	case CHIP_RUNLIST_BASE_HI:
		rl->base_hi = value & CHIP_RUNLIST_BASE_HI_BITS;
		break;
	case CHIP_RUNLIST_SUBMIT:
		submit(chip, runlist, value);
		break;
	default:
		break;
	}
}

/* Nothing may be chosen from the list: a fetch is under way, or scheduling is disabled. */
bool chip_runlist_blocked(const struct chip *chip, const struct chip_unit *unit)
{
	return chip->runlists[unit->runlist].fetching ||
	       (chip->sched_disable & (1u << unit->runlist));
}

/* One entry. Return: 0, or -EINVAL: the list is malformed. */
static int parse_entry(struct parse *p, const u32 *words)
{
	struct chip_visit *visit;
	const u32 length = words[1] & CHIP_RL1_LENGTH;

	if (!(words[0] & CHIP_RL0_TSG)) {
		if (!p->channels_missing)
			return -EINVAL;
		p->channels_missing--;
		p->rl->channels[p->entry] = (u16)(words[2] & CHIP_RL2_ID) |
					    (words[0] & CHIP_RL0_RUNQUEUE ? CHIP_RUNQUEUE_BIT : 0);
		return 0;
	}
	if (p->channels_missing || !length || length > CHIP_RL1_LENGTH_MAX)
		return -EINVAL;
	p->channels_missing = length;
	visit = &p->rl->visits[p->rl->visit_count++];
	visit->tsg = words[2] & CHIP_RL2_ID;
	visit->entry = (u16)p->entry;
	visit->channels = (u8)length;
	visit->scale = (words[0] >> CHIP_RL0_SCALE_SHIFT) & CHIP_RL0_SCALE;
	visit->timeout = (u8)(words[0] >> CHIP_RL0_TIMEOUT_SHIFT);
	return 0;
}

static int parse_source(struct chip *chip, struct parse *p)
{
	const struct chip_runlist *rl = p->rl;
	u32 words[CHUNK_ENTRIES * 4];
	u32 count, i;

	for (; p->entry < rl->length;) {
		count = min(rl->length - p->entry, CHUNK_ENTRIES);
		if (chip->ops.read(chip->ctx, rl->target,
				   rl->address + (u64)p->entry * CHIP_RL_ENTRY_BYTES, words,
				   count * CHIP_RL_ENTRY_BYTES))
			return -EFAULT;
		p->hash = hash_words(p->hash, words, count * 4);
		if (!p->entry && p->garbled)
			words[0] ^= CHIP_RL0_TSG;
		for (i = 0; i < count; i++, p->entry++)
			if (parse_entry(p, &words[4 * i]))
				return -EINVAL;
	}
	return p->channels_missing ? -EINVAL : 0;
}

static void list_channels(struct chip *chip, u32 runlist)
{
	const struct chip_runlist *rl = &chip->runlists[runlist];
	u32 v, i;

	for (v = 0; v < rl->visit_count; v++)
		for (i = 1; i <= rl->visits[v].channels; i++)
			chip_channel_list(chip, chip_rotation_channel(rl, rl->visits[v].entry + i),
					  (u8)runlist, rl->visits[v].tsg);
}

static void unlist_channels(struct chip *chip, u32 runlist)
{
	const struct chip_runlist *rl = &chip->runlists[runlist];
	u32 v, i;
	u16 id;

	for (v = 0; v < rl->visit_count; v++)
		for (i = 1; i <= rl->visits[v].channels; i++) {
			id = chip_rotation_channel(rl, rl->visits[v].entry + i);
			if (chip->channels[id].runlist == runlist)
				chip_channel_unlist(chip, id);
		}
}

/* Take what is in memory as the list in force. Return: 0, or it is empty and the error is set. */
static int take_list(struct chip *chip, u32 runlist, u64 *hash)
{
	struct chip_runlist *rl = &chip->runlists[runlist];
	struct parse p = {
		.rl = rl,
		.hash = HASH_START,
		.garbled = chip->trouble.fetch_garbled & (1u << runlist),
	};
	int err;

	unlist_channels(chip, runlist);
	rl->visit_count = 0;
	err = parse_source(chip, &p);
	*hash = p.hash;
	if (!err) {
		list_channels(chip, runlist);
		return 0;
	}
	rl->visit_count = 0;
	chip_intr_sched_error(chip, err == -EFAULT ? CHIP_SCHED_ERROR_DATA_TIMEOUT
						   : CHIP_SCHED_ERROR_BAD_TSG);
	chip_protocol_error(chip, err == -EFAULT ? "a runlist lies where there is no memory"
						 : "a malformed runlist");
	return err;
}

static u32 visit_at_offset(const struct chip *chip, const struct chip_runlist *rl)
{
	u32 v;

	if (chip->cfg.sw.submit_offset_ignored)
		return 0;
	for (v = 0; v < rl->visit_count; v++)
		if (rl->visits[v].entry >= rl->offset)
			return v;
	return 0;
}

void chip_runlist_finish_fetch(struct chip *chip, u32 runlist)
{
	struct chip_runlist *rl = &chip->runlists[runlist];
	u64 hash;

	rl->fetching = false;
	rl->fetch_end_ns = CHIP_NEVER;
	if (!take_list(chip, runlist, &hash)) {
		if (checks_ownership(chip) && hash != rl->hash)
			chip_protocol_error(chip,
					    "a list was changed while its submit was pending");
		rl->hash = hash;
		rl->owned = rl->length != 0;
		rl->pending = false;
		chip_intr_runlist_event(chip, runlist);
	} else if (chip->cfg.sw.malformed_clears_pending) {
		rl->pending = false;
	}
	chip_engine_new_list(chip, &chip->units[runlist], visit_at_offset(chip, rl));
}

/* Read the list in force again, if the chip is set to do so. Return: whether it was. */
bool chip_runlist_reread(struct chip *chip, u32 runlist)
{
	struct chip_runlist *rl = &chip->runlists[runlist];
	u64 hash;

	if (!chip->cfg.sw.list_reread || !rl->owned)
		return false;
	if (take_list(chip, runlist, &hash))
		rl->owned = false;
	return true;
}

u32 chip_runlist_find_tsg(const struct chip_runlist *rl, u16 tsg)
{
	u32 v;

	for (v = 0; v < rl->visit_count; v++)
		if (rl->visits[v].tsg == tsg)
			return v;
	return CHIP_NONE;
}

/* A timeout of zero is taken as one unit. */
u64 chip_runlist_slice_ns(const struct chip *chip, const struct chip_visit *visit)
{
	const u64 units = (u64)visit->timeout << visit->scale;

	return (units ? units : 1) * chip->cfg.lat.slice_unit_ns;
}
