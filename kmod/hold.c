// SPDX-License-Identifier: GPL-2.0
/*
 * hold.c - a card taken over from its driver, and given back: at its coming and going, when gates
 * take the place of images, and around sleep and reboot, when everything has to be as the driver
 * believes. Nobody is scheduled by us in between.
 *
 * All of it is done under card->hold_lock and without card->lock, which is taken where the card's
 * state changes: the driver's calls take the driver's mutex first.
 */
#include <linux/delay.h>
#include <linux/notifier.h>
#include <linux/reboot.h>
#include <linux/suspend.h>
#include <linux/workqueue.h>
#include "qgpu.h"
#include "sim_device.h"

/* After so long a card that did not answer is asked again. */
#define TAKE_AGAIN HZ

/* Cards that come now are left with their driver, too. Changed before the cards are gone through,
 * asked under the hold_lock of each. */
static enum { MACHINE_RUNS, MACHINE_SLEEPS, MACHINE_ENDS } machine;

static void set_running(struct qgpu_card *card, bool running)
{
	mutex_lock(&card->lock);
	card->running = running;
	mutex_unlock(&card->lock);
}

/* Its list stays if there is somebody in it whom a list of ours would leave out. */
static int look_for_strangers(struct qgpu_card *card)
{
	int strangers = 0;

	mutex_lock(&card->lock);
	if (card->method != TURN_GATES)
		strangers = qgpu_strangers_found_locked(card);
	if (strangers > 0) {
		pr_warn("qgpu: card %u: the driver keeps its list: by gates\n", card->index);
		turn_gates_begin(card->turn);
		card->method = TURN_GATES;
	}
	mutex_unlock(&card->lock);
	return min(strangers, 0);
}

/* Its list, and every change of it. It is told at once, and turns begin with that. A card that does
 * not answer is not taken over: who is in its list is not known. */
static int take_list(struct qgpu_card *card)
{
	struct qgpu_sim_device *sim = card->io.sim;
	u32 tries;
	int err;

	/* TIMEOUT: 100 looks, 0.2 s, as for the gates below. */
	for (tries = 0; tries < 100; tries++) {
		err = look_for_strangers(card);
		if (!err)
			break;
		usleep_range(1000, 2000);
	}
	if (err)
		return err;
	if (card->method == TURN_GATES)
		return sim->ops->follow_list(sim, card->runlist);
	return sim->ops->take_slot(sim, card->runlist);
}

/* Channels that stay closed would never run again: as long as the card is there it is asked. */
static void open_gates(struct qgpu_card *card)
{
	u32 tries;
	int err;

	/* TIMEOUT: 100 looks, 0.2 s: a register that refuses for longer is not coming back by
	 * itself. */
	for (tries = 0; tries < 100; tries++) {
		mutex_lock(&card->lock);
		err = turn_stop(card->turn);
		mutex_unlock(&card->lock);
		if (!err || err == -ENODEV)
			return;
		usleep_range(1000, 2000);
	}
	pr_err("qgpu: card %u: some channels are left disabled (error %d)\n", card->index, err);
}

/* No turn runs any more, and everything is as the driver set it last. Until the slot is given the
 * driver may tell of changes, and they are applied. */
static void let_go(struct qgpu_card *card)
{
	set_running(card, false);
	qgpu_sched_stop(card);
	cancel_work_sync(&card->give_work);
	card->io.sim->ops->give_slot(card->io.sim, card->runlist);
	/* Whatever the method was: it may have become gates a moment ago. */
	open_gates(card);
}

int qgpu_hold_take(struct qgpu_card *card)
{
	struct qgpu_sim_device *sim = card->io.sim;
	int err;

	mutex_lock(&card->hold_lock);
	err = sim->ops->listen(sim, &qgpu_driver_events, card);
	if (err) {
		dev_err(&sim->adev.dev, "qgpu: the driver does not report its objects (error %d)\n",
			err);
		goto out;
	}
	WRITE_ONCE(card->paused, READ_ONCE(machine) != MACHINE_RUNS);
	if (card->paused) {
		set_running(card, false);
		qgpu_sched_stop(card);
	} else {
		err = take_list(card);
	}
	if (err) {
		dev_err(&sim->adev.dev, "qgpu: the driver keeps its runlist (error %d)\n", err);
		sim->ops->unlisten(sim);
	}
	card->held = !err;
out:
	mutex_unlock(&card->hold_lock);
	return err;
}

void qgpu_hold_give(struct qgpu_card *card)
{
	mutex_lock(&card->hold_lock);
	let_go(card);
	card->held = false;
	card->io.sim->ops->unlisten(card->io.sim);
	mutex_unlock(&card->hold_lock);
	cancel_delayed_work_sync(&card->take_work);
}

static void pause(struct qgpu_card *card, const char *why)
{
	mutex_lock(&card->hold_lock);
	if (card->held && !card->paused) {
		WRITE_ONCE(card->paused, true);
		let_go(card);
		pr_info("qgpu: card %u: given back to its driver for %s\n", card->index, why);
	}
	mutex_unlock(&card->hold_lock);
}

static int take_back(struct qgpu_card *card)
{
	int err = qgpu_sched_start(card);

	if (err)
		return err;
	mutex_lock(&card->lock);
	card->running = true;
	card->slot_taken = false; /* turns begin with the list that is told now */
	mutex_unlock(&card->lock);
	err = take_list(card);
	if (err)
		let_go(card);
	return err;
}

static void resume(struct qgpu_card *card)
{
	int err;

	mutex_lock(&card->hold_lock);
	if (card->held && card->paused && READ_ONCE(machine) == MACHINE_RUNS) {
		err = take_back(card);
		if (err && !card->unanswered)
			pr_err("qgpu: card %u: stays with its driver until it answers (error %d)\n",
			       card->index, err);
		if (err)
			queue_delayed_work(system_freezable_wq, &card->take_work, TAKE_AGAIN);
		else
			pr_info("qgpu: card %u: taken over again\n", card->index);
		WRITE_ONCE(card->unanswered, err);
		WRITE_ONCE(card->paused, err);
	}
	mutex_unlock(&card->hold_lock);
}

void qgpu_hold_take_again(struct work_struct *work)
{
	resume(container_of(to_delayed_work(work), struct qgpu_card, take_work));
}

/* Calls of the driver's are made without the card's lock. No lock of ours: let_go() waits. */
void qgpu_hold_give_slot(struct work_struct *work)
{
	struct qgpu_card *card = container_of(work, struct qgpu_card, give_work);
	struct qgpu_sim_device *sim = card->io.sim;

	sim->ops->give_slot(sim, card->runlist);
	if (sim->ops->follow_list(sim, card->runlist))
		pr_err("qgpu: card %u: the driver does not report its list\n", card->index);
}

/* ---- sleep and reboot ---- */

static void pause_all(const char *why)
{
	struct qgpu_card *card;
	u32 index = 0;

	while ((card = qgpu_card_get_from(index))) {
		index = card->index + 1; /* it may be gone after the put */
		pause(card, why);
		qgpu_card_put(card);
	}
}

static void resume_all(void)
{
	struct qgpu_card *card;
	u32 index = 0;

	while ((card = qgpu_card_get_from(index))) {
		index = card->index + 1;
		resume(card);
		qgpu_card_put(card);
	}
}

static int on_sleep(struct notifier_block *block, unsigned long event, void *unused)
{
	switch (event) {
	case PM_SUSPEND_PREPARE:
	case PM_HIBERNATION_PREPARE:
	case PM_RESTORE_PREPARE:
		WRITE_ONCE(machine, MACHINE_SLEEPS);
		pause_all("sleep");
		break;
	case PM_POST_SUSPEND:
	case PM_POST_HIBERNATION:
	case PM_POST_RESTORE:
		/* A reboot may have come in between: nothing is taken over any more. */
		if (cmpxchg(&machine, MACHINE_SLEEPS, MACHINE_RUNS) == MACHINE_SLEEPS)
			resume_all();
		break;
	}
	return NOTIFY_DONE;
}

static int on_reboot(struct notifier_block *block, unsigned long event, void *unused)
{
	WRITE_ONCE(machine, MACHINE_ENDS);
	pause_all("reboot");
	return NOTIFY_DONE;
}

static struct notifier_block sleep_block = { .notifier_call = on_sleep };
/* Before the card's driver hears of it. */
static struct notifier_block reboot_block = { .notifier_call = on_reboot, .priority = 128 };

int qgpu_hold_register(void)
{
	int err = register_pm_notifier(&sleep_block);

	if (err)
		return err;
	err = register_reboot_notifier(&reboot_block);
	if (err)
		unregister_pm_notifier(&sleep_block);
	return err;
}

void qgpu_hold_unregister(void)
{
	unregister_reboot_notifier(&reboot_block);
	unregister_pm_notifier(&sleep_block);
}
