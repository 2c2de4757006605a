// SPDX-License-Identifier: GPL-2.0
/*
 * turn.c - one turn of one runlist: look, charge, pick, put the image in the slot, say when to
 * look again (turn.h). The only code that knows both the core and the chip's operations. It
 * decides nothing: who runs is pick.c's, what it costs is ledger.c's.
 */
#include "turn_state.h"

/* Channels whose state one look may read, round robin over those not seen running. */
#define LOOK_CHANNELS 64u
/* From a submit to its owner on the engine, before that was ever seen. */
#define ON_FIRST_GUESS_NS 60000ull
/* After an error of the hardware. One register that refuses goes on doing so while all others are
 * served: then this at least and that at most. */
#define RETRY_SOON_NS 200000ull
#define RETRY_NS 5000000ull
/* More foreign lists than this in such a time: by gates then. */
#define LOSSES_MAX 200u
#define LOSSES_NS 1000000000ull

struct turn *turn_create(const struct turn_config *cfg, u64 now_ns)
{
	struct turn *turn = env_zalloc(sizeof(*turn));

	if (!turn)
		return NULL;
	turn->cfg = *cfg;
	if (!turn->cfg.hold_max_ns)
		turn->cfg.hold_max_ns = TURN_HOLD_MAX_NS;
	turn->gates = cfg->method == TURN_GATES;
	turn->air_at_ns = U64_MAX;
	turn->draining_id = HW_NO_ID;
	turn->on_after_ns[0] = ON_FIRST_GUESS_NS;
	turn->on_after_ns[1] = ON_FIRST_GUESS_NS;
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

void turn_policy_set(struct turn *turn, enum core_policy policy, u64 cycle_ns)
{
	core_policy_set(&turn->core, policy, cycle_ns);
}

static void set_former(struct turn *turn, u16 tsg_id, struct core_tenant *tenant)
{
	turn->former_count += (tenant != NULL) - (turn->former[tsg_id] != NULL);
	turn->former[tsg_id] = tenant;
}

/* A plan may remove a thousand tenants at once: those that are looked through end with the last id
 * that is somebody's. */
static void forget_former(struct turn *turn, const struct core_tenant *tenant)
{
	u32 left = turn->former_count;
	u16 id;

	for (id = 0; left; id++) {
		left -= turn->former[id] != NULL;
		if (turn->former[id] == tenant)
			set_former(turn, id, NULL);
	}
}

/*
 * A TSG that was freed while its work ran, which cannot be cut, goes on computing: that is billed
 * to whose it was, by a TSG without channels that stands for it as long as it is on the engine.
 */
static void lay_ghost(struct turn *turn)
{
	if (!turn->ghost.core.tenant)
		return;
	core_tsg_remove(&turn->core, &turn->ghost.core);
	if (turn->by_id[turn->ghost.tsg_id] == &turn->ghost)
		turn->by_id[turn->ghost.tsg_id] = NULL;
	set_former(turn, turn->ghost.tsg_id, NULL);
}

static void raise_ghost(struct turn *turn, u16 tsg_id)
{
	if (tsg_id >= TSG_IDS || turn->by_id[tsg_id] || !turn->former[tsg_id])
		return;
	lay_ghost(turn);
	turn->ghost = (struct turn_tsg){ .tsg_id = tsg_id };
	core_tsg_add(&turn->core, &turn->ghost.core, turn->former[tsg_id]);
	turn->by_id[tsg_id] = &turn->ghost;
}

void turn_tenant_remove(struct turn *turn, struct core_tenant *tenant)
{
	if (turn->refused == tenant)
		turn->refused = NULL;
	if (turn->ghost.core.tenant == tenant)
		lay_ghost(turn);
	forget_former(turn, tenant);
	core_tenant_remove(&turn->core, tenant);
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
	tsg->closed_count = 0;
	tsg->ajar = false;
	tsg->stuck = false;
	tsg->reopened = 0;
	tsg->air_until_ns = 0;
	tsg->released = false;
	tsg->position = turn->tsg_count;
	turn->tsgs[turn->tsg_count++] = tsg;
	if (turn->by_id[tsg->tsg_id] == &turn->ghost)
		lay_ghost(turn);
	turn->by_id[tsg->tsg_id] = tsg;
	set_former(turn, tsg->tsg_id, NULL);
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

	/* The id may have been given to another TSG already. */
	if (turn->by_id[tsg->tsg_id] == tsg) {
		turn->by_id[tsg->tsg_id] = NULL;
		set_former(turn, tsg->tsg_id, tsg->core.tenant);
	}
	core_tsg_remove(&turn->core, &tsg->core);
	if (turn->unserved == tsg)
		turn->unserved = NULL;
	if (turn->resume.tsg == &tsg->core)
		turn->resume.tsg = NULL;
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
	turn->lists = false;
	for (i = 0; i < turn->tsg_count; i++) {
		core_tsg_list(&turn->core, &turn->tsgs[i]->core, can_be_listed(turn->tsgs[i]));
		turn->lists |= turn->tsgs[i]->core.listed;
	}
	turn_gates_recount(turn);
	turn->probe_channel = 0;
	turn->probe_work = false;
}

/* ---- looking ---- */

/* Who computes, for the ledger. */
static void charge(struct turn *turn, u64 now_ns, enum core_seen seen, struct turn_tsg *tsg)
{
	if (seen == CORE_SEEN_TSG && (!tsg || !tsg->core.tenant))
		seen = CORE_SEEN_NOBODY;
	if (seen == CORE_SEEN_TSG)
		turn_gates_saw_work(turn, tsg);
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
		charge(turn, *now_ns, CORE_SEEN_TSG, turn_tsg_of(turn, tsg_id));
	} else {
		charge(turn, *now_ns, CORE_SEEN_SWITCH, NULL);
	}
	*now_ns = turn_now_ns(turn);
	return 0;
}

static bool is_owners(const struct turn *turn, const struct turn_tsg *tsg)
{
	return tsg->in_slot && tsg->core.tenant && core_owns_window(&turn->core, tsg->core.tenant);
}

static void charge_owner(struct turn *turn)
{
	struct turn_tsg *owner = NULL;
	u32 i;

	for (i = 0; i < turn->tsg_count && !owner; i++)
		if (is_owners(turn, turn->tsgs[i]))
			owner = turn->tsgs[i];
	turn->draining_id = HW_NO_ID;
	charge(turn, turn_now_ns(turn), owner ? CORE_SEEN_TSG : CORE_SEEN_NOBODY, owner);
}

int turn_look(struct turn *turn, struct hw_status *status)
{
	const struct hw_ops *ops = turn->cfg.hw->ops;
	u64 now_ns;
	int err;

	err = ops->status(turn->cfg.hw, turn->cfg.engine_index, status);
	if (err == -EIO)
		charge_owner(turn);
	if (err)
		return err;
	now_ns = turn_now_ns(turn);
	raise_ghost(turn, status->tsg_id);
	if (is_leaving(status) && turn->draining_id != status->tsg_id) {
		err = tell_draining(turn, status, &now_ns);
		if (err)
			return err;
	}
	if (!is_leaving(status) || turn->draining_id != status->tsg_id)
		turn->draining_id = HW_NO_ID;
	if (status->state == HW_ENGINE_RUNNING || turn->draining_id != HW_NO_ID)
		charge(turn, now_ns, CORE_SEEN_TSG, turn_tsg_of(turn, status->tsg_id));
	else if (status->state == HW_ENGINE_SWITCHING)
		charge(turn, now_ns, CORE_SEEN_SWITCH, NULL);
	else
		charge(turn, now_ns, CORE_SEEN_IDLE, NULL);
	if (status->tsg_id != turn->ghost.tsg_id)
		lay_ghost(turn);
	return 0;
}

/* The same without weight in the ledger: only whether whoever runs has work. */
static int glance(struct turn *turn, struct hw_status *status)
{
	struct turn_tsg *tsg;
	int err;

	err = turn->cfg.hw->ops->status(turn->cfg.hw, turn->cfg.engine_index, status);
	if (err)
		return err;
	tsg = turn_tsg_of(turn, status->tsg_id);
	if (status->state == HW_ENGINE_RUNNING && tsg)
		core_work(&turn->core, &tsg->core, turn_now_ns(turn), true);
	return 0;
}

/* Read channels of one TSG until one has work or @room is used up. One that refuses has none, and
 * the others are read all the same. Return: 0 or the first error. */
static int probe_tsg(struct turn *turn, struct turn_tsg *tsg, u32 *room)
{
	const struct hw_ops *ops = turn->cfg.hw->ops;
	const struct hw_channel *channel;
	enum hw_channel_work work;
	int err, first = 0;

	/* Its own state says nothing while it is closed (turn_gate.c). */
	turn->probe_work |= turn_gates_waits(tsg);
	while (turn->probe_channel < tsg->channel_count && !turn->probe_work && *room) {
		channel = &tsg->channels[turn->probe_channel++];
		(*room)--;
		err = ops->channel_work(turn->cfg.hw, channel->id, channel->inst_addr, &work);
		if (err == -ENODEV)
			return err;
		if (err == -EIO)
			turn_note_error(&first, err);
		/* A channel that is another one by now (-ESTALE) has no work for this TSG. */
		turn->probe_work = !err && work == HW_CHANNEL_HAS_WORK;
	}
	return first;
}

/* Who of those not seen running has work. */
static int probe(struct turn *turn)
{
	u32 room = LOOK_CHANNELS, seen;
	struct turn_tsg *tsg;
	int err, first = 0;

	for (seen = 0; seen < turn->tsg_count && room; seen++) {
		if (turn->probe_at >= turn->tsg_count)
			turn->probe_at = 0;
		tsg = turn->tsgs[turn->probe_at];
		if (tsg->core.listed && tsg->core.tenant && &tsg->core != turn->core.seen_tsg) {
			err = probe_tsg(turn, tsg, &room);
			if (err == -ENODEV)
				return err;
			turn_note_error(&first, err);
			if (!turn->probe_work && turn->probe_channel < tsg->channel_count)
				return first; /* goes on at the next look */
			core_work(&turn->core, &tsg->core, turn_now_ns(turn), turn->probe_work);
			turn_unserved_tsg(turn, tsg, turn->probe_work);
			if (turn->probe_work)
				turn_gates_saw_work(turn, tsg);
		}
		turn->probe_at++;
		turn->probe_channel = 0;
		turn->probe_work = false;
	}
	return first;
}

/* ---- turns ---- */

void turn_start(struct turn *turn, u64 now_ns)
{
	turn->started = true;
	turn->owned = false;
	turn->unsure = false;
	turn->unserved = NULL;
	turn->core.stale = true;
	turn->core.dirty = true;
	turn->core.looked_ns = max(turn->core.looked_ns, now_ns);
}

int turn_stop(struct turn *turn)
{
	u32 i;

	turn->started = false;
	turn->resume.tsg = NULL;
	turn->owned = false;
	turn->unsure = false;
	turn->unserved = NULL;
	for (i = 0; i < turn->tsg_count; i++) {
		turn->tsgs[i]->in_slot = false;
		turn->tsgs[i]->core.slice_ns = 0;
	}
	return turn_gates_open(turn);
}

/* Somebody submits so often that the driver's list had better stay. */
static void fall_back(struct turn *turn, u64 now_ns)
{
	if (turn->cfg.method != TURN_IMAGES_THEN_GATES)
		return;
	if (now_ns >= turn->loss_from_ns + LOSSES_NS) {
		turn->loss_from_ns = now_ns;
		turn->loss_count = 0;
	}
	turn->gates |= ++turn->loss_count > LOSSES_MAX;
}

/* Ownership is lost once, however often that is found. A card that is back has heard no ring
 * meanwhile. */
static int finish(struct turn *turn, int err)
{
	bool lost;

	if (!turn_is_loss(err)) {
		if (turn->lost)
			turn_gates_unheard(turn);
		turn_note_error(&err, turn_gates_ring(turn));
	}
	lost = turn_is_loss(err);
	if (lost && !turn->lost) {
		turn->counters.losses++;
		if (err == -ESTALE)
			fall_back(turn, turn_now_ns(turn));
	}
	turn->lost = lost;
	return err;
}

static int apply(struct turn *turn)
{
	struct hw_status status;
	int err;

	err = turn_look(turn, &status);
	if (err)
		return err;
	if (turn->core.dirty)
		core_plan_make(&turn->core, turn_now_ns(turn));
	if (core_pick(&turn->core, turn_now_ns(turn)))
		err = turn_carry_out(turn);
	return err;
}

int turn_apply(struct turn *turn, u64 now_ns)
{
	(void)now_ns; /* the card's host clock is read where it counts */
	return turn->started ? finish(turn, apply(turn)) : 0;
}

int turn_relist(struct turn *turn, u64 now_ns)
{
	int err = turn_apply(turn, now_ns);

	if (err != -ENODEV || !turn_slot_is_bare(turn))
		return err;
	turn_start(turn, now_ns);
	return turn_apply(turn, now_ns);
}

static int look_around(struct turn *turn, u64 now_ns)
{
	struct hw_status status;
	int err, first;

	first = turn_slot_watch(turn, now_ns);
	if (turn_is_loss(first))
		return first;
	err = core_samples(&turn->core, now_ns) ? turn_look(turn, &status) : glance(turn, &status);
	turn_note_error(&first, err);
	if (!err) {
		turn_unserved_engine(turn, &status);
		if (status.state == HW_ENGINE_RUNNING)
			err = turn_gates_saw_running(turn, turn_tsg_of(turn, status.tsg_id));
		turn_note_error(&first, err);
	}
	if (!turn_is_loss(first))
		turn_note_error(&first, probe(turn));
	return first;
}

static u64 next_turn_ns(struct turn *turn, u64 now_ns, int err)
{
	u64 later_ns = max(now_ns, turn_now_ns(turn));
	u64 due_ns = min(core_next_ns(&turn->core, turn_now_ns(turn)),
			 min(turn_image_old_ns(turn), turn->air_at_ns));

	if (!err)
		return due_ns;
	if (err != -EIO)
		return later_ns + RETRY_NS;
	return clamp(due_ns, later_ns + RETRY_SOON_NS, later_ns + RETRY_NS);
}

/* What a register refuses to tell keeps nobody from having its turn, or held. */
int turn_run(struct turn *turn, u64 now_ns, u64 *next_ns)
{
	int err;

	*next_ns = U64_MAX;
	if (!turn->started)
		return 0;
	err = look_around(turn, now_ns);
	turn->core.stale |= now_ns >= turn_image_old_ns(turn) || turn_unserved_due(turn, now_ns);
	if (!turn_is_loss(err))
		turn_note_error(&err, turn_gates_air(turn, now_ns));
	if (!turn_is_loss(err) && core_pick(&turn->core, turn_now_ns(turn)))
		turn_note_error(&err, turn_carry_out(turn));
	err = finish(turn, err);
	*next_ns = next_turn_ns(turn, now_ns, err);
	return err;
}

void turn_listen(struct turn *turn,
		 void (*on_visit)(void *listener, const struct core_visit *visit), void *listener)
{
	turn->core.on_visit = on_visit;
	turn->core.listener = listener;
	turn->core.seen_from_ns = turn->core.looked_ns;
}

void turn_visit(const struct turn *turn, struct core_visit *out)
{
	core_visit_now(&turn->core, out);
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

void turn_gates_begin(struct turn *turn)
{
	turn->gates = true;
}

bool turn_uses_gates(const struct turn *turn)
{
	return turn->gates;
}

bool turn_has_submitted(const struct turn *turn)
{
	return turn->submitted;
}

u64 turn_cycle_ns(const struct turn *turn)
{
	return turn->core.cycle_ns;
}
