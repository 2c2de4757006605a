// SPDX-License-Identifier: GPL-2.0
/*
 * tenant.c - the objects of a card: tenants, and the TSGs that the driver made for their processes.
 * Hears of TSGs and channels through the driver's events (sim_device.h) and decides whose they are.
 *
 * Whose a TSG is, first match:
 *   1. made by the driver for itself: nobody's
 *   2. bound by hand to a tenant
 *   3. its process bound by hand
 *   4. nearest cgroup, from the process's own upwards, that is some tenant's. The cgroups are those
 *      at the TSG's creation: a process that is moved later keeps its place until it makes a new
 * one
 *   5. "default"
 */
#include <linux/cgroup.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/timekeeping.h>
#include "qgpu.h"
#include "sim_device.h"

static atomic_t last_tenant_id = ATOMIC_INIT(QGPU_TENANT_DEFAULT);

/* ---- tenants ---- */

u32 qgpu_tenant_new_id(void)
{
	return atomic_inc_return(&last_tenant_id);
}

struct qgpu_tenant *qgpu_tenant_create(const char *name, u32 id)
{
	struct qgpu_tenant *tenant = kzalloc(sizeof(*tenant), GFP_KERNEL);

	if (!tenant)
		return NULL;
	atomic_inc(&qgpu_live);
	tenant->id = id;
	strscpy(tenant->name, name, sizeof(tenant->name));
	return tenant;
}

void qgpu_tenant_free(struct qgpu_tenant *tenant)
{
	if (!tenant)
		return;
	kvfree(tenant->cgroups);
	kfree(tenant);
	atomic_dec(&qgpu_live);
}

struct qgpu_tenant *qgpu_tenant_find_locked(struct qgpu_card *card, const char *name)
{
	struct qgpu_tenant *tenant;
	unsigned long id;

	lockdep_assert_held(&card->lock);
	xa_for_each(&card->tenants, id, tenant)
		if (!strcmp(tenant->name, name))
			return tenant;
	return NULL;
}

/* ---- whose a cgroup is ---- */

static int compare_rows(const void *a, const void *b)
{
	const struct qgpu_cgroup_row *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

struct qgpu_cgroup_map *qgpu_cgroup_map_create(struct qgpu_tenant *const *tenants, u32 count)
{
	struct qgpu_cgroup_map *map;
	u32 i, c, total = 0;

	for (i = 0; i < count; i++)
		if (!tenants[i]->doomed)
			total += tenants[i]->cgroup_count;
	map = kvzalloc(struct_size(map, rows, total), GFP_KERNEL);
	if (!map)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < count; i++) {
		if (tenants[i]->doomed)
			continue;
		for (c = 0; c < tenants[i]->cgroup_count; c++)
			map->rows[map->count++] = (struct qgpu_cgroup_row){
				.id = tenants[i]->cgroups[c],
				.tenant = tenants[i],
			};
	}
	sort(map->rows, map->count, sizeof(map->rows[0]), compare_rows, NULL);
	return map;
}

u64 qgpu_cgroup_map_clash(const struct qgpu_cgroup_map *map)
{
	u32 i;

	for (i = 1; i < map->count; i++)
		if (map->rows[i].id == map->rows[i - 1].id)
			return map->rows[i].id;
	return 0;
}

static struct qgpu_tenant *find_cgroup(const struct qgpu_cgroup_map *map, u64 id)
{
	u32 low = 0, high = map->count;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (map->rows[middle].id == id)
			return map->rows[middle].tenant;
		if (map->rows[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* ---- whose a TSG is ---- */

static struct qgpu_tenant *known_tenant(struct qgpu_card *card, u32 id)
{
	struct qgpu_tenant *tenant = xa_load(&card->tenants, id);

	return tenant && !tenant->doomed ? tenant : NULL;
}

static struct qgpu_tenant *resolve(struct qgpu_card *card, const struct qgpu_cgroup_map *map,
				   const struct qgpu_tsg *tsg)
{
	struct qgpu_tenant *tenant;
	struct qgpu_bound_pid *bound;
	u32 i;

	if (!tsg->opener)
		return NULL;
	tenant = tsg->bound ? known_tenant(card, tsg->bound) : NULL;
	if (tenant)
		return tenant;
	list_for_each_entry(bound, &card->bound_pids, node) {
		if (bound->pid != tsg->opener)
			continue;
		tenant = known_tenant(card, bound->tenant_id);
		if (tenant)
			return tenant;
	}
	for (i = 0; i < tsg->ancestor_count; i++) {
		tenant = find_cgroup(map, tsg->ancestors[i]);
		if (tenant)
			return tenant;
	}
	return card->default_tenant;
}

static struct core_tenant *core_of(struct qgpu_tenant *tenant)
{
	return tenant ? &tenant->core : NULL;
}

static void move_tsg(struct qgpu_card *card, struct qgpu_tsg *tsg, struct qgpu_tenant *tenant)
{
	if (tsg->tenant == tenant)
		return;
	if (tsg->scheduled)
		turn_tsg_move(card->turn, &tsg->turn, core_of(tenant));
	if (tsg->tenant)
		tsg->tenant->tsg_count--;
	if (tenant)
		tenant->tsg_count++;
	tsg->tenant = tenant;
}

void qgpu_tsgs_settle_locked(struct qgpu_card *card, const struct qgpu_cgroup_map *map)
{
	struct qgpu_tenant *tenant;
	struct qgpu_tsg *tsg;
	unsigned long serial, id;

	lockdep_assert_held(&card->lock);
	xa_for_each(&card->tenants, id, tenant)
		tenant->former_tsg_count = tenant->tsg_count;
	xa_for_each(&card->tsgs, serial, tsg) {
		tsg->former = tsg->tenant;
		move_tsg(card, tsg, resolve(card, map, tsg));
	}
}

void qgpu_tsgs_unsettle_locked(struct qgpu_card *card)
{
	struct qgpu_tsg *tsg;
	unsigned long serial;

	lockdep_assert_held(&card->lock);
	xa_for_each(&card->tsgs, serial, tsg)
		move_tsg(card, tsg, tsg->former);
}

void qgpu_tsgs_announce_locked(struct qgpu_card *card)
{
	struct qgpu_tenant *tenant;
	struct qgpu_tsg *tsg;
	unsigned long serial, id;

	lockdep_assert_held(&card->lock);
	xa_for_each(&card->tenants, id, tenant)
		if (!tenant->former_tsg_count && tenant->tsg_count)
			qgpu_event_locked(card, QGPU_EVENT_TENANT_APPEARED, tenant, NULL);
	xa_for_each(&card->tsgs, serial, tsg)
		if (tsg->former != tsg->tenant)
			qgpu_event_locked(card, QGPU_EVENT_TSG_BOUND, tsg->tenant, tsg);
	xa_for_each(&card->tenants, id, tenant)
		if (tenant->former_tsg_count && !tenant->tsg_count)
			qgpu_event_locked(card, QGPU_EVENT_TENANT_GONE, tenant, NULL);
}

/* ---- the driver's events; its mutex is held ---- */

/* The opener as a process, and where it lived; it may be gone already. Of a place too deep to be
 * remembered in full what is far from the root is left out: whoever is held by a cgroup cannot get
 * out of it by making others below. */
static void remember_opener(struct qgpu_tsg *tsg, const struct qgpu_driver_tsg *made)
{
	struct cgroup *cgroup = made->cgroup;
	struct task_struct *task;

	rcu_read_lock();
	task = pid_task(made->opener, PIDTYPE_PID);
	tsg->opener = get_pid(task ? task_tgid(task) : made->opener);
	while (cgroup && cgroup->level >= QGPU_ANCESTORS_MAX)
		cgroup = cgroup_parent(cgroup);
	while (cgroup) {
		tsg->ancestors[tsg->ancestor_count++] = cgroup_id(cgroup);
		cgroup = cgroup_parent(cgroup);
	}
	rcu_read_unlock();
}

static void free_tsg(struct qgpu_tsg *tsg)
{
	put_pid(tsg->opener);
	kfree(tsg);
	atomic_dec(&qgpu_live);
}

static int on_tsg_created(void *ctx, const struct qgpu_driver_tsg *made)
{
	struct qgpu_card *card = ctx;
	struct qgpu_tenant *tenant;
	struct qgpu_tsg *tsg;
	int err;

	tsg = kzalloc(sizeof(*tsg), GFP_KERNEL_ACCOUNT);
	if (!tsg)
		return -ENOMEM;
	atomic_inc(&qgpu_live);
	tsg->runlist = made->runlist;
	tsg->scheduled = made->runlist == card->runlist;
	tsg->turn.serial = made->serial;
	tsg->turn.tsg_id = made->tsg_id;
	tsg->turn.driver_slice_ns = made->slice_ns;
	tsg->turn.channels = tsg->channels;
	tsg->turn.nobody = !made->opener;
	if (made->opener)
		remember_opener(tsg, made);
	/* Its place is got without the lock: who has no memory left waits alone. */
	err = xa_reserve(&card->tsgs, made->serial, GFP_KERNEL_ACCOUNT);
	if (err)
		goto err_free;

	mutex_lock(&card->lock);
	xa_store(&card->tsgs, made->serial, tsg, GFP_KERNEL_ACCOUNT);
	tenant = resolve(card, card->cgroups, tsg);
	if (tsg->scheduled) {
		err = turn_tsg_add(card->turn, &tsg->turn, core_of(tenant));
		if (err)
			goto err_erase;
	}
	tsg->tenant = tenant;
	card->tsg_count++;
	if (tenant && !tenant->tsg_count++)
		qgpu_event_locked(card, QGPU_EVENT_TENANT_APPEARED, tenant, tsg);
	qgpu_event_locked(card, QGPU_EVENT_TSG_BOUND, tenant, tsg);
	atomic_inc(&qgpu_tsg_dump_seq);
	mutex_unlock(&card->lock);
	return 0;

err_erase:
	xa_erase(&card->tsgs, made->serial);
	mutex_unlock(&card->lock);
err_free:
	free_tsg(tsg);
	return err;
}

static void drop_tsg_locked(struct qgpu_card *card, struct qgpu_tsg *tsg)
{
	xa_erase(&card->tsgs, tsg->turn.serial);
	if (tsg->scheduled)
		turn_tsg_remove(card->turn, &tsg->turn);
	card->tsg_count--;
	if (tsg->tenant && !--tsg->tenant->tsg_count)
		qgpu_event_locked(card, QGPU_EVENT_TENANT_GONE, tsg->tenant, NULL);
	free_tsg(tsg);
	atomic_inc(&qgpu_tsg_dump_seq);
}

static void on_tsg_destroyed(void *ctx, u64 serial)
{
	struct qgpu_card *card = ctx;
	struct qgpu_tsg *tsg;

	mutex_lock(&card->lock);
	tsg = xa_load(&card->tsgs, serial);
	if (tsg)
		drop_tsg_locked(card, tsg);
	mutex_unlock(&card->lock);
}

static int on_channel_created(void *ctx, u64 serial, const struct hw_channel *channel)
{
	struct qgpu_card *card = ctx;
	struct qgpu_tsg *tsg;
	int err = 0;

	mutex_lock(&card->lock);
	tsg = xa_load(&card->tsgs, serial);
	if (!tsg) {
		err = -ENOENT;
	} else if (tsg->turn.channel_count == HW_MAX_TSG_CHANNELS) {
		err = -ENOSPC;
	} else {
		tsg->channels[tsg->turn.channel_count++] = *channel;
		if (tsg->scheduled)
			turn_list_changed(card->turn);
	}
	mutex_unlock(&card->lock);
	return err;
}

static void on_channel_destroyed(void *ctx, u64 serial, u16 channel_id)
{
	struct qgpu_card *card = ctx;
	struct qgpu_tsg *tsg;
	u32 i;

	mutex_lock(&card->lock);
	tsg = xa_load(&card->tsgs, serial);
	for (i = 0; tsg && i < tsg->turn.channel_count; i++) {
		if (tsg->channels[i].id != channel_id)
			continue;
		tsg->turn.channel_count--;
		memmove(&tsg->channels[i], &tsg->channels[i + 1],
			(tsg->turn.channel_count - i) * sizeof(tsg->channels[0]));
		if (tsg->scheduled)
			turn_list_changed(card->turn);
		break;
	}
	mutex_unlock(&card->lock);
}

/* Only best-effort runs with it; the list that follows brings it to the chip. */
static void on_slice_changed(void *ctx, u64 serial, u64 slice_ns)
{
	struct qgpu_card *card = ctx;
	struct qgpu_tsg *tsg;

	mutex_lock(&card->lock);
	tsg = xa_load(&card->tsgs, serial);
	if (tsg) {
		tsg->turn.driver_slice_ns = slice_ns;
		if (tsg->scheduled)
			turn_list_changed(card->turn);
	}
	mutex_unlock(&card->lock);
}

/* Also how the slot is handed over: the first call comes from within take_slot. */
static void on_list_changed(void *ctx, u32 runlist, const u64 *serials, u32 count)
{
	struct qgpu_card *card = ctx;
	struct qgpu_tsg *tsg;
	unsigned long serial;
	int err;
	u32 i;

	if (runlist != card->runlist)
		return;
	mutex_lock(&card->lock);
	xa_for_each(&card->tsgs, serial, tsg)
		tsg->turn.listed = false;
	for (i = 0; i < count; i++) {
		tsg = xa_load(&card->tsgs, serials[i]);
		if (!tsg || !tsg->scheduled)
			continue;
		tsg->turn.listed = true;
		tsg->turn.list_order = i;
	}
	turn_list_changed(card->turn);
	if (!card->slot_taken)
		turn_start(card->turn, ktime_get_ns());
	card->slot_taken = true;
	err = qgpu_card_relist_locked(card);
	qgpu_card_judge_locked(card, err);
	if (card->running)
		qgpu_sched_kick(card);
	mutex_unlock(&card->lock);
}

/* What is about to be stopped or freed is as the driver left it, whatever the card says. */
static void on_call_begins(void *ctx, u64 serial)
{
	struct qgpu_card *card = ctx;
	struct qgpu_tsg *tsg;

	mutex_lock(&card->lock);
	tsg = xa_load(&card->tsgs, serial);
	if (tsg && tsg->scheduled && turn_tsg_release(card->turn, &tsg->turn))
		pr_warn_ratelimited("qgpu: card %u: TSG %u could not be let go\n", card->index,
				    tsg->turn.tsg_id);
	mutex_unlock(&card->lock);
}

static void on_call_ended(void *ctx, u64 serial)
{
	struct qgpu_card *card = ctx;
	struct qgpu_tsg *tsg;

	mutex_lock(&card->lock);
	tsg = xa_load(&card->tsgs, serial);
	if (tsg && tsg->scheduled) {
		if (turn_tsg_retain(card->turn, &tsg->turn))
			pr_warn_ratelimited("qgpu: card %u: TSG %u could not be held again\n",
					    card->index, tsg->turn.tsg_id);
		if (card->running)
			qgpu_sched_kick(card);
	}
	mutex_unlock(&card->lock);
}

const struct qgpu_driver_events qgpu_driver_events = {
	.tsg_created = on_tsg_created,
	.tsg_destroyed = on_tsg_destroyed,
	.channel_created = on_channel_created,
	.channel_destroyed = on_channel_destroyed,
	.slice_changed = on_slice_changed,
	.list_changed = on_list_changed,
	.call_begins = on_call_begins,
	.call_ended = on_call_ended,
};

/* ---- a card's set of objects ---- */

int qgpu_tenants_init(struct qgpu_card *card)
{
	struct core_settings settings;
	struct qgpu_tenant *tenant;
	int err = -ENOMEM;

	card->cgroups = qgpu_cgroup_map_create(NULL, 0);
	if (IS_ERR(card->cgroups))
		return PTR_ERR(card->cgroups);
	tenant = qgpu_tenant_create("default", QGPU_TENANT_DEFAULT);
	if (!tenant)
		goto err_map;
	err = xa_insert(&card->tenants, tenant->id, tenant, GFP_KERNEL);
	if (err)
		goto err_tenant;
	core_settings_default(&settings);
	turn_policy_set(card->turn, card->policy, card->cycle_ns);
	err = turn_tenant_add(card->turn, &tenant->core, &settings);
	if (err)
		goto err_erase;
	card->default_tenant = tenant;
	card->tenant_count = 1;
	return 0;

err_erase:
	xa_erase(&card->tenants, tenant->id);
err_tenant:
	qgpu_tenant_free(tenant);
err_map:
	kvfree(card->cgroups);
	card->cgroups = NULL;
	return err;
}

/* The driver is silent and no turn runs: every object goes. */
void qgpu_tenants_fini(struct qgpu_card *card)
{
	struct qgpu_bound_pid *bound, *next;
	struct qgpu_tenant *tenant;
	struct qgpu_tsg *tsg;
	unsigned long key;

	mutex_lock(&card->lock);
	if (card->slot_taken)
		turn_stop(card->turn);
	card->slot_taken = false;
	xa_for_each(&card->tsgs, key, tsg)
		drop_tsg_locked(card, tsg);
	xa_for_each(&card->tenants, key, tenant) {
		xa_erase(&card->tenants, key);
		turn_tenant_remove(card->turn, &tenant->core);
		qgpu_tenant_free(tenant);
	}
	card->default_tenant = NULL;
	card->tenant_count = 0;
	list_for_each_entry_safe(bound, next, &card->bound_pids, node) {
		list_del(&bound->node);
		put_pid(bound->pid);
		kfree(bound);
	}
	card->bound_pid_count = 0;
	kvfree(card->cgroups);
	card->cgroups = NULL;
	mutex_unlock(&card->lock);
}
