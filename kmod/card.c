// SPDX-License-Identifier: GPL-2.0
/*
 * card.c - a card from the moment its device appears until the last reader let go of it: the list
 * of all cards, and the verdict on its health. Taking it from its driver and giving it back is
 * hold.c's, its list buffers are list_mem.c's.
 *
 * Coming:  probe chip -> buffers, turn, worker -> listed -> listen (driver's objects are replayed)
 *          -> take_slot (its list is handed over in our first list_changed: turns begin)
 * Going:   unlisted, .running = false -> worker stopped -> give_slot (the driver's own list is in
 *          the slot again) -> unlisten -> objects freed
 */
#include <linux/auxiliary_bus.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include "compat.h"
#include "qgpu.h"
#include "sim_device.h"

static char *method = "auto";
module_param(method, charp, 0444);
MODULE_PARM_DESC(method, "images (lists of our own), gates (the driver's lists stay; channels are "
			 "disabled and enabled), or auto: gates for a card on the PCI bus, images "
			 "else; default auto");

static uint hold_max_ms = TURN_HOLD_MAX_NS / NSEC_PER_MSEC;
module_param(hold_max_ms, uint, 0444);
MODULE_PARM_DESC(hold_max_ms, "under gates the longest time that a tenant is held, 10 to 2000 ms; "
			      "default 500");

static bool readonly;
module_param(readonly, bool, 0444);
MODULE_PARM_DESC(readonly, "1: no register is ever written; cards are surveyed, not scheduled; "
			   "default 0");

DEFINE_MUTEX(qgpu_cards_lock);
static LIST_HEAD(qgpu_cards); /* sorted by index */
atomic_t qgpu_live = ATOMIC_INIT(0);
atomic_t qgpu_dump_seq = ATOMIC_INIT(1);
atomic_t qgpu_tsg_dump_seq = ATOMIC_INIT(0);

/* ---- the list ---- */

static void card_release(struct kref *ref)
{
	struct qgpu_card *card = container_of(ref, struct qgpu_card, ref);

	xa_destroy(&card->tenants);
	xa_destroy(&card->tsgs);
	mutex_destroy(&card->hold_lock);
	mutex_destroy(&card->lock);
	kfree(card);
	atomic_dec(&qgpu_live);
}

void qgpu_card_put(struct qgpu_card *card)
{
	kref_put(&card->ref, card_release);
}

struct qgpu_card *qgpu_card_get_from(u32 index)
{
	struct qgpu_card *card, *found = NULL;

	mutex_lock(&qgpu_cards_lock);
	list_for_each_entry(card, &qgpu_cards, node) {
		if (card->index >= index) {
			kref_get(&card->ref);
			found = card;
			break;
		}
	}
	mutex_unlock(&qgpu_cards_lock);
	return found;
}

struct qgpu_card *qgpu_card_get(u32 index)
{
	struct qgpu_card *card = qgpu_card_get_from(index);

	if (card && card->index != index) {
		qgpu_card_put(card);
		return NULL;
	}
	return card;
}

u32 qgpu_cards_count(void)
{
	struct qgpu_card *card;
	u32 count = 0;

	mutex_lock(&qgpu_cards_lock);
	list_for_each_entry(card, &qgpu_cards, node)
		count++;
	mutex_unlock(&qgpu_cards_lock);
	return count;
}

static void list_card(struct qgpu_card *card)
{
	struct list_head *place = &qgpu_cards;
	struct qgpu_card *other;

	mutex_lock(&qgpu_cards_lock);
	card->index = 0;
	list_for_each_entry(other, &qgpu_cards, node) {
		if (other->index != card->index) {
			place = &other->node;
			break;
		}
		card->index++;
	}
	list_add_tail(&card->node, place);
	mutex_unlock(&qgpu_cards_lock);
	atomic_inc(&qgpu_dump_seq);
}

static void unlist_card(struct qgpu_card *card)
{
	mutex_lock(&qgpu_cards_lock);
	list_del_init(&card->node);
	mutex_unlock(&qgpu_cards_lock);
	atomic_inc(&qgpu_dump_seq);
}

/* ---- health ---- */

/* One register in many may refuse, and not every turn reads it: so long without an error. */
#define OBEYS_NS 100000000ull

static const char *reason_of(int error)
{
	switch (error) {
	case -ENODEV:
		return "the card does not answer: it fell off the bus or was reset";
	case -EIO:
		return "the card refuses access to its scheduling registers";
	case -ETIMEDOUT:
		return "the card did not take a list in time";
	case -EBUSY:
		return "the card is still busy with an earlier list or preemption";
	default:
		return "the card's lists could not be written";
	}
}

void qgpu_card_judge_locked(struct qgpu_card *card, int error)
{
	enum qgpu_card_state state;
	u64 now_ns = ktime_get_ns();
	const char *reason;

	lockdep_assert_held(&card->lock);
	card->errors = error ? card->errors + 1 : 0;
	if (error)
		card->erred_ns = now_ns;
	else if (card->state == QGPU_CARD_DEGRADED && now_ns < card->erred_ns + OBEYS_NS)
		return;
	state = !error ? QGPU_CARD_OK : error == -ENODEV ? QGPU_CARD_LOST : QGPU_CARD_DEGRADED;
	reason = error ? reason_of(error) : NULL;
	if (state == card->state && reason == card->reason)
		return;
	card->state = state;
	card->reason = reason;
	if (error)
		pr_warn("qgpu: card %u: %s (error %d)\n", card->index, reason, error);
	else
		pr_info("qgpu: card %u: obeys again\n", card->index);
	qgpu_event_locked(card, QGPU_EVENT_CARD_STATE, NULL, NULL);
}

int qgpu_card_readopt_locked(struct qgpu_card *card)
{
	struct turn_counters counters;
	int strangers;

	lockdep_assert_held(&card->lock);
	turn_counters(card->turn, &counters);
	pr_warn_ratelimited(
		"qgpu: card %u: somebody else submitted on runlist %u (%llu times so far)\n",
		card->index, card->runlist, counters.losses);
	strangers = turn_uses_gates(card->turn) ? 0 : qgpu_strangers_found_locked(card);
	if (strangers < 0)
		return strangers;
	if (strangers)
		turn_gates_begin(card->turn);
	turn_start(card->turn, ktime_get_ns());
	return 0;
}

static int take_back_locked(struct qgpu_card *card)
{
	int err = qgpu_card_readopt_locked(card);

	return err ? err : turn_apply(card->turn, ktime_get_ns());
}

int qgpu_card_apply_locked(struct qgpu_card *card)
{
	int err = turn_apply(card->turn, ktime_get_ns());

	return err == -ESTALE ? take_back_locked(card) : err;
}

int qgpu_card_relist_locked(struct qgpu_card *card)
{
	int err = turn_relist(card->turn, ktime_get_ns());

	return err == -ESTALE ? take_back_locked(card) : err;
}

void qgpu_card_give_locked(struct qgpu_card *card)
{
	lockdep_assert_held(&card->lock);
	if (card->method == TURN_GATES || !turn_uses_gates(card->turn))
		return;
	card->method = TURN_GATES;
	pr_warn("qgpu: card %u: the driver keeps its list: by gates from now on\n", card->index);
	schedule_work(&card->give_work);
}

/* ---- coming and going ---- */

static int find_engine(struct qgpu_card *card)
{
	const struct hw_identity *id = &card->hw.id;
	u32 i;

	for (i = 0; i < id->engine_count; i++) {
		if (id->engines[i].type == HW_ENGINE_GRAPHICS) {
			card->engine_index = id->engines[i].index;
			card->runlist = id->engines[i].runlist;
			return 0;
		}
	}
	return -EOPNOTSUPP;
}

static int make_turn(struct qgpu_card *card)
{
	struct turn_config config = {
		.hw = &card->hw,
		.runlist = card->runlist,
		.engine_index = card->engine_index,
		.images = { card->images[0], card->images[1] },
		.tsg_max = QGPU_TSGS_MAX,
		/* A plan may replace all tenants: old and new ones are there for a moment. */
		.tenant_max = 2 * QGPU_TENANTS_MAX,
		.seed = get_random_u64(),
		.method = card->method,
		.hold_max_ns = (u64)hold_max_ms * NSEC_PER_MSEC,
	};

	core_params_default(&card->params);
	card->params.slice_min_ns = card->hw.id.slice_min_ns;
	card->params.slice_max_ns = card->hw.id.slice_max_ns;
	card->params.slice_round = card->hw.ops->slice_round;
	config.params = card->params;
	card->turn = turn_create(&config, ktime_get_ns());
	return card->turn ? 0 : -ENOMEM;
}

/* Beside a driver that has the card on a bus its own lists stay, unless the administrator says
 * otherwise: then somebody who submits all the time gets the slot back. */
static enum turn_method choose_method(const struct qgpu_sim_device *sim)
{
	if (!strcmp(method, "gates") || (sim->pdev && !strcmp(method, "auto")))
		return TURN_GATES;
	return sim->pdev ? TURN_IMAGES_THEN_GATES : TURN_IMAGES;
}

static struct qgpu_card *new_card(struct qgpu_sim_device *sim)
{
	struct qgpu_card *card = kzalloc(sizeof(*card), GFP_KERNEL);

	if (!card)
		return NULL;
	atomic_inc(&qgpu_live);
	kref_init(&card->ref);
	INIT_LIST_HEAD(&card->node);
	mutex_init(&card->lock);
	mutex_init(&card->hold_lock);
	xa_init(&card->tenants);
	xa_init(&card->tsgs);
	INIT_LIST_HEAD(&card->bound_pids);
	INIT_LIST_HEAD(&card->events);
	INIT_WORK(&card->event_work, qgpu_event_work);
	INIT_WORK(&card->give_work, qgpu_hold_give_slot);
	INIT_DELAYED_WORK(&card->take_work, qgpu_hold_take_again);
	card->method = choose_method(sim);
	card->hw.ops = &tu104_ops;
	strscpy(card->uuid, sim->uuid, sizeof(card->uuid));
	strscpy(card->name, sim->name, sizeof(card->name));
	card->since_ns = ktime_get_ns();
	card->generation = 1;
	card->policy = CORE_BURST_SHARE;
	return card;
}

/* Everything that a card needs before anybody hears of it. */
static int build_card(struct qgpu_card *card, struct qgpu_sim_device *sim)
{
	int err;

	err = qgpu_io_open(&card->io, sim);
	if (err)
		return err;
	card->hw.io = card->io.hw;
	err = card->hw.ops->probe(&card->hw);
	if (!err)
		err = find_engine(card);
	if (err) {
		dev_err(&sim->adev.dev, "qgpu: no card that can be shared (error %d)\n", err);
		goto err_io;
	}
	err = qgpu_lists_alloc(card);
	if (err)
		goto err_io;
	err = qgpu_strangers_init(card);
	if (err)
		goto err_lists;
	err = make_turn(card);
	if (err)
		goto err_strangers;
	err = qgpu_log_init(card);
	if (err)
		goto err_turn;
	err = qgpu_tenants_init(card);
	if (err)
		goto err_log;
	return 0;

err_log:
	qgpu_log_fini(card);
err_turn:
	turn_destroy(card->turn);
err_strangers:
	qgpu_strangers_fini(card);
err_lists:
	qgpu_lists_free(card);
err_io:
	qgpu_io_close(&card->io);
	return err;
}

static void unbuild_card(struct qgpu_card *card)
{
	qgpu_tenants_fini(card);
	qgpu_log_fini(card);
	flush_work(&card->event_work);
	qgpu_strangers_fini(card);
	qgpu_lists_release(card);
	turn_destroy(card->turn);
	qgpu_io_close(&card->io);
}

static void announce(struct qgpu_card *card, bool running)
{
	mutex_lock(&card->lock);
	card->running = running;
	qgpu_event_locked(card, running ? QGPU_EVENT_CARD_ADDED : QGPU_EVENT_CARD_REMOVED, NULL,
			  NULL);
	mutex_unlock(&card->lock);
}

static int sim_probe(struct auxiliary_device *adev, const struct auxiliary_device_id *id)
{
	struct qgpu_sim_device *sim = to_qgpu_sim_device(adev);
	struct qgpu_card *card;
	int err;

	if (readonly) {
		dev_info(&adev->dev, "qgpu: readonly=1: not scheduled\n");
		return -ENODEV;
	}
	card = new_card(sim);
	if (!card)
		return -ENOMEM;
	err = build_card(card, sim);
	if (err)
		goto err_put;
	list_card(card);
	err = qgpu_sched_start(card);
	if (err)
		goto err_unlist;
	announce(card, true);
	err = qgpu_hold_take(card);
	if (err)
		goto err_stop;
	auxiliary_set_drvdata(adev, card);
	if (sim->pdev && card->method != TURN_GATES) {
		/* Two who submit can pair one's base with the other's length (hardware page 12). */
		pr_warn("qgpu: card %u: method=images beside a driver is for tests\n", card->index);
		add_taint(TAINT_USER, LOCKDEP_STILL_OK);
	}
	pr_info("qgpu: card %u: %s, %s: scheduling runlist %u by %s\n", card->index, card->name,
		card->uuid, card->runlist, card->method == TURN_GATES ? "gates" : "images");
	return 0;

err_stop:
	announce(card, false);
	qgpu_sched_stop(card);
err_unlist:
	unlist_card(card);
	unbuild_card(card);
err_put:
	qgpu_card_put(card);
	return err;
}

static void sim_remove(struct auxiliary_device *adev)
{
	struct qgpu_card *card = auxiliary_get_drvdata(adev);

	unlist_card(card);
	announce(card, false);
	qgpu_hold_give(card);
	unbuild_card(card);
	pr_info("qgpu: card %u: gone, its driver schedules it again\n", card->index);
	qgpu_card_put(card);
}

static const struct auxiliary_device_id sim_ids[] = { { .name = QGPU_SIM_DEVICE_MATCH }, {} };
MODULE_DEVICE_TABLE(auxiliary, sim_ids);

static struct auxiliary_driver sim_driver = {
	.name = "card",
	.probe = sim_probe,
	.remove = sim_remove,
	.id_table = sim_ids,
};

static int parse_parameters(void)
{
	if (strcmp(method, "auto") && strcmp(method, "images") && strcmp(method, "gates")) {
		pr_err("qgpu: method=%s: auto, images or gates\n", method);
		return -EINVAL;
	}
	if (hold_max_ms < 10 || hold_max_ms > 2000) {
		pr_err("qgpu: hold_max_ms=%u: 10 to 2000\n", hold_max_ms);
		return -EINVAL;
	}
	return 0;
}

int qgpu_cards_register(void)
{
	int err = parse_parameters();

	if (err)
		return err;
	return auxiliary_driver_register(&sim_driver);
}

void qgpu_cards_unregister(void)
{
	auxiliary_driver_unregister(&sim_driver);
}
