// SPDX-License-Identifier: GPL-2.0
/*
 * turn.c - one turn of one runlist: look, charge, pick, put the image in the slot, say when to
 * look again (turn.h). The only code that knows both the core and the chip's operations. It
 * decides nothing: who runs is pick.c's, what it costs is ledger.c's.
 */
#include "turn.h"

#define TSG_IDS 4096u
/* Channels whose state one look may read, round robin over those not seen running. */
#define LOOK_CHANNELS 64u
/* A cut TSG's parts below this are not worth an entry. */
#define PART_MIN_NS 10000ull
/* Steps and patience at the edges of exclusive windows (architecture, "Ledger"). */
#define EDGE_STEP_NS 2000ull
#define EDGE_PATIENCE_NS 100000ull
#define EDGE_ON_FIRST_GUESS_NS 60000ull
/* After an error of the hardware. */
#define RETRY_NS 5000000ull

/*
 * struct turn - the scheduler of one runlist
 * @tsgs: in list order unless @unsorted; @by_id: who an id in a status register is
 * @list: the image being built
 * @slot: which of the two buffers the chip reads
 * @unsure_entries: the other buffer was submitted with so many entries and not acknowledged: both
 *                  stay untouched until it is; 0 = no such submit; an empty image is 0 + @unsure
 * @probe_at, @probe_channel, @probe_work: where the round robin of channels goes on
 * @draining_id: who the engine is leaving and still computes for; HW_NO_ID
 * @refusals, @refused: times that work was not cut in time, and whose it was last
 * @on_after_ns: learned: from a submit's return to the owner on the engine; [1] = when somebody
 *               else's context had to be saved
 */
struct turn {
	struct turn_config cfg;
	struct core core;
	struct turn_counters counters;
	struct turn_tsg **tsgs;
	u32 tsg_count;
	bool unsorted, started;
	struct turn_tsg *by_id[TSG_IDS];
	struct hw_image_tsg *list;
	u32 slot;
	bool unsure;
	u32 unsure_entries;
	u32 probe_at, probe_channel;
	bool probe_work;
	u16 draining_id;
	u64 refusals;
	struct core_tenant *refused;
	u64 on_after_ns[2];
};

static u64 now_of(const struct turn *turn)
{
	return hw_now_ns(&turn->cfg.hw->io);
}

struct turn *turn_create(const struct turn_config *cfg, u64 now_ns)
{
	struct turn *turn = env_zalloc(sizeof(*turn));

	if (!turn)
		return NULL;
	turn->cfg = *cfg;
	turn->draining_id = HW_NO_ID;
	turn->on_after_ns[0] = EDGE_ON_FIRST_GUESS_NS;
	turn->on_after_ns[1] = EDGE_ON_FIRST_GUESS_NS;
	turn->tsgs = env_zalloc(cfg->tsg_max * sizeof(*turn->tsgs));
	turn->list = env_zalloc((cfg->tsg_max + 1) * sizeof(*turn->list));
	if (core_init(&turn->core, &cfg->params, cfg->tenant_max, cfg->seed, now_ns))
		goto err_core;
	if (turn->tsgs && turn->list)
		return turn;
	core_fini(&turn->core);
err_core:
	env_free(turn->list);
	env_free(turn->tsgs);
	env_free(turn);
	return NULL;
}

void turn_destroy(struct turn *turn)
{
	if (!turn)
		return;
	core_fini(&turn->core);
	env_free(turn->list);
	env_free(turn->tsgs);
	env_free(turn);
}

/* ---- tenants and TSGs ---- */

int turn_tenant_add(struct turn *turn, struct core_tenant *tenant,
		    const struct core_settings *settings)
{
	return core_tenant_add(&turn->core, tenant, settings);
}

void turn_tenant_set(struct turn *turn, struct core_tenant *tenant,
		     const struct core_settings *settings)
{
	core_tenant_set(&turn->core, tenant, settings);
}

void turn_tenant_remove(struct turn *turn, struct core_tenant *tenant)
{
	if (turn->refused == tenant)
		turn->refused = NULL;
	core_tenant_remove(&turn->core, tenant);
}

void turn_policy_set(struct turn *turn, enum core_policy policy, u64 cycle_ns)
{
	core_policy_set(&turn->core, policy, cycle_ns);
}

static bool can_be_listed(const struct turn_tsg *tsg)
{
	return tsg->listed && tsg->channel_count && tsg->channel_count <= HW_MAX_TSG_CHANNELS;
}

int turn_tsg_add(struct turn *turn, struct turn_tsg *tsg, struct core_tenant *tenant)
{
	if (turn->tsg_count == turn->cfg.tsg_max || tsg->tsg_id >= TSG_IDS)
		return -ENOSPC;
	tsg->in_slot = false;
	tsg->position = turn->tsg_count;
	turn->tsgs[turn->tsg_count++] = tsg;
	turn->by_id[tsg->tsg_id] = tsg;
	turn->unsorted = true;
	core_tsg_add(&turn->core, &tsg->core, tenant);
	core_tsg_list(&turn->core, &tsg->core, can_be_listed(tsg));
	return 0;
}

void turn_tsg_move(struct turn *turn, struct turn_tsg *tsg, struct core_tenant *tenant)
{
	core_tsg_remove(&turn->core, &tsg->core);
	core_tsg_add(&turn->core, &tsg->core, tenant);
	core_tsg_list(&turn->core, &tsg->core, can_be_listed(tsg));
}

void turn_tsg_remove(struct turn *turn, struct turn_tsg *tsg)
{
	u32 i;

	core_tsg_remove(&turn->core, &tsg->core);
	/* The id may have been given to another TSG already. */
	if (turn->by_id[tsg->tsg_id] == tsg)
		turn->by_id[tsg->tsg_id] = NULL;
	turn->tsg_count--;
	for (i = tsg->position; i < turn->tsg_count; i++) {
		turn->tsgs[i] = turn->tsgs[i + 1];
		turn->tsgs[i]->position = i;
	}
	turn->probe_channel = 0;
	turn->probe_work = false;
}

void turn_list_changed(struct turn *turn)
{
	u32 i;

	turn->unsorted = true;
	turn->core.stale = true;
	for (i = 0; i < turn->tsg_count; i++)
		core_tsg_list(&turn->core, &turn->tsgs[i]->core, can_be_listed(turn->tsgs[i]));
	turn->probe_channel = 0;
	turn->probe_work = false;
}

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

/* ---- looking ---- */

static struct turn_tsg *tsg_of(const struct turn *turn, u16 tsg_id)
{
	return tsg_id < TSG_IDS ? turn->by_id[tsg_id] : NULL;
}

/* Who computes, for the ledger. */
static void charge(struct turn *turn, u64 now_ns, enum core_seen seen, struct turn_tsg *tsg)
{
	if (seen == CORE_SEEN_TSG && (!tsg || !tsg->core.tenant))
		seen = CORE_SEEN_NOBODY;
	turn->core.draining = turn->draining_id != HW_NO_ID;
	turn->core.tail &= seen == CORE_SEEN_TSG && !tsg->in_slot;
	core_look(&turn->core, now_ns, seen, seen == CORE_SEEN_TSG ? &tsg->core : NULL);
}

/* It is about to leave a TSG: both ids are shown until the save begins. */
static bool is_leaving(const struct hw_status *status)
{
	return status->state == HW_ENGINE_SWITCHING && status->tsg_id != HW_NO_ID &&
	       status->next_tsg_id != HW_NO_ID;
}

/*
 * Until it begins to save, an engine that leaves a TSG may still compute for it: work that cannot
 * be cut delays that to its end, other work by microseconds. Looking once more after half of p
 * tells which: @status is the later look then, and the earlier one is charged.
 */
static int tell_draining(struct turn *turn, struct hw_status *status, u64 *now_ns)
{
	u16 tsg_id = status->tsg_id;
	int err;

	hw_wait_ns(&turn->cfg.hw->io, turn->cfg.params.takeoff_ns >> 1);
	err = turn->cfg.hw->ops->status(turn->cfg.hw, turn->cfg.engine_index, status);
	if (err)
		return err;
	if (is_leaving(status) && status->tsg_id == tsg_id) {
		turn->draining_id = tsg_id;
		charge(turn, *now_ns, CORE_SEEN_TSG, tsg_of(turn, tsg_id));
	} else {
		charge(turn, *now_ns, CORE_SEEN_SWITCH, NULL);
	}
	*now_ns = now_of(turn);
	return 0;
}

static int look(struct turn *turn, struct hw_status *status)
{
	const struct hw_ops *ops = turn->cfg.hw->ops;
	u64 now_ns;
	int err;

	err = ops->status(turn->cfg.hw, turn->cfg.engine_index, status);
	if (err)
		return err;
	now_ns = now_of(turn);
	if (is_leaving(status) && turn->draining_id != status->tsg_id) {
		err = tell_draining(turn, status, &now_ns);
		if (err)
			return err;
	}
	if (!is_leaving(status) || turn->draining_id != status->tsg_id)
		turn->draining_id = HW_NO_ID;
	if (status->state == HW_ENGINE_RUNNING || turn->draining_id != HW_NO_ID)
		charge(turn, now_ns, CORE_SEEN_TSG, tsg_of(turn, status->tsg_id));
	else if (status->state == HW_ENGINE_SWITCHING)
		charge(turn, now_ns, CORE_SEEN_SWITCH, NULL);
	else
		charge(turn, now_ns, CORE_SEEN_IDLE, NULL);
	return 0;
}

/* The same without weight in the ledger: only whether whoever runs has work. */
static int glance(struct turn *turn)
{
	struct hw_status status;
	struct turn_tsg *tsg;
	int err;

	err = turn->cfg.hw->ops->status(turn->cfg.hw, turn->cfg.engine_index, &status);
	if (err)
		return err;
	tsg = tsg_of(turn, status.tsg_id);
	if (status.state == HW_ENGINE_RUNNING && tsg)
		core_work(&turn->core, &tsg->core, now_of(turn), true);
	return 0;
}

/* Read channels of one TSG until one has work or @room is used up. Return: 0 or an error. */
static int probe_tsg(struct turn *turn, struct turn_tsg *tsg, u32 *room)
{
	const struct hw_ops *ops = turn->cfg.hw->ops;
	const struct hw_channel *channel;
	enum hw_channel_work work;
	int err;

	while (turn->probe_channel < tsg->channel_count && !turn->probe_work && *room) {
		channel = &tsg->channels[turn->probe_channel++];
		(*room)--;
		err = ops->channel_work(turn->cfg.hw, channel->id, channel->inst_addr, &work);
		if (err == -ENODEV || err == -EIO)
			return err;
		/* A channel that is another one by now (-ESTALE) has no work for this TSG. */
		turn->probe_work = !err && work == HW_CHANNEL_HAS_WORK;
	}
	return 0;
}

/* Who of those not seen running has work. */
static int probe(struct turn *turn)
{
	u32 room = LOOK_CHANNELS, seen;
	struct turn_tsg *tsg;
	int err;

	for (seen = 0; seen < turn->tsg_count && room; seen++) {
		if (turn->probe_at >= turn->tsg_count)
			turn->probe_at = 0;
		tsg = turn->tsgs[turn->probe_at];
		if (tsg->core.listed && tsg->core.tenant && &tsg->core != turn->core.seen_tsg) {
			err = probe_tsg(turn, tsg, &room);
			if (err)
				return err;
			if (!turn->probe_work && turn->probe_channel < tsg->channel_count)
				return 0; /* goes on at the next look */
			core_work(&turn->core, &tsg->core, now_of(turn), turn->probe_work);
		}
		turn->probe_at++;
		turn->probe_channel = 0;
		turn->probe_work = false;
	}
	return 0;
}

/* ---- the image ---- */

static u64 slice_of(const struct turn *turn, const struct turn_tsg *tsg)
{
	if (!tsg->core.tenant || turn->core.window.kind == CORE_WINDOW_DRIVER)
		return max(tsg->driver_slice_ns, turn->cfg.params.slice_min_ns);
	return core_slice_ns(&turn->core, &tsg->core);
}

static u32 count_admitted(const struct turn *turn)
{
	u32 i, n = 0;

	for (i = 0; i < turn->tsg_count; i++)
		n += core_admits(&turn->core, &turn->tsgs[i]->core);
	return n;
}

static void put_entry(struct turn *turn, u32 at, const struct turn_tsg *tsg, u64 slice_ns)
{
	turn->list[at].tsg_id = tsg->tsg_id;
	turn->list[at].channel_count = tsg->channel_count;
	turn->list[at].slice_ns = slice_ns;
	turn->list[at].channels = tsg->channels;
}

/**
 * struct start - how an image begins
 * @position: of the TSG it begins with
 * @used_ns: how much of its slice that TSG has used already; it is listed again at the end with
 *           that much. 0 = it is listed once, with its whole slice
 */
struct start {
	u32 position;
	u64 used_ns;
};

/* Continue the rotation where it was cut (core.h, ROUNDS). */
static struct start where_to_start(const struct turn *turn, u64 now_ns)
{
	struct start start = { 0, 0 };
	u64 (*slice_round)(u64 slice_ns) = turn->cfg.hw->ops->slice_round;
	struct core_phase cut;
	struct turn_tsg *tsg;
	u64 slice_ns, used_ns;

	if (turn->core.window.kind == CORE_WINDOW_DRIVER)
		return start;
	core_cut(&turn->core, now_ns, &cut);
	if (!cut.tsg)
		return start;
	tsg = container_of(cut.tsg, struct turn_tsg, core);
	start.position = tsg->position;
	if (!core_admits(&turn->core, cut.tsg) || !cut.slice_ns) {
		start.position++;
		return start;
	}
	/*
	 * The parts have to add up to the slice as written. With the larger one rounded the other
	 * is a multiple of the larger one's step, so it can be written exactly (entry.c); each
	 * rounded by itself would leave up to 1/256 of the slice for as long as the image stays.
	 */
	slice_ns = slice_round(slice_of(turn, tsg));
	used_ns = env_mul_div(slice_ns, cut.used_ns, cut.slice_ns);
	if (2 * used_ns > slice_ns)
		used_ns = slice_round(used_ns);
	else
		used_ns = slice_ns - slice_round(slice_ns - used_ns);
	if (used_ns + PART_MIN_NS > slice_ns)
		start.position++;
	else if (used_ns >= PART_MIN_NS)
		start.used_ns = used_ns;
	return start;
}

/* Return: entries of turn->list filled; @first = the TSG it begins with. */
static u32 build(struct turn *turn, const struct start *start, struct turn_tsg **first)
{
	u32 at = start->position, count = 0, i;
	struct turn_tsg *tsg;
	u64 slice_ns;

	*first = NULL;
	for (i = 0; i < turn->tsg_count; i++, at++) {
		if (at >= turn->tsg_count)
			at = 0;
		tsg = turn->tsgs[at];
		if (!core_admits(&turn->core, &tsg->core))
			continue;
		slice_ns = turn->cfg.hw->ops->slice_round(slice_of(turn, tsg));
		if (!*first) {
			*first = tsg;
			slice_ns -= start->used_ns;
		}
		put_entry(turn, count++, tsg, slice_ns);
	}
	if (start->used_ns)
		put_entry(turn, count++, *first, start->used_ns);
	return count;
}

/* The chip took it: only now it is what is in force. */
static void remember(struct turn *turn, const struct start *start, struct turn_tsg *first)
{
	const struct hw_ops *ops = turn->cfg.hw->ops;
	struct turn_tsg *tsg;
	u32 i;

	for (i = 0; i < turn->tsg_count; i++) {
		tsg = turn->tsgs[i];
		tsg->in_slot = core_admits(&turn->core, &tsg->core);
		tsg->core.slice_ns = tsg->in_slot ? ops->slice_round(slice_of(turn, tsg)) : 0;
	}
	core_taken(&turn->core, now_of(turn), first && first->core.tenant ? &first->core : NULL,
		   start->used_ns);
}

static int submit(struct turn *turn, u32 entries)
{
	const struct hw_ops *ops = turn->cfg.hw->ops;
	u32 spare = !turn->slot;
	int err;

	err = ops->submit(turn->cfg.hw, turn->cfg.runlist, &turn->cfg.images[spare], entries);
	/* Only what is refused before it is written cannot have been taken. */
	turn->unsure = err && (turn->unsure || err != -EBUSY);
	turn->unsure_entries = entries;
	if (err)
		return err;
	turn->slot = spare;
	turn->counters.submits++;
	return 0;
}

static int write_image(struct turn *turn, struct start *start, struct turn_tsg **first,
		       u32 *entries)
{
	const struct hw_ops *ops = turn->cfg.hw->ops;
	const struct hw_mem *spare = &turn->cfg.images[!turn->slot];
	int err;

	err = ops->image_write(spare, turn->list, build(turn, start, first), entries);
	if (err != -ENOSPC || !start->used_ns)
		return err;
	/* No room to list the cut TSG twice: whole or not at all, whichever is nearer. */
	if (2 * start->used_ns > slice_of(turn, *first))
		start->position++;
	start->used_ns = 0;
	return ops->image_write(spare, turn->list, build(turn, start, first), entries);
}

static int put_image(struct turn *turn)
{
	struct turn_tsg *first;
	struct start start;
	u32 entries;
	int err;

	if (turn->unsure) {
		/* The same again: neither buffer may be written before it is taken. */
		err = submit(turn, turn->unsure_entries);
		if (err)
			return err;
	}
	if (turn->unsorted)
		sort_tsgs(turn);
	start = where_to_start(turn, now_of(turn));
	if (count_admitted(turn) < 2)
		start.used_ns = 0;
	err = write_image(turn, &start, &first, &entries);
	if (!err)
		err = submit(turn, entries);
	if (err)
		return err;
	remember(turn, &start, first);
	return 0;
}

/* ---- edges ---- */

static void count_preempt(struct turn *turn, const struct turn_tsg *tsg)
{
	turn->counters.preempts++;
	if (tsg && tsg->core.tenant)
		tsg->core.tenant->preempts++;
}

/* It is off: it stopped computing when the save began, p before. */
static void note_off(struct turn *turn)
{
	u64 off_ns = now_of(turn) - turn->cfg.params.takeoff_ns;

	if (off_ns > turn->core.looked_ns)
		core_look(&turn->core, off_ns, CORE_SEEN_SWITCH, NULL);
}

/*
 * Whoever is on the engine and not in the image goes. Work that cannot be cut stays until it
 * ends: counted, charged by the looks that follow, and waited for by nobody here.
 */
static int evict(struct turn *turn)
{
	const struct hw_ops *ops = turn->cfg.hw->ops;
	const struct core_params *params = &turn->cfg.params;
	u64 patience_ns = now_of(turn) + 2 * params->takeoff_ns;
	u64 deadline_ns = patience_ns + 2 * params->switch_ns;
	struct hw_status status;
	struct turn_tsg *tsg;
	int err;

	/* TIMEOUT: 2 * (s + p), because cuttable work is off after p and a switch takes s; 2 * p for
	 * what still computes, so that nobody's tail is waited for with the lock held. */
	for (;;) {
		err = look(turn, &status);
		if (err)
			return err;
		tsg = tsg_of(turn, status.tsg_id);
		if (status.tsg_id == HW_NO_ID || (tsg && tsg->in_slot) ||
		    status.state == HW_ENGINE_EMPTY)
			return 0;
		/* Idle between two kernels: the next would begin, whatever the list says. */
		if (status.state == HW_ENGINE_RUNNING || status.state == HW_ENGINE_IDLE) {
			count_preempt(turn, tsg);
			err = ops->preempt(turn->cfg.hw, turn->cfg.engine_index, status.tsg_id,
					   patience_ns);
			if (!err) {
				note_off(turn);
				return look(turn, &status);
			}
			if (err != -EBUSY)
				return err;
			break;
		}
		if (status.next_tsg_id == HW_NO_ID)
			return 0; /* saving: it computes no more */
		if (now_of(turn) >= (turn->draining_id == HW_NO_ID ? deadline_ns : patience_ns))
			break;
		hw_wait_ns(&turn->cfg.hw->io, EDGE_STEP_NS);
	}
	turn->refusals++;
	turn->refused = tsg ? tsg->core.tenant : NULL;
	if (turn->refused)
		core_fit_overran(turn->refused);
	/* It has been computing all the time: no need to tell. */
	turn->draining_id = status.tsg_id;
	turn->core.tail = true;
	return look(turn, &status);
}

/* Is whom the engine is waited for on it: the owner of a window, or whoever was let go? Beside
 * online anybody may be first. */
static bool is_on(const struct turn *turn)
{
	const struct core *core = &turn->core;

	if (core->seen != CORE_SEEN_TSG)
		return false;
	return !core->window.owner || core->window.kind == CORE_WINDOW_ONLINE ||
	       (core->seen_tenant && core_owns_window(core, core->seen_tenant));
}

/* What is in the budget whose use begins now? Steps are a thousandth of it. */
static u64 watch_step(const struct turn *turn)
{
	u64 budget_ns = turn->core.window.owner ? (u64)turn->core.window.budget_ns :
						  CORE_CAP_BUDGET_MAX_NS;

	return clamp(env_div(budget_ns, 1000), EDGE_STEP_NS, EDGE_PATIENCE_NS / 4);
}

/* When does the owner of the window that was just opened begin, or who was let go? */
static int watch_on(struct turn *turn, u64 submitted_ns, bool other_loaded)
{
	u64 *on_after_ns = &turn->on_after_ns[other_loaded];
	u64 step_ns = watch_step(turn);
	u64 first_ns = submitted_ns + *on_after_ns - min(*on_after_ns, 2 * step_ns);
	u64 now_ns = now_of(turn), before_ns = now_ns;
	struct hw_status status;
	bool first = true;
	int err;

	if (is_on(turn))
		return 0;
	if (first_ns > now_ns)
		hw_wait_ns(&turn->cfg.hw->io, first_ns - now_ns);
	/* TIMEOUT: 100 us after the expected instant; then the timer looks. */
	for (;;) {
		err = look(turn, &status);
		if (err)
			return err;
		now_ns = now_of(turn);
		if (is_on(turn))
			break;
		if (now_ns >= first_ns + EDGE_PATIENCE_NS)
			return 0;
		first = false;
		before_ns = now_ns;
		hw_wait_ns(&turn->cfg.hw->io, step_ns);
	}
	if (first)
		*on_after_ns -= *on_after_ns >> 2; /* it was on already: look earlier next time */
	else
		*on_after_ns = min(before_ns + ((now_ns - before_ns) >> 1) - submitted_ns,
				   2 * EDGE_PATIENCE_NS);
	return 0;
}

/* Bring what pick decided to the chip. */
static int carry_out(struct turn *turn)
{
	struct turn_tsg *tsg;
	struct hw_status status;
	bool other_loaded, let_go = turn->core.let_go;
	u64 submitted_ns;
	int err;

	err = turn->cfg.hw->ops->status(turn->cfg.hw, turn->cfg.engine_index, &status);
	if (err)
		return err;
	tsg = tsg_of(turn, status.tsg_id);
	err = put_image(turn);
	if (err)
		return err;
	turn->core.let_go = false;
	submitted_ns = now_of(turn);
	other_loaded = status.tsg_id != HW_NO_ID && !(tsg && tsg->in_slot);
	err = evict(turn);
	/* Beside work that goes on nobody begins at once. */
	let_go &= status.state == HW_ENGINE_IDLE || status.state == HW_ENGINE_EMPTY;
	if (err || !(let_go || turn->core.window.owner))
		return err;
	return watch_on(turn, submitted_ns, other_loaded);
}

/* ---- turns ---- */

void turn_start(struct turn *turn, u64 now_ns)
{
	turn->started = true;
	turn->core.stale = true;
	turn->core.dirty = true;
	turn->core.looked_ns = max(turn->core.looked_ns, now_ns);
}

void turn_stop(struct turn *turn)
{
	u32 i;

	turn->started = false;
	turn->unsure = false;
	for (i = 0; i < turn->tsg_count; i++) {
		turn->tsgs[i]->in_slot = false;
		turn->tsgs[i]->core.slice_ns = 0;
	}
}

int turn_apply(struct turn *turn, u64 now_ns)
{
	struct hw_status status;
	int err;

	(void)now_ns; /* the card's host clock is read where it counts */
	if (!turn->started)
		return 0;
	err = look(turn, &status);
	if (err)
		return err;
	if (turn->core.dirty)
		core_plan_make(&turn->core, now_of(turn));
	if (core_pick(&turn->core, now_of(turn)))
		err = carry_out(turn);
	return err;
}

int turn_run(struct turn *turn, u64 now_ns, u64 *next_ns)
{
	struct hw_status status;
	int err;

	*next_ns = U64_MAX;
	if (!turn->started)
		return 0;
	err = core_samples(&turn->core, now_ns) ? look(turn, &status) : glance(turn);
	if (!err)
		err = probe(turn);
	if (!err && core_pick(&turn->core, now_of(turn)))
		err = carry_out(turn);
	if (err)
		*next_ns = max(now_ns, now_of(turn)) + RETRY_NS;
	else
		*next_ns = core_next_ns(&turn->core, now_of(turn));
	return err;
}

u64 turn_looked_ns(const struct turn *turn)
{
	return turn->core.looked_ns;
}

void turn_counters(const struct turn *turn, struct turn_counters *out)
{
	*out = turn->counters;
	out->switch_ns = turn->core.totals.switch_ns;
	out->idle_ns = turn->core.totals.idle_ns;
	out->nobody_ns = turn->core.totals.nobody_ns;
}

void turn_tenant_counters(const struct turn *turn, struct core_tenant *tenant,
			  struct core_counters *out)
{
	core_tenant_counters(&turn->core, tenant, out);
}

u64 turn_refusals(const struct turn *turn, struct core_tenant **last)
{
	*last = turn->refused;
	return turn->refusals;
}

u64 turn_hangs(const struct turn *turn, struct core_tenant **last)
{
	*last = turn->core.hung;
	return turn->core.hangs;
}

u64 turn_cycle_ns(const struct turn *turn)
{
	return turn->core.cycle_ns;
}
