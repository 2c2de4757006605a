// SPDX-License-Identifier: GPL-2.0
/*
 * sched.c - when turns happen: a real-time worker and a timer for each card. Decides nothing (that
 * is turn.c and core/) and never gives up: an error makes the next turn wait longer, until the chip
 * obeys again or the card goes.
 */
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include "qgpu.h"

/* Two turns are at least this far apart, whatever turn_run() says and whoever kicks: the worker
 * outranks everybody else on its CPU and must let go of it. */
#define TURN_GAP_NS 20000ull
/* A card that is gone is asked for less and less often; any other error is turn_run()'s to pace,
 * who has others to serve meanwhile. */
#define RETRY_FIRST_NS 1000000ull
#define RETRY_MOST_SHIFT 10 /* ~1 s */
/* While a card is degraded it is judged this often at least. */
#define JUDGE_NS 100000000ull

/* A tenant that does this does it in every window: one event a second tells as much. */
#define REPEAT_EVENT_NS NSEC_PER_SEC

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	struct qgpu_card *card = container_of(timer, struct qgpu_card, timer);

	kthread_queue_work(card->worker, &card->work);
	return HRTIMER_NORESTART;
}

/* Tell of what happened since it was last told, if it was long enough ago. */
static void tell_locked(struct qgpu_card *card, struct qgpu_told *told, u64 count,
			enum qgpu_event kind, struct core_tenant *last, u64 now_ns)
{
	if (count == told->count || now_ns < told->next_ns)
		return;
	told->count = count;
	told->next_ns = now_ns + REPEAT_EVENT_NS;
	qgpu_event_locked(card, kind, last ? container_of(last, struct qgpu_tenant, core) : NULL,
			  NULL);
}

static void tell_tenants_locked(struct qgpu_card *card, u64 now_ns)
{
	struct core_tenant *last;
	u64 count = turn_refusals(card->turn, &last);

	tell_locked(card, &card->refusals, count, QGPU_EVENT_PREEMPT_REFUSED, last, now_ns);
	count = turn_hangs(card->turn, &last);
	tell_locked(card, &card->hangs, count, QGPU_EVENT_HANG, last, now_ns);
}

static void arm(struct qgpu_card *card, u64 at_ns)
{
	hrtimer_start(&card->timer, ns_to_ktime(at_ns), HRTIMER_MODE_ABS);
}

/* When the next turn is due after one that returned @err and asked for @next_ns. */
static u64 next_turn_ns_locked(const struct qgpu_card *card, int err, u64 next_ns, u64 now_ns)
{
	if (err == -ENODEV)
		return now_ns + (RETRY_FIRST_NS << min_t(u32, card->errors - 1, RETRY_MOST_SHIFT));
	if (card->state != QGPU_CARD_OK)
		next_ns = min(next_ns, now_ns + JUDGE_NS);
	return max(next_ns, now_ns + TURN_GAP_NS);
}

static void run_turn(struct kthread_work *work)
{
	struct qgpu_card *card = container_of(work, struct qgpu_card, work);
	u64 next_ns = 0, now_ns;
	int err;

	mutex_lock(&card->lock);
	now_ns = ktime_get_ns();
	if (!card->running || !card->slot_taken)
		goto out;
	if (now_ns < card->turned_ns + TURN_GAP_NS) {
		arm(card, card->turned_ns + TURN_GAP_NS);
		goto out;
	}
	err = turn_run(card->turn, now_ns, &next_ns);
	if (err == -ESTALE) {
		/* The driver's events tell what exists: the next turn puts our list back. */
		err = qgpu_card_readopt_locked(card);
		next_ns = 0;
	}
	qgpu_card_judge_locked(card, err);
	qgpu_card_give_locked(card);
	now_ns = ktime_get_ns();
	tell_tenants_locked(card, now_ns);
	card->turned_ns = now_ns;
	arm(card, next_turn_ns_locked(card, err, next_ns, now_ns));
out:
	mutex_unlock(&card->lock);
}

void qgpu_sched_kick(struct qgpu_card *card)
{
	kthread_queue_work(card->worker, &card->work);
}

int qgpu_sched_start(struct qgpu_card *card)
{
	struct kthread_worker *worker;

	hrtimer_init(&card->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	card->timer.function = on_timer;
	kthread_init_work(&card->work, run_turn);
	worker = kthread_create_worker(0, "qgpu/%u", card->index);
	if (IS_ERR(worker))
		return PTR_ERR(worker);
	sched_set_fifo_low(worker->task);
	card->worker = worker;
	return 0;
}

void qgpu_sched_stop(struct qgpu_card *card)
{
	if (!card->worker)
		return;
	/* .running is false: a turn in progress arms no timer after this. */
	kthread_cancel_work_sync(&card->work);
	hrtimer_cancel(&card->timer);
	kthread_destroy_worker(card->worker);
	card->worker = NULL;
}
