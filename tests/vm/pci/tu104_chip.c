// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tu104_chip.c - the chip model with the guest's memory behind it, for tu104.c; and the judge, which
 * knows what the chip did (kmod/sim/judge.h).
 */
#include "tu104_chip.h"

#include <stdio.h>

#include "chip.h"
#include "chip_fault.h"
#include "sim/judge.h"
#include "tu104_mmu.h"

#define GRAPHICS_ENGINE 0
#define USERMODE 0xbb0000u
#define USERMODE_MANUAL 0x810000u
#define USERMODE_BYTES 0x10000u
/* What a program sees is late by at most so much. */
#define BATCH_NS 15000u

struct tu104_chip {
	struct chip *chip;
	struct tu104_memory memory;
	uint64_t now_ns, writes;
	uint32_t judged_tsg, kept_high, boot0;
	uint32_t presence, firmware;
};

/* ---- memory ---- */

static int read_memory(void *ctx, u32 target, u64 addr, void *buf, u32 bytes)
{
	const struct tu104_chip *card = ctx;

	return target ? card->memory.dma(card->memory.ctx, addr, buf, bytes, false) : -EFAULT;
}

static int write_memory(void *ctx, u32 target, u64 addr, const void *buf, u32 bytes)
{
	const struct tu104_chip *card = ctx;

	return target ? card->memory.dma(card->memory.ctx, addr, (void *)buf, bytes, true) : -EFAULT;
}

static int read_va(void *ctx, u64 pdb, u64 va, void *buf, u32 bytes)
{
	return tu104_mmu_read(&((struct tu104_chip *)ctx)->memory, pdb, va, buf, bytes);
}

static int write_va(void *ctx, u64 pdb, u64 va, const void *buf, u32 bytes)
{
	return tu104_mmu_write(&((struct tu104_chip *)ctx)->memory, pdb, va, buf, bytes);
}

static void protocol_error(void *ctx, const char *what)
{
	fprintf(stderr, "tu104: %s\n", what);
}

/* ---- the device ---- */

struct tu104_chip *tu104_chip_create(tu104_dma dma, void *ctx)
{
	static const struct chip_host_ops ops = {
		.read = read_memory,
		.write = write_memory,
		.va_read = read_va,
		.va_write = write_va,
		.protocol_error = protocol_error,
	};
	struct tu104_chip *card = env_zalloc(sizeof(*card));
	struct chip_config config;

	if (!card)
		return NULL;
	card->memory = (struct tu104_memory){ dma, ctx };
	chip_default_config(&config);
	card->boot0 = config.boot0;
	card->chip = chip_create(&config, &ops, card);
	if (!card->chip) {
		env_free(card);
		return NULL;
	}
	return card;
}

void tu104_chip_destroy(struct tu104_chip *card)
{
	chip_destroy(card->chip);
	env_free(card);
}

static void set_presence(struct tu104_chip *card, uint64_t now_ns, uint32_t presence)
{
	card->presence = presence;
	chip_presence_set(card->chip, now_ns, (enum chip_presence)presence);
}

void tu104_chip_reset(struct tu104_chip *card, uint64_t now_ns)
{
	set_presence(card, now_ns, CHIP_POWERED_OFF);
	set_presence(card, now_ns, CHIP_PRESENT);
}

uint32_t tu104_chip_read(struct tu104_chip *card, uint64_t now_ns, uint32_t offset)
{
	card->now_ns = now_ns;
	return chip_read32(card->chip, now_ns, offset);
}

static bool is_usermode(uint32_t offset)
{
	return offset - USERMODE < USERMODE_BYTES || offset - USERMODE_MANUAL < USERMODE_BYTES;
}

void tu104_chip_write(struct tu104_chip *card, uint64_t now_ns, uint32_t offset, uint32_t value)
{
	card->now_ns = now_ns;
	card->writes += !is_usermode(offset);
	chip_write32(card->chip, now_ns, offset, value);
}

uint64_t tu104_chip_advance(struct tu104_chip *card, uint64_t now_ns)
{
	card->now_ns = now_ns;
	chip_advance(card->chip, now_ns);
	return tu104_chip_next_ns(card);
}

uint64_t tu104_chip_next_ns(const struct tu104_chip *card)
{
	uint64_t next = chip_next_event_ns(card->chip);

	if (next == UINT64_MAX)
		return next;
	return (next > card->now_ns ? next : card->now_ns) + BATCH_NS;
}

void tu104_chip_tell(struct tu104_chip *card, uint64_t now_ns)
{
	const uint32_t slot = 0x2b00, sched_disable = 0x2630, channels = 0x800004;
	uint32_t enabled = 0, i;

	for (i = 0; i < CHIP_CHANNELS; i++)
		enabled += tu104_chip_read(card, now_ns, channels + 8 * i) & 1;
	fprintf(stderr, "tu104: left with base %02x%08x submit %08x sched_disable %08x enabled %u\n",
		tu104_chip_read(card, now_ns, slot + 4), tu104_chip_read(card, now_ns, slot),
		tu104_chip_read(card, now_ns, slot + 8),
		tu104_chip_read(card, now_ns, sched_disable), enabled);
}

/* ---- the judge ---- */

static uint64_t judge_number(struct tu104_chip *card, enum judge_number number)
{
	struct chip_totals totals;

	chip_engine_totals(card->chip, GRAPHICS_ENGINE, &totals);
	switch (number) {
	case JUDGE_TIME_NS:
		return card->now_ns;
	case JUDGE_RUN_NS:
		return totals.run_ns;
	case JUDGE_SWITCH_NS:
		return totals.switch_ns;
	case JUDGE_IDLE_NS:
		return totals.idle_ns;
	case JUDGE_SWITCHES:
		return totals.switches;
	case JUDGE_KERNELS:
		return totals.kernels;
	case JUDGE_SUBMITS:
		return totals.submits;
	case JUDGE_PREEMPTS:
		return totals.preempts;
	case JUDGE_DOORBELLS:
		return totals.doorbells;
	case JUDGE_PROTOCOL_ERRORS:
		return totals.protocol_errors;
	case JUDGE_TSG_RUN_NS:
		return chip_tsg_run_ns(card->chip, (u16)card->judged_tsg);
	case JUDGE_WRITES:
		return card->writes;
	case JUDGE_NUMBER_COUNT:
		break;
	}
	return 0;
}

static uint32_t judge_word(struct tu104_chip *card, uint32_t at)
{
	uint64_t number;

	if (at % 8)
		return card->kept_high;
	number = judge_number(card, (enum judge_number)(at / 8));
	card->kept_high = (uint32_t)(number >> 32);
	return (uint32_t)number;
}

uint32_t tu104_judge_read(struct tu104_chip *card, uint64_t now_ns, uint32_t offset)
{
	tu104_chip_advance(card, now_ns);
	switch (offset) {
	case JUDGE_MAGIC:
		return JUDGE_MAGIC_VALUE;
	case JUDGE_TSG:
		return card->judged_tsg;
	case JUDGE_PRESENCE:
		return card->presence;
	case JUDGE_BOOT_0:
		return card->boot0;
	case JUDGE_FIRMWARE:
		return card->firmware;
	default:
		break;
	}
	if (offset >= JUDGE_NUMBERS && offset < JUDGE_NUMBER(JUDGE_NUMBER_COUNT))
		return judge_word(card, offset - JUDGE_NUMBERS);
	return 0;
}

void tu104_judge_write(struct tu104_chip *card, uint64_t now_ns, uint32_t offset, uint32_t value)
{
	tu104_chip_advance(card, now_ns);
	switch (offset) {
	case JUDGE_TSG:
		card->judged_tsg = value;
		break;
	case JUDGE_FORGET:
		chip_tsg_forget(card->chip, (u16)value);
		break;
	case JUDGE_PRESENCE:
		if (value <= CHIP_POWERED_OFF)
			set_presence(card, now_ns, value);
		break;
	case JUDGE_BOOT_0:
		card->boot0 = value;
		break;
	case JUDGE_FIRMWARE:
		card->firmware = value & 1;
		break;
	default:
		break;
	}
	chip_identity_set(card->chip, card->boot0, card->firmware);
}
