// SPDX-License-Identifier: GPL-2.0
/*
 * chip_card.c - hosts the chip model in the kernel: clock, timer, registers. The model is lazy: it
 * is brought up to date by whoever touches it, and by one timer set to the next thing a tenant can
 * see. Knows nothing of the driver front.
 */
#include "chip_card.h"

#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>

#include "bus.h"

/* What a tenant can see (a completion, USERD) is late by at most this and the timer's own error. */
#define BATCH_NS 15000u

#define PTIMER_STEP_NS 32u
#define DOORBELL 0xbb0090u

/* How much of the card's time is modelled at a stretch when it is behind, and how much of ours may
 * be spent before the lock is let go; after that the timer leaves the CPU alone for as long. */
#define PIECE_NS 50000u
#define BUDGET_NS 200000u

/*
 * Bring the model up to now. Caller holds chip_lock. A tenant can queue more and shorter kernels
 * than this CPU can follow: then the card's clock falls behind, a piece a call, instead of the
 * CPU being gone until it has caught up. Return: the card's time.
 */
static u64 advance_locked(struct chip_card *card)
{
	u64 start = ktime_get_ns(), next, took;

	for (;;) {
		next = chip_next_event_ns(card->chip);
		if (next >= start || max(next, card->now_ns) + PIECE_NS >= start)
			break; /* the rest is little, whoever calls the model next does it */
		card->now_ns = max(next, card->now_ns) + PIECE_NS;
		chip_advance(card->chip, card->now_ns);
		took = ktime_get_ns() - start;
		if (took > BUDGET_NS) {
			card->resume_ns = start + 2 * took;
			return card->now_ns;
		}
	}
	card->now_ns = max(card->now_ns, start);
	return card->now_ns;
}

/* When the timer is due; U64_MAX: not. Caller holds chip_lock. */
static u64 timer_due_locked(const struct chip_card *card)
{
	u64 next = chip_next_event_ns(card->chip);

	if (next == U64_MAX)
		return U64_MAX;
	return max(max(next, card->now_ns) + BATCH_NS, card->resume_ns);
}

/* Caller holds chip_lock and is not the timer. A timer that is set too early does no harm. */
static void set_timer_locked(struct chip_card *card)
{
	u64 at = timer_due_locked(card);

	if (at >= card->timer_ns)
		return;
	card->timer_ns = at;
	hrtimer_start(&card->timer, ns_to_ktime(at), HRTIMER_MODE_ABS);
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct chip_card *card = container_of(timer, struct chip_card, timer);
	enum hrtimer_restart again = HRTIMER_NORESTART;
	unsigned long flags;

	spin_lock_irqsave(&card->chip_lock, flags);
	/* Somebody may have set it again while this was waiting for the lock. */
	if (card->chip && !hrtimer_is_queued(timer)) {
		chip_advance(card->chip, advance_locked(card));
		card->timer_ns = timer_due_locked(card);
		if (card->timer_ns != U64_MAX) {
			hrtimer_set_expires(timer, ns_to_ktime(card->timer_ns));
			again = HRTIMER_RESTART;
		}
	}
	spin_unlock_irqrestore(&card->chip_lock, flags);
	return again;
}

static u32 read32(struct sim_card *base, u32 offset)
{
	struct chip_card *card = to_chip_card(base);
	unsigned long flags;
	u32 value = ~0u;

	spin_lock_irqsave(&card->chip_lock, flags);
	if (card->chip) {
		value = chip_read32(card->chip, advance_locked(card), offset);
		set_timer_locked(card);
	}
	spin_unlock_irqrestore(&card->chip_lock, flags);
	return value;
}

/* The same register any number of times, at one instant: a model that is behind is given its time
 * once. */
static void write_all(struct chip_card *card, u32 offset, const u32 *values, u32 count)
{
	unsigned long flags;
	u64 now_ns;
	u32 i;

	spin_lock_irqsave(&card->chip_lock, flags);
	if (card->chip) {
		now_ns = advance_locked(card);
		for (i = 0; i < count; i++)
			chip_write32(card->chip, now_ns, offset, values[i]);
		set_timer_locked(card);
	}
	spin_unlock_irqrestore(&card->chip_lock, flags);
}

static void write32(struct sim_card *card, u32 offset, u32 value)
{
	write_all(to_chip_card(card), offset, &value, 1);
}

static void ring(struct sim_card *card, const u32 *tokens, u32 count)
{
	write_all(to_chip_card(card), DOORBELL, tokens, count);
}

static u64 time_ns(struct sim_card *base)
{
	struct chip_card *card = to_chip_card(base);
	unsigned long flags;
	u64 now_ns;

	spin_lock_irqsave(&card->chip_lock, flags);
	now_ns = card->chip ? advance_locked(card) : card->now_ns;
	spin_unlock_irqrestore(&card->chip_lock, flags);
	return round_down(now_ns + card->ptimer_offset_ns, PTIMER_STEP_NS);
}

/* The model brought up to now, under chip_lock; NULL when it is gone. */
static struct chip *lock_chip(struct chip_card *card, unsigned long *flags)
	__acquires(&card->chip_lock)
{
	spin_lock_irqsave(&card->chip_lock, *flags);
	if (card->chip)
		chip_advance(card->chip, advance_locked(card));
	return card->chip;
}

static void unlock_chip(struct chip_card *card, unsigned long flags)
	__releases(&card->chip_lock)
{
	if (card->chip)
		set_timer_locked(card);
	spin_unlock_irqrestore(&card->chip_lock, flags);
}

static void sync(struct sim_card *base)
{
	struct chip_card *card = to_chip_card(base);
	unsigned long flags;

	lock_chip(card, &flags);
	unlock_chip(card, flags);
}

static void record(struct sim_card *base, struct sim_record *out)
{
	struct chip_card *card = to_chip_card(base);
	unsigned long flags;

	memset(out, 0, sizeof(*out));
	if (lock_chip(card, &flags))
		chip_engine_totals(card->chip, base->gr_engine, &out->totals);
	out->time_ns = card->now_ns;
	out->error = card->protocol_error;
	unlock_chip(card, flags);
}

static u64 tsg_run_ns(struct sim_card *base, u16 id)
{
	struct chip_card *card = to_chip_card(base);
	unsigned long flags;
	u64 run_ns = 0;

	if (lock_chip(card, &flags))
		run_ns = chip_tsg_run_ns(card->chip, id);
	unlock_chip(card, flags);
	return run_ns;
}

static void tsg_forget(struct sim_card *base, u16 id)
{
	struct chip_card *card = to_chip_card(base);
	unsigned long flags;

	if (lock_chip(card, &flags))
		chip_tsg_forget(card->chip, id);
	unlock_chip(card, flags);
}

void chip_card_quiesce(struct chip_card *card)
{
	spin_lock_irq(&card->chip_lock);
	spin_unlock_irq(&card->chip_lock);
}

static void protocol_error(void *ctx, const char *what)
{
	struct chip_card *card = ctx;

	card->protocol_error = what;
}

static void switched(void *ctx, u32 engine, u16 tsg_id, u64 time_ns, bool on)
{
	struct chip_card *card = ctx;
	struct sim_card *base = &card->card;

	if (engine == base->gr_engine && base->switched)
		base->switched(base, tsg_id, time_ns + card->ptimer_offset_ns, on);
}

static const struct chip_host_ops host_ops = {
	.read = sim_bus_read,
	.write = sim_bus_write,
	.va_read = sim_va_read,
	.va_write = sim_va_write,
	.switched = switched,
	.protocol_error = protocol_error,
};

static void stop(struct sim_card *base)
{
	struct chip_card *card = to_chip_card(base);
	struct chip *chip;

	spin_lock_irq(&card->chip_lock);
	chip = card->chip;
	card->chip = NULL;
	spin_unlock_irq(&card->chip_lock);
	hrtimer_cancel(&card->timer);
	if (chip)
		chip_destroy(chip);
}

static void destroy(struct sim_card *base)
{
	struct chip_card *card = to_chip_card(base);

	sim_bus_fini(card);
	kfree(card);
}

static const struct sim_card_ops chip_card_ops = {
	.read32 = read32,
	.write32 = write32,
	.ring = ring,
	.time_ns = time_ns,
	.sync = sync,
	.mem_alloc = sim_bus_mem_alloc,
	.mem_free = sim_bus_mem_free,
	.page_map = sim_bus_page_map,
	.page_unmap = sim_bus_page_unmap,
	.space_create = sim_bus_space_create,
	.space_destroy = sim_bus_space_destroy,
	.space_map = sim_bus_space_map,
	.space_unmap = sim_bus_space_unmap,
	.record = record,
	.tsg_run_ns = tsg_run_ns,
	.tsg_forget = tsg_forget,
	.stop = stop,
	.destroy = destroy,
};

struct sim_card *chip_card_create(u32 index)
{
	struct chip_card *card = kzalloc(sizeof(*card), GFP_KERNEL);
	struct chip_config config;
	int err;

	if (!card)
		return ERR_PTR(-ENOMEM);
	card->card.ops = &chip_card_ops;
	card->card.index = index;
	card->card.tells_switches = true;
	spin_lock_init(&card->chip_lock);
	card->timer_ns = U64_MAX;
	hrtimer_init(&card->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	card->timer.function = timer_fired;
	err = sim_bus_init(card);
	if (err) {
		kfree(card);
		return ERR_PTR(err);
	}
	chip_default_config(&config);
	card->ptimer_offset_ns = round_down(ktime_get_real_ns() - ktime_get_ns(), PTIMER_STEP_NS);
	config.ptimer_offset_ns = card->ptimer_offset_ns;
	card->chip = chip_create(&config, &host_ops, card);
	err = card->chip ? sim_card_find_graphics(&card->card) : -ENOMEM;
	if (err) {
		stop(&card->card);
		destroy(&card->card);
		return ERR_PTR(err);
	}
	return &card->card;
}
