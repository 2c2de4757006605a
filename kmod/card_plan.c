// SPDX-License-Identifier: GPL-2.0
/*
 * card_plan.c - one atomic change of a card's plan: prepare (everything that can be refused or run
 * out of memory) -> hardware (the turn writes an image and the chip takes it) -> commit (cannot
 * fail). Until the commit nothing is visible; an error undoes what was prepared. Called by
 * netlink.c with card->lock held; must not look at a message beyond naming the guilty attribute.
 */
#include <linux/bsearch.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/timekeeping.h>
#include "qgpu.h"

/* A tenant as it is to be. */
struct row {
	struct qgpu_tenant *tenant;
	struct core_settings settings;
	u32 cgroup_count;
	u64 *cgroups; /* new list when @new_cgroups; owned by the row until committed */
	bool new_cgroups;
	bool created, removed;
	struct qgpu_tenant_change *change; /* NULL = not named in the message */
};

/* A change as prepared. Rows: existing tenants by id, then created ones. */
struct plan {
	struct qgpu_card *card;
	struct qgpu_plan_change *change;
	struct qgpu_refusal *refusal;
	enum core_policy policy;
	u64 cycle_ns;
	u32 count;
	struct row *rows;
	struct row **by_name; /* existing ones */
	u32 by_name_count;
	struct qgpu_cgroup_map *map;
};

static int refuse(struct plan *plan, int error, const struct nlattr *attr, const char *sentence)
{
	plan->refusal->attr = attr;
	plan->refusal->sentence = sentence;
	return error;
}

/* ---- prepare ---- */

static int compare_names(const void *a, const void *b)
{
	const struct row *const *x = a, *const *y = b;

	return strcmp((*x)->tenant->name, (*y)->tenant->name);
}

static int match_name(const void *name, const void *element)
{
	const struct row *const *row = element;

	return strcmp(name, (*row)->tenant->name);
}

static int compare_changes(const void *a, const void *b)
{
	const struct qgpu_tenant_change *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int refuse_double_names(struct plan *plan)
{
	struct qgpu_plan_change *change = plan->change;
	struct qgpu_tenant_change **sorted;
	int err = 0;
	u32 i;

	sorted = kvcalloc(change->tenant_count, sizeof(*sorted), GFP_KERNEL);
	if (change->tenant_count && !sorted)
		return -ENOMEM;
	for (i = 0; i < change->tenant_count; i++)
		sorted[i] = &change->tenants[i];
	sort(sorted, change->tenant_count, sizeof(*sorted), compare_changes, NULL);
	for (i = 1; i < change->tenant_count && !err; i++)
		if (!strcmp(sorted[i]->name, sorted[i - 1]->name))
			err = refuse(plan, -EINVAL, sorted[i]->attrs[QGPU_A_TENANT_NAME],
				     "a tenant is named twice");
	kvfree(sorted);
	return err;
}

static int take_existing(struct plan *plan)
{
	struct qgpu_card *card = plan->card;
	u32 most = card->tenant_count + plan->change->tenant_count;
	struct qgpu_tenant *tenant;
	unsigned long id;

	plan->rows = kvcalloc(most, sizeof(*plan->rows), GFP_KERNEL);
	plan->by_name = kvcalloc(card->tenant_count, sizeof(*plan->by_name), GFP_KERNEL);
	if (!plan->rows || !plan->by_name)
		return -ENOMEM;
	xa_for_each(&card->tenants, id, tenant) {
		struct row *row = &plan->rows[plan->count++];

		row->tenant = tenant;
		row->settings = tenant->core.asked;
		plan->by_name[plan->by_name_count++] = row;
	}
	sort(plan->by_name, plan->by_name_count, sizeof(*plan->by_name), compare_names, NULL);
	return 0;
}

static struct row *find_row(struct plan *plan, const char *name)
{
	struct row **found = bsearch(name, plan->by_name, plan->by_name_count,
				     sizeof(*plan->by_name), match_name);

	return found ? *found : NULL;
}

static int create_row(struct plan *plan, const struct qgpu_tenant_change *change, struct row **out)
{
	struct row *row = &plan->rows[plan->count];

	row->tenant = qgpu_tenant_create(change->name, qgpu_tenant_new_id());
	if (!row->tenant)
		return -ENOMEM;
	plan->count++;
	row->created = true;
	core_settings_default(&row->settings);
	*out = row;
	return xa_reserve(&plan->card->tenants, row->tenant->id, GFP_KERNEL);
}

static bool gives_settings(const struct qgpu_tenant_change *change)
{
	u32 type;

	for (type = QGPU_A_TENANT_WEIGHT; type <= QGPU_A_TENANT_CGROUPS; type++)
		if (change->attrs[type])
			return true;
	return false;
}

static void set_row(struct row *row, struct qgpu_tenant_change *change)
{
	const struct nlattr **given = change->attrs;
	struct core_settings *to = &row->settings;

	if (given[QGPU_A_TENANT_WEIGHT])
		to->weight = change->settings.weight;
	if (given[QGPU_A_TENANT_GUARANTEE_PPM])
		to->guarantee_ppm = change->settings.guarantee_ppm;
	if (given[QGPU_A_TENANT_CEILING_PPM])
		to->ceiling_ppm = change->settings.ceiling_ppm;
	if (given[QGPU_A_TENANT_WAKE_NS])
		to->wake_ns = change->settings.wake_ns;
	if (given[QGPU_A_TENANT_CLASS])
		to->class_ = change->settings.class_;
	if (given[QGPU_A_TENANT_HANG_NS])
		to->hang_ns = change->settings.hang_ns;
	change->settings = *to;
	if (given[QGPU_A_TENANT_CGROUPS]) {
		row->new_cgroups = true;
		row->cgroup_count = change->cgroup_count;
		row->cgroups = change->cgroups;
		change->cgroups = NULL;
	}
}

static int take_change(struct plan *plan, struct qgpu_tenant_change *change)
{
	const struct nlattr *name_attr = change->attrs[QGPU_A_TENANT_NAME];
	const struct nlattr *flags_attr = change->attrs[QGPU_A_TENANT_FLAGS];
	struct row *row = find_row(plan, change->name);
	int err;

	if (change->flags & QGPU_TENANT_REMOVE) {
		if (change->flags & QGPU_TENANT_CREATE_ONLY || gives_settings(change))
			return refuse(plan, -EINVAL, flags_attr,
				      "a tenant that is removed takes no settings");
		if (!row)
			return refuse(plan, -ENOENT, name_attr, "no tenant of this name");
		if (row->tenant == plan->card->default_tenant)
			return refuse(plan, -EINVAL, name_attr, "\"default\" cannot be removed");
		row->removed = true;
		row->change = change;
		return 0;
	}
	if (row && change->flags & QGPU_TENANT_CREATE_ONLY)
		return refuse(plan, -EEXIST, name_attr, "a tenant of this name exists");
	if (!row) {
		err = create_row(plan, change, &row);
		if (err)
			return err;
	}
	row->change = change;
	change->tenant = row->tenant;
	set_row(row, change);
	return 0;
}

/* QGPU_PLAN_REPLACE: whoever was not named goes; "default" cannot go and is as if new. */
static void replace_others(struct plan *plan)
{
	u32 i;

	for (i = 0; i < plan->count; i++) {
		struct row *row = &plan->rows[i];

		if (row->change)
			continue;
		if (row->tenant == plan->card->default_tenant) {
			core_settings_default(&row->settings);
			row->new_cgroups = true;
		} else {
			row->removed = true;
		}
	}
}

struct sentence {
	int error;
	enum core_field field;
	enum qgpu_attr_tenant attr;
	const char *text;
};

static const struct sentence sentences[] = {
	{ -ERANGE, CORE_FIELD_WEIGHT, QGPU_A_TENANT_WEIGHT, "a weight is 1 ... 10000" },
	{ -ERANGE, CORE_FIELD_GUARANTEE, QGPU_A_TENANT_GUARANTEE_PPM,
	  "a guarantee is 0 ... 1000000 ppm" },
	{ -ERANGE, CORE_FIELD_CEILING, QGPU_A_TENANT_CEILING_PPM,
	  "a ceiling is 1 ... 1000000 ppm and not below the guarantee" },
	{ -ERANGE, CORE_FIELD_CLASS, QGPU_A_TENANT_CLASS, "no such class" },
	{ -ENOSPC, CORE_FIELD_GUARANTEE, QGPU_A_TENANT_GUARANTEE_PPM,
	  "with this tenant the guarantees add up to more than the card" },
	{ -ENOSPC, CORE_FIELD_WAKE, QGPU_A_TENANT_WAKE_NS, "so short a wait cannot be kept here" },
	{ -ERANGE, CORE_FIELD_WAKE, QGPU_A_TENANT_WAKE_NS, "a longest wait is 10 s at most" },
	{ -ERANGE, CORE_FIELD_HANG, QGPU_A_TENANT_HANG_NS, "a hang timeout is an hour at most" },
	{ -EOPNOTSUPP, CORE_FIELD_CLASS, QGPU_A_TENANT_CLASS,
	  "only the class normal is enforced under this policy" },
	{ -EOPNOTSUPP, CORE_FIELD_WAKE, QGPU_A_TENANT_WAKE_NS,
	  "a longest wait is not enforced under this policy" },
};

/* Why a wait cannot be promised, or not one so short. */
static const char *const hindrances[] = {
	[CORE_HINDERED_BY_WEIGHTS] = "slices for so short a wait would not follow the weights",
	[CORE_HINDERED_BY_ONLINE] = "no wait can be promised beside online tenants",
	[CORE_HINDERED_BY_SHARES] = "no wait can be promised where others may leave it nothing",
	[CORE_HINDERED_BY_WINDOWS] =
		"no wait can be promised beside windows on the clock that may take all the time",
};

static const char *sentence_of(const struct core_refusal *why, const char *text)
{
	bool hindered = why->field == CORE_FIELD_WAKE && why->error == -ENOSPC &&
			why->bound.by != CORE_HINDERED_BY_SWITCHES;

	return hindered ? hindrances[why->bound.by] : text;
}

static int refuse_tenant(struct plan *plan, const struct core_refusal *why,
			 const struct qgpu_tenant_change *change)
{
	const struct nlattr *policy_attr = plan->change->attrs[QGPU_A_PLAN_POLICY];
	const struct nlattr *attr = NULL;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sentences); i++) {
		if (sentences[i].error != why->error || sentences[i].field != why->field)
			continue;
		if (change)
			attr = change->attrs[sentences[i].attr] ?: change->nest;
		return refuse(plan, why->error, attr ?: policy_attr,
			      sentence_of(why, sentences[i].text));
	}
	return refuse(plan, why->error, change ? change->nest : policy_attr,
		      "a tenant's settings are refused");
}

static int refuse_by_core(struct plan *plan, const struct core_refusal *why, struct row **order)
{
	const struct nlattr **given = plan->change->attrs;

	if (why->tenant != U32_MAX)
		return refuse_tenant(plan, why, order[why->tenant]->change);
	if (why->field == CORE_FIELD_CYCLE)
		return refuse(plan, why->error, given[QGPU_A_PLAN_CYCLE_NS],
			      why->error == -ERANGE ? "a cycle of this length cannot be scheduled" :
						      "a cycle is not enforced under this policy");
	return refuse(plan, why->error, given[QGPU_A_PLAN_POLICY],
		      why->error == -ERANGE ? "no such policy" : "this policy is not enforced");
}

/* Those not named first: so that of many guarantees that add up to too much a named one is
 * guilty. */
static int check_settings(struct plan *plan)
{
	struct core_settings *settings;
	struct core_refusal why = { 0 };
	u32 i, pass, count = 0;
	struct row **order;
	int err = -ENOMEM;

	settings = kvcalloc(plan->count, sizeof(*settings), GFP_KERNEL);
	order = kvcalloc(plan->count, sizeof(*order), GFP_KERNEL);
	if (!settings || !order)
		goto out;
	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < plan->count; i++) {
			struct row *row = &plan->rows[i];

			if (row->removed || !row->change == (pass == 1))
				continue;
			order[count] = row;
			settings[count++] = row->settings;
		}
	}
	err = 0;
	if (count > QGPU_TENANTS_MAX)
		err = refuse(plan, -ENOSPC,
			     plan->change->tenants[plan->change->tenant_count - 1].nest,
			     "more tenants than a card can have");
	if (!err &&
	    core_check(&plan->card->params, plan->policy, plan->cycle_ns, settings, count, &why))
		err = refuse_by_core(plan, &why, order);
out:
	kvfree(settings);
	kvfree(order);
	return err;
}

/* Put the new lists in place of the old; a second time: back again. */
static void swap_cgroups(struct plan *plan)
{
	u32 i;

	for (i = 0; i < plan->count; i++) {
		struct row *row = &plan->rows[i];

		row->tenant->doomed ^= row->removed;
		if (!row->new_cgroups)
			continue;
		swap(row->tenant->cgroups, row->cgroups);
		swap(row->tenant->cgroup_count, row->cgroup_count);
	}
}

static int refuse_clash(struct plan *plan, u64 id)
{
	const struct nlattr *attr = NULL;
	u32 i, c;

	for (i = 0; i < plan->count; i++) {
		const struct row *row = &plan->rows[i];

		for (c = 0; row->change && c < row->tenant->cgroup_count; c++)
			if (row->tenant->cgroups[c] == id)
				attr = row->change->attrs[QGPU_A_TENANT_CGROUPS] ?: attr;
	}
	return refuse(plan, -EINVAL, attr, "a cgroup is listed twice");
}

/* With the new cgroups in place. */
static int make_map(struct plan *plan)
{
	struct qgpu_tenant **tenants;
	struct qgpu_cgroup_map *map;
	u64 clash;
	u32 i;

	tenants = kvcalloc(plan->count, sizeof(*tenants), GFP_KERNEL);
	if (!tenants)
		return -ENOMEM;
	for (i = 0; i < plan->count; i++)
		tenants[i] = plan->rows[i].tenant;
	map = qgpu_cgroup_map_create(tenants, plan->count);
	kvfree(tenants);
	if (IS_ERR(map))
		return PTR_ERR(map);
	plan->map = map;
	clash = qgpu_cgroup_map_clash(map);
	return clash ? refuse_clash(plan, clash) : 0;
}

static int prepare(struct plan *plan)
{
	struct qgpu_plan_change *change = plan->change;
	u32 i;
	int err;

	if (change->generation != plan->card->generation)
		return refuse(plan, -ESTALE, change->attrs[QGPU_A_PLAN_GENERATION],
			      "the plan was replaced since this generation");
	plan->policy = change->attrs[QGPU_A_PLAN_POLICY] ? change->policy : plan->card->policy;
	plan->cycle_ns =
		change->attrs[QGPU_A_PLAN_CYCLE_NS] ? change->cycle_ns : plan->card->cycle_ns;
	err = refuse_double_names(plan);
	if (!err)
		err = take_existing(plan);
	for (i = 0; !err && i < change->tenant_count; i++)
		err = take_change(plan, &change->tenants[i]);
	if (err)
		return err;
	if (change->flags & QGPU_PLAN_REPLACE)
		replace_others(plan);
	return check_settings(plan);
}

/* Frees what was prepared and not committed; new cgroups are with their rows. */
static void forget(struct plan *plan)
{
	u32 i;

	for (i = 0; i < plan->count; i++) {
		struct row *row = &plan->rows[i];

		kvfree(row->cgroups);
		if (!row->created)
			continue;
		xa_release(&plan->card->tenants, row->tenant->id);
		if (row->change)
			row->change->tenant = NULL;
		qgpu_tenant_free(row->tenant);
	}
	kvfree(plan->map);
	kvfree(plan->rows);
	kvfree(plan->by_name);
}

/* ---- hardware ---- */

static int alter(struct plan *plan, u32 *added)
{
	struct turn *turn = plan->card->turn;
	int err = 0;

	for (*added = 0; *added < plan->count; (*added)++) {
		struct row *row = &plan->rows[*added];

		if (row->created) {
			err = turn_tenant_add(turn, &row->tenant->core, &row->settings);
			if (err)
				return err;
		} else {
			/* From here on the row keeps what the tenant had. */
			struct core_settings former = row->tenant->core.asked;

			if (memcmp(&former, &row->settings, sizeof(former)))
				turn_tenant_set(turn, &row->tenant->core, &row->settings);
			row->settings = former;
		}
	}
	turn_policy_set(turn, plan->policy, plan->cycle_ns);
	qgpu_tsgs_settle_locked(plan->card, plan->map);
	return 0;
}

static void alter_back(struct plan *plan, u32 added)
{
	struct qgpu_card *card = plan->card;

	if (added == plan->count) {
		qgpu_tsgs_unsettle_locked(card);
		turn_policy_set(card->turn, card->policy, card->cycle_ns);
	}
	while (added--) {
		struct row *row = &plan->rows[added];

		if (row->created)
			turn_tenant_remove(card->turn, &row->tenant->core);
		else if (memcmp(&row->tenant->core.asked, &row->settings, sizeof(row->settings)))
			turn_tenant_set(card->turn, &row->tenant->core, &row->settings);
	}
}

static int bring_about(struct plan *plan)
{
	struct qgpu_card *card = plan->card;
	u32 added;
	int err;

	err = alter(plan, &added);
	if (!err && card->slot_taken) {
		err = qgpu_card_apply_locked(card);
		qgpu_card_judge_locked(card, err);
		if (err) {
			refuse(plan, 0, NULL,
			       "the card did not take the plan; the former one is still in force");
			err = -EIO;
		}
	}
	if (err)
		alter_back(plan, added);
	return err;
}

/* ---- commit ---- */

static void remove_tenant(struct qgpu_card *card, struct qgpu_tenant *tenant)
{
	struct core_counters counters;

	turn_tenant_counters(card->turn, &tenant->core, &counters);
	card->removed_run_ns += counters.run_ns;
	turn_tenant_remove(card->turn, &tenant->core);
	xa_erase(&card->tenants, tenant->id);
	card->tenant_count--;
	qgpu_tenant_free(tenant);
}

static void commit(struct plan *plan)
{
	struct qgpu_card *card = plan->card;
	u32 i;

	for (i = 0; i < plan->count; i++) {
		struct row *row = &plan->rows[i];

		if (!row->created)
			continue;
		/* Reserved: it cannot fail. */
		WARN_ON_ONCE(
			xa_err(xa_store(&card->tenants, row->tenant->id, row->tenant, GFP_KERNEL)));
		row->created = false;
		card->tenant_count++;
	}
	swap(card->cgroups, plan->map);
	card->policy = plan->policy;
	card->cycle_ns = plan->cycle_ns;
	card->generation++;
	atomic_inc(&qgpu_dump_seq);
	qgpu_event_locked(card, QGPU_EVENT_PLAN, NULL, NULL);
	qgpu_tsgs_announce_locked(card);
	for (i = 0; i < plan->count; i++)
		if (plan->rows[i].removed)
			remove_tenant(card, plan->rows[i].tenant);
	if (card->running)
		qgpu_sched_kick(card);
}

int qgpu_plan_set_locked(struct qgpu_card *card, struct qgpu_plan_change *change,
			 struct qgpu_refusal *refusal)
{
	struct plan plan = { .card = card, .change = change, .refusal = refusal };
	int err;

	lockdep_assert_held(&card->lock);
	err = prepare(&plan);
	if (!err) {
		swap_cgroups(&plan);
		err = make_map(&plan);
		if (!err && !(change->flags & QGPU_PLAN_DRY_RUN)) {
			err = bring_about(&plan);
			if (!err)
				commit(&plan);
		}
		if (err || change->flags & QGPU_PLAN_DRY_RUN)
			swap_cgroups(&plan);
	}
	forget(&plan);
	return err;
}
