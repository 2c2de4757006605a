// SPDX-License-Identifier: GPL-2.0
/*
 * card.c - hosts the chip model in the kernel: clock, timer, registers. The model is lazy: it is
 * brought up to date by whoever touches it, and by one timer set to the next thing a tenant can
 * see. Knows nothing of the driver front.
 */
#include "card.h"

#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>

#include "bus.h"

/* What a tenant can see (a completion, USERD) is late by at most this and the timer's own error. */
#define BATCH_NS 15000u

#define PTIMER_STEP_NS 32u

/* How much of the card's time is modelled at a stretch when it is behind, and how much of ours may
 * be spent before the lock is let go; after that the timer leaves the CPU alone for as long. */
#define PIECE_NS 50000u
#define BUDGET_NS 200000u

#define PTOP_DEVICE_INFO(i) (0x22700u + 4u * (i))
#define PTOP_SLOTS 64u
#define PTOP_KIND_ENUM 2u
#define PTOP_KIND_TYPE 3u
#define PTOP_TYPE_GRAPHICS 0u

/*
 * Bring the model up to now. Caller holds chip_lock. A tenant can queue more and shorter kernels
 * than this CPU can follow: then the card's clock falls behind, a piece a call, instead of the
 * CPU being gone until it has caught up. Return: the card's time.
 */
static u64 advance_locked(struct sim_card *card)
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
static u64 timer_due_locked(const struct sim_card *card)
{
	u64 next = chip_next_event_ns(card->chip);

	if (next == U64_MAX)
		return U64_MAX;
	return max(max(next, card->now_ns) + BATCH_NS, card->resume_ns);
}

/* Caller holds chip_lock and is not the timer. A timer that is set too early does no harm. */
static void set_timer_locked(struct sim_card *card)
{
	u64 at = timer_due_locked(card);

	if (at >= card->timer_ns)
		return;
	card->timer_ns = at;
	hrtimer_start(&card->timer, ns_to_ktime(at), HRTIMER_MODE_ABS);
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct sim_card *card = container_of(timer, struct sim_card, timer);
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

u32 sim_card_read32(struct sim_card *card, u32 offset)
{
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

void sim_card_write32(struct sim_card *card, u32 offset, u32 value)
{
	unsigned long flags;

	spin_lock_irqsave(&card->chip_lock, flags);
	if (card->chip) {
		chip_write32(card->chip, advance_locked(card), offset, value);
		set_timer_locked(card);
	}
	spin_unlock_irqrestore(&card->chip_lock, flags);
}

void sim_card_with_chip(struct sim_card *card, void (*fn)(struct chip *chip, void *arg), void *arg)
{
	unsigned long flags;

	spin_lock_irqsave(&card->chip_lock, flags);
	if (card->chip) {
		chip_advance(card->chip, advance_locked(card));
		fn(card->chip, arg);
		set_timer_locked(card);
	}
	spin_unlock_irqrestore(&card->chip_lock, flags);
}

u64 sim_card_time_ns(struct sim_card *card)
{
	unsigned long flags;
	u64 now_ns;

	spin_lock_irqsave(&card->chip_lock, flags);
	now_ns = card->chip ? advance_locked(card) : card->now_ns;
	spin_unlock_irqrestore(&card->chip_lock, flags);
	return round_down(now_ns + card->ptimer_offset_ns, PTIMER_STEP_NS);
}

void sim_card_quiesce(struct sim_card *card)
{
	spin_lock_irq(&card->chip_lock);
	spin_unlock_irq(&card->chip_lock);
}

static int find_graphics(struct sim_card *card)
{
	u32 engine = 0, runlist = 0, i;
	bool type_found = false, enum_found = false;

	for (i = 0; i < PTOP_SLOTS; i++) {
		u32 word = sim_card_read32(card, PTOP_DEVICE_INFO(i));

		switch (word & 3u) {
		case PTOP_KIND_ENUM:
			engine = (word >> 26) & 0xfu;
			runlist = (word >> 21) & 0xfu;
			enum_found = (word & BIT(5)) && (word & BIT(4));
			break;
		case PTOP_KIND_TYPE:
			type_found = ((word >> 2) & 0x1fffffffu) == PTOP_TYPE_GRAPHICS;
			break;
		}
		if (word & BIT(31))
			continue; /* the next word belongs to the same device */
		if (type_found && enum_found) {
			card->gr_engine = engine;
			card->gr_runlist = runlist;
			return 0;
		}
		type_found = false;
		enum_found = false;
	}
	return -ENODEV;
}

static void protocol_error(void *ctx, const char *what)
{
	struct sim_card *card = ctx;

	card->protocol_error = what;
}

static void switched(void *ctx, u32 engine, u16 tsg_id, u64 time_ns, bool on)
{
	struct sim_card *card = ctx;

	if (engine == card->gr_engine && card->switched)
		card->switched(card, tsg_id, time_ns + card->ptimer_offset_ns, on);
}

static const struct chip_host_ops host_ops = {
	.read = sim_bus_read,
	.write = sim_bus_write,
	.va_read = sim_va_read,
	.va_write = sim_va_write,
	.switched = switched,
	.protocol_error = protocol_error,
};

int sim_card_init(struct sim_card *card, u32 index)
{
	struct chip_config config;
	int err;

	card->index = index;
	spin_lock_init(&card->chip_lock);
	card->timer_ns = U64_MAX;
	hrtimer_init(&card->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	card->timer.function = timer_fired;
	err = sim_bus_init(card);
	if (err)
		return err;
	chip_default_config(&config);
	card->ptimer_offset_ns = round_down(ktime_get_real_ns() - ktime_get_ns(), PTIMER_STEP_NS);
	config.ptimer_offset_ns = card->ptimer_offset_ns;
	card->chip = chip_create(&config, &host_ops, card);
	err = card->chip ? find_graphics(card) : -ENOMEM;
	if (err) {
		sim_card_stop(card);
		sim_card_fini(card);
	}
	return err;
}

void sim_card_stop(struct sim_card *card)
{
	struct chip *chip;

	spin_lock_irq(&card->chip_lock);
	chip = card->chip;
	card->chip = NULL;
	spin_unlock_irq(&card->chip_lock);
	hrtimer_cancel(&card->timer);
	if (chip)
		chip_destroy(chip);
}

void sim_card_fini(struct sim_card *card)
{
	sim_bus_fini(card);
}
