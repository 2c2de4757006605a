// SPDX-License-Identifier: GPL-2.0
/*
 * turn_image.c - the image of the window that is on: whom the core admits, in the driver's order,
 * as the rotation continued; beside online tenants so that none of them waits for more than one
 * other. Two buffers: the chip reads one while the other is written.
 */
#include "turn_state.h"

/* A cut TSG's parts below this are not worth an entry. */
#define PART_MIN_NS 10000ull

static bool comes_before(const struct turn_tsg *a, const struct turn_tsg *b)
{
	return a->list_order < b->list_order ||
	       (a->list_order == b->list_order && a->serial < b->serial);
}

/* Changes come one at a time, so the order is nearly right: linear then. */
static void sort_tsgs(struct turn *turn)
{
	struct turn_tsg *tsg;
	u32 i, at;

	for (i = 1; i < turn->tsg_count; i++) {
		tsg = turn->tsgs[i];
		for (at = i; at && comes_before(tsg, turn->tsgs[at - 1]); at--)
			turn->tsgs[at] = turn->tsgs[at - 1];
		turn->tsgs[at] = tsg;
	}
	for (i = 0; i < turn->tsg_count; i++)
		turn->tsgs[i]->position = i;
	turn->unsorted = false;
}

static u64 slice_of(const struct turn *turn, const struct turn_tsg *tsg)
{
	if (!tsg->core.tenant || turn->core.window.kind == CORE_WINDOW_DRIVER)
		return max(tsg->driver_slice_ns, turn->cfg.params.slice_min_ns);
	return core_slice_ns(&turn->core, &tsg->core);
}

static u64 written_slice(const struct turn *turn, const struct turn_tsg *tsg)
{
	return turn->cfg.hw->ops->slice_round(slice_of(turn, tsg));
}

static void put_entry(struct turn *turn, u32 at, const struct turn_tsg *tsg, u64 slice_ns)
{
	turn->list[at].tsg_id = tsg->tsg_id;
	turn->list[at].channel_count = tsg->channel_count;
	turn->list[at].slice_ns = slice_ns;
	turn->list[at].channels = tsg->channels;
}

/* Beside others now (theory.rst, ONLINE). */
static bool is_online(const struct turn *turn, const struct turn_tsg *tsg)
{
	return turn->core.window.kind == CORE_WINDOW_ONLINE && tsg->core.tenant &&
	       tsg->core.tenant->place == CORE_BESIDE;
}

/**
 * struct start - how an image begins
 * @position: of the TSG it begins with
 * @used_ns: how much of its slice that TSG has used already; it is listed again at the end with
 *           that much. 0 = it is listed once, with its whole slice
 * @other_position: beside online tenants, of the first of the others
 * @rounds_max: beside online tenants, how often those may be listed
 */
struct start {
	u32 position;
	u64 used_ns;
	u32 other_position;
	u32 rounds_max;
};

/**
 * struct draft - an image being built in turn->list
 * @start: how it begins
 * @first: the TSG it begins with
 * @count: entries
 * @online: the first so many are the online tenants'
 * @rounds: how often those are listed
 * @reserve: room kept for TSGs that have to be in it
 * @crowded: somebody who is admitted found no room
 */
struct draft {
	const struct start *start;
	struct turn_tsg *first;
	u32 count;
	u32 online, rounds, reserve;
	bool crowded;
};

/* The next in list order, round and round. */
static u32 next_position(const struct turn *turn, u32 position)
{
	return position + 1 < turn->tsg_count ? position + 1 : 0;
}

/*
 * The parts have to add up to the slice as written. With the larger one rounded the other is a
 * multiple of the larger one's step, so it can be written exactly (entry.c); each rounded by
 * itself would leave up to 1/256 of the slice for as long as the image stays.
 */
static u64 used_part(const struct turn *turn, u64 slice_ns, const struct core_phase *cut)
{
	u64 (*slice_round)(u64 slice_ns) = turn->cfg.hw->ops->slice_round;
	u64 used_ns = env_mul_div(slice_ns, cut->used_ns, cut->slice_ns);

	if (2 * used_ns > slice_ns)
		return slice_round(used_ns);
	return slice_ns - slice_round(slice_ns - used_ns);
}

/* Continue the rotation where it was cut (theory.rst, ROUNDS). */
static void continue_rotation(const struct turn *turn, u64 now_ns, struct start *start)
{
	struct core_phase cut;
	struct turn_tsg *tsg;
	u64 slice_ns, used_ns;

	core_cut(&turn->core, now_ns, &cut);
	if (turn->resume.tsg && turn->core.window.kind == CORE_WINDOW_ROTATION)
		cut = turn->resume;
	if (!cut.tsg)
		return;
	tsg = container_of(cut.tsg, struct turn_tsg, core);
	start->position = tsg->position;
	if (!core_admits(&turn->core, cut.tsg) || !cut.slice_ns) {
		start->position = next_position(turn, start->position);
		return;
	}
	slice_ns = written_slice(turn, tsg);
	used_ns = used_part(turn, slice_ns, &cut);
	if (used_ns + PART_MIN_NS > slice_ns)
		start->position = next_position(turn, start->position);
	else if (used_ns >= PART_MIN_NS)
		start->used_ns = used_ns;
}

/* Admitted and not online: nobody's if @nobodys, else a tenant's. */
static bool is_other(const struct turn *turn, const struct turn_tsg *tsg, bool nobodys)
{
	return !tsg->core.tenant == nobodys && !is_online(turn, tsg) &&
	       core_admits(&turn->core, &tsg->core);
}

/* With whom the others begin: whoever waits longest for room in an image; of those, where it was
 * cut, with whole slices, so whoever was cut late has had its turn. */
static void continue_others(const struct turn *turn, u64 now_ns, struct start *start)
{
	u64 oldest = U64_MAX;
	const struct turn_tsg *tsg;
	struct core_phase cut;
	u32 at = 0, i;

	core_cut_other(&turn->core, now_ns, &cut);
	if (cut.tsg) {
		at = container_of(cut.tsg, struct turn_tsg, core)->position;
		if (2 * cut.used_ns >= cut.slice_ns)
			at = next_position(turn, at);
	}
	for (i = 0; i < turn->tsg_count; i++, at = next_position(turn, at)) {
		tsg = turn->tsgs[at];
		if (is_other(turn, tsg, false) && tsg->listed_in < oldest) {
			oldest = tsg->listed_in;
			start->other_position = at;
		}
	}
}

static struct start where_to_start(const struct turn *turn, u64 now_ns)
{
	struct start start = { 0, 0, 0, U32_MAX };

	if (turn->core.window.kind == CORE_WINDOW_DRIVER)
		return start;
	continue_rotation(turn, now_ns, &start);
	if (turn->core.window.kind == CORE_WINDOW_ONLINE)
		continue_others(turn, now_ns, &start);
	return start;
}

static void put(struct turn *turn, struct draft *draft, struct turn_tsg *tsg)
{
	u64 slice_ns = written_slice(turn, tsg);

	if (!draft->first) {
		draft->first = tsg;
		slice_ns -= draft->start->used_ns;
	}
	put_entry(turn, draft->count++, tsg, slice_ns);
	tsg->in_image = true;
}

/* All that are admitted, or the online of them, from the one the image begins with. */
static void put_ring(struct turn *turn, struct draft *draft, bool online)
{
	u32 at = draft->start->position, i;

	for (i = 0; i < turn->tsg_count; i++, at = next_position(turn, at))
		if (core_admits(&turn->core, &turn->tsgs[at]->core) &&
		    (!online || is_online(turn, turn->tsgs[at])))
			put(turn, draft, turn->tsgs[at]);
}

/* The online ones again, with whole slices. Return: there was room for that, and for one more. */
static bool repeat_online(struct turn *turn, struct draft *draft)
{
	if (draft->rounds == draft->start->rounds_max ||
	    draft->count + draft->online + 1 + draft->reserve > turn->cfg.tsg_max)
		return false;
	memcpy(&turn->list[draft->count], turn->list, draft->online * sizeof(*turn->list));
	turn->list[draft->count].slice_ns = written_slice(turn, draft->first);
	draft->count += draft->online;
	draft->rounds++;
	return true;
}

/* The others in order, each after a round of the online. A tenant's that finds no room
 * waits for another image (turn_image_old_ns()); nobody's have to be in this one. */
static void put_others(struct turn *turn, struct draft *draft, bool nobodys)
{
	u32 at = draft->start->other_position, i;
	struct turn_tsg *tsg;

	for (i = 0; i < turn->tsg_count; i++, at = next_position(turn, at)) {
		tsg = turn->tsgs[at];
		if (!is_other(turn, tsg, nobodys))
			continue;
		draft->reserve -= nobodys;
		if (draft->count == draft->online || repeat_online(turn, draft) || nobodys)
			put(turn, draft, tsg);
		else
			draft->crowded = true;
	}
}

/* Before each of the others all that are online: who wakes waits for one of the others, however
 * many there are. An entry without work costs nothing. */
static void build_beside(struct turn *turn, struct draft *draft)
{
	u32 i;

	draft->online = draft->count;
	draft->rounds = 1;
	for (i = 0; i < turn->tsg_count; i++)
		draft->reserve += !turn->tsgs[i]->core.tenant &&
				  core_admits(&turn->core, &turn->tsgs[i]->core);
	put_others(turn, draft, false);
	put_others(turn, draft, true);
}

static void build(struct turn *turn, const struct start *start, struct draft *draft)
{
	bool beside = turn->core.window.kind == CORE_WINDOW_ONLINE;
	u32 i;

	*draft = (struct draft){ .start = start };
	for (i = 0; i < turn->tsg_count; i++)
		turn->tsgs[i]->in_image = false;
	put_ring(turn, draft, beside);
	if (beside && draft->count)
		build_beside(turn, draft);
	else if (beside)
		put_ring(turn, draft, false);
	if (start->used_ns && draft->count > 1)
		put_entry(turn, draft->count++, draft->first, start->used_ns);
}

/* The chip took it: only now it is what is in force. */
static void remember(struct turn *turn, const struct draft *draft)
{
	struct turn_tsg *tsg, *first = draft->first;
	u32 i;

	for (i = 0; i < turn->tsg_count; i++) {
		tsg = turn->tsgs[i];
		tsg->in_slot = tsg->in_image;
		if (tsg->in_slot)
			tsg->listed_in = turn->counters.submits;
		tsg->core.slice_ns = tsg->in_slot ? written_slice(turn, tsg) : 0;
	}
	core_taken(&turn->core, turn_now_ns(turn),
		   first && first->core.tenant ? &first->core : NULL, draft->start->used_ns);
	turn->crowded = draft->crowded;
	turn->taken_ns = turn_now_ns(turn);
}

u64 turn_image_old_ns(const struct turn *turn)
{
	return turn->crowded ? turn->taken_ns + turn->cfg.params.tenure_ns : U64_MAX;
}

/* As asked; without room for that with the online ones listed less often, then with the cut TSG
 * listed once: whole or not at all, whichever is nearer. */
static int write_image(struct turn *turn, struct start *start, struct draft *draft, u32 *entries)
{
	const struct hw_ops *ops = turn->cfg.hw->ops;
	const struct hw_mem *spare = &turn->cfg.images[!turn->slot];
	int err;

	for (;;) {
		build(turn, start, draft);
		err = ops->image_write(spare, turn->list, draft->count, entries);
		if (err != -ENOSPC || (draft->rounds <= 1 && !start->used_ns))
			return err;
		if (draft->rounds > 1) {
			start->rounds_max = draft->rounds / 2;
			continue;
		}
		if (2 * start->used_ns > written_slice(turn, draft->first))
			start->position = next_position(turn, start->position);
		start->used_ns = 0;
	}
}

int turn_image_put(struct turn *turn)
{
	struct draft draft;
	struct start start;
	u32 entries;
	int err;

	/* Over what somebody else put there nothing is written: who it has would never run. */
	err = turn_slot_check(turn);
	if (err)
		return err;
	if (turn->unsure) {
		/* The same again: neither buffer may be written before it is taken. */
		err = turn_slot_submit(turn, turn->unsure_entries);
		if (err)
			return err;
	}
	if (turn->unsorted)
		sort_tsgs(turn);
	start = where_to_start(turn, turn_now_ns(turn));
	err = write_image(turn, &start, &draft, &entries);
	if (!err)
		err = turn_slot_submit(turn, entries);
	if (err)
		return err;
	remember(turn, &draft);
	turn->resume.tsg = NULL;
	return 0;
}
