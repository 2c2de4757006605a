// SPDX-License-Identifier: GPL-2.0
/*
 * bind.c - what belongs to whom by the administrator's word: one TSG, a process with the TSGs it
 * has and will make, or a cgroup. The first two last as long as the TSG or the process does; a
 * cgroup is a change of the plan like any other. Called by netlink.c with card->lock held.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include "qgpu.h"

static void prune_bound_pids(struct qgpu_card *card)
{
	struct qgpu_bound_pid *bound, *next;

	list_for_each_entry_safe(bound, next, &card->bound_pids, node) {
		if (pid_has_task(bound->pid, PIDTYPE_TGID))
			continue;
		list_del(&bound->node);
		put_pid(bound->pid);
		kfree(bound);
		card->bound_pid_count--;
	}
}

static int settle_and_apply(struct qgpu_card *card, struct qgpu_refusal *refusal)
{
	int err;

	qgpu_tsgs_settle_locked(card, card->cgroups);
	err = card->slot_taken ? qgpu_card_apply_locked(card) : 0;
	if (card->slot_taken)
		qgpu_card_judge_locked(card, err);
	if (err) {
		qgpu_tsgs_unsettle_locked(card);
		refusal->sentence = "the card did not take the change; the former plan is in force";
		return -EIO;
	}
	qgpu_tsgs_announce_locked(card);
	atomic_inc(&qgpu_tsg_dump_seq);
	if (card->running)
		qgpu_sched_kick(card);
	return 0;
}

static int bind_tsg(struct qgpu_card *card, const struct qgpu_bind *bind,
		    struct qgpu_tenant *tenant, struct qgpu_refusal *refusal)
{
	struct qgpu_tsg *tsg = xa_load(&card->tsgs, bind->tsg_serial);
	u32 former;
	int err;

	refusal->attr = bind->what_attr;
	if (!tsg) {
		refusal->sentence = "no TSG of this serial number";
		return -ENOENT;
	}
	if (!tsg->opener) {
		refusal->sentence = "this TSG is the driver's own and is never held back";
		return -EOPNOTSUPP;
	}
	former = tsg->bound;
	tsg->bound = tenant->id;
	err = settle_and_apply(card, refusal);
	if (err)
		tsg->bound = former;
	return err;
}

static int bind_pid(struct qgpu_card *card, const struct qgpu_bind *bind,
		    struct qgpu_tenant *tenant, struct qgpu_refusal *refusal)
{
	struct qgpu_bound_pid *bound, *entry = NULL;
	u32 former;
	int err;

	refusal->attr = bind->what_attr;
	prune_bound_pids(card);
	list_for_each_entry(bound, &card->bound_pids, node)
		if (bound->pid == bind->pid)
			entry = bound;
	if (!entry) {
		if (card->bound_pid_count == QGPU_BOUND_PIDS_MAX) {
			refusal->sentence = "too many processes are bound by hand";
			return -ENOSPC;
		}
		entry = kzalloc(sizeof(*entry), GFP_KERNEL);
		if (!entry)
			return -ENOMEM;
		entry->pid = get_pid(bind->pid);
		list_add(&entry->node, &card->bound_pids);
		card->bound_pid_count++;
	}
	former = entry->tenant_id;
	entry->tenant_id = tenant->id;
	err = settle_and_apply(card, refusal);
	if (err)
		entry->tenant_id = former; /* 0, nobody's id, matches no tenant */
	return err;
}

/* A tenant's list without @id, and with it at the end when @with. */
static int copy_cgroups(struct qgpu_tenant_change *to, const struct qgpu_tenant *from, u64 id,
			bool with)
{
	u32 i;

	to->cgroups = kvcalloc(from->cgroup_count + 1, sizeof(u64), GFP_KERNEL);
	if (!to->cgroups)
		return -ENOMEM;
	for (i = 0; i < from->cgroup_count; i++)
		if (from->cgroups[i] != id)
			to->cgroups[to->cgroup_count++] = from->cgroups[i];
	if (with)
		to->cgroups[to->cgroup_count++] = id;
	return 0;
}

/* A change of the plan like any other, of the list of one tenant or two. */
static int bind_cgroup(struct qgpu_card *card, const struct qgpu_bind *bind,
		       struct qgpu_tenant *tenant, struct qgpu_refusal *refusal)
{
	struct qgpu_plan_change change = { .generation = card->generation };
	struct qgpu_tenant *other;
	unsigned long id;
	u32 i, c;
	int err;

	change.tenants = kcalloc(2, sizeof(*change.tenants), GFP_KERNEL);
	if (!change.tenants)
		return -ENOMEM;
	err = copy_cgroups(&change.tenants[0], tenant, bind->cgroup_id, true);
	strscpy(change.tenants[change.tenant_count++].name, tenant->name, QGPU_NAME_MAX);
	xa_for_each(&card->tenants, id, other) {
		for (c = 0; !err && other != tenant && c < other->cgroup_count; c++) {
			if (other->cgroups[c] != bind->cgroup_id)
				continue;
			err = copy_cgroups(&change.tenants[1], other, bind->cgroup_id, false);
			strscpy(change.tenants[change.tenant_count++].name, other->name,
				QGPU_NAME_MAX);
			break;
		}
	}
	for (i = 0; i < change.tenant_count; i++)
		change.tenants[i].attrs[QGPU_A_TENANT_CGROUPS] = bind->what_attr;
	if (!err && change.tenants[0].cgroup_count > QGPU_CGROUPS_MAX) {
		refusal->sentence = "more cgroups than a tenant can have";
		refusal->attr = bind->what_attr;
		err = -ENOSPC;
	}
	if (!err)
		err = qgpu_plan_set_locked(card, &change, refusal);
	for (i = 0; i < change.tenant_count; i++)
		kvfree(change.tenants[i].cgroups);
	kfree(change.tenants);
	return err;
}

int qgpu_bind_locked(struct qgpu_card *card, const struct qgpu_bind *bind,
		     struct qgpu_refusal *refusal)
{
	struct qgpu_tenant *tenant;

	lockdep_assert_held(&card->lock);
	tenant = qgpu_tenant_find_locked(card, bind->name);
	if (!tenant) {
		refusal->attr = bind->name_attr;
		refusal->sentence = "no tenant of this name";
		return -ENOENT;
	}
	if (bind->pid)
		return bind_pid(card, bind, tenant, refusal);
	if (bind->cgroup_id)
		return bind_cgroup(card, bind, tenant, refusal);
	return bind_tsg(card, bind, tenant, refusal);
}
