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

#define PTOP_DEVICE_INFO(i) (0x22700u + 4u * (i))
#define PTOP_SLOTS 64u
#define PTOP_KIND_ENUM 2u
#define PTOP_KIND_TYPE 3u
#define PTOP_TYPE_GRAPHICS 0u

/* Caller holds chip_lock. The clock given to the model never goes back. */
static u64 now_locked(struct sim_card *card)
{
	card->now_ns = max(card->now_ns, (u64)ktime_get_ns());
	return card->now_ns;
}

/* Caller holds chip_lock and is not the timer. */
static void set_timer_locked(struct sim_card *card)
{
	u64 next = chip_next_event_ns(card->chip);
	u64 at;

	if (next == U64_MAX)
		return; /* a timer that is set does no harm */
	at = max(next, card->now_ns) + BATCH_NS;
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
	u64 next;

	spin_lock_irqsave(&card->chip_lock, flags);
	/* Somebody may have set it again while this was waiting for the lock. */
	if (card->chip && !hrtimer_is_queued(timer)) {
		chip_advance(card->chip, now_locked(card));
		next = chip_next_event_ns(card->chip);
		card->timer_ns = U64_MAX;
		if (next != U64_MAX) {
			card->timer_ns = max(next, card->now_ns) + BATCH_NS;
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
		value = chip_read32(card->chip, now_locked(card), offset);
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
		chip_write32(card->chip, now_locked(card), offset, value);
		set_timer_locked(card);
	}
	spin_unlock_irqrestore(&card->chip_lock, flags);
}

void sim_card_with_chip(struct sim_card *card, void (*fn)(struct chip *chip, void *arg), void *arg)
{
	unsigned long flags;

	spin_lock_irqsave(&card->chip_lock, flags);
	if (card->chip) {
		chip_advance(card->chip, now_locked(card));
		fn(card->chip, arg);
		set_timer_locked(card);
	}
	spin_unlock_irqrestore(&card->chip_lock, flags);
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

static const struct chip_host_ops host_ops = {
	.read = sim_bus_read,
	.write = sim_bus_write,
	.va_read = sim_va_read,
	.va_write = sim_va_write,
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
	config.ptimer_offset_ns = ktime_get_real_ns() - ktime_get_ns();
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
