// SPDX-License-Identifier: GPL-2.0
/*
 * context.c - the context image of a graphics context, if its instance block names one: how it may
 * be cut, and the counts of saves and restores by which a driver can tell how it was (hardware
 * page 9.1).
 *
 * The image is read when the first channel of a context that was just loaded comes to the PBDMA.
 * So a word that is written while the context is on the engine acts at its next load.
 */
#include "chip_state.h"

static void count(struct chip *chip, const struct chip_context *context, u32 offset)
{
	u32 value;

	if (chip->ops.va_read(chip->ctx, context->pdb, context->va + offset, &value, sizeof(value)))
		return;
	value++;
	chip->ops.va_write(chip->ctx, context->pdb, context->va + offset, &value, sizeof(value));
}

static int read_word(struct chip *chip, const struct chip_context *context, u32 offset, u32 *value)
{
	return chip->ops.va_read(chip->ctx, context->pdb, context->va + offset, value,
				 sizeof(*value));
}

/* @words: low and high of the context pointer. */
void chip_context_read(struct chip *chip, struct chip_unit *unit, u64 pdb, const u32 *words)
{
	struct chip_context *context = &unit->context;
	u32 magic, preemption;

	if (context->generation == unit->generation)
		return;
	context->generation = unit->generation;
	context->va = 0;
	if (unit->runlist || !(words[0] & CHIP_RAMIN_CONTEXT_VIRTUAL))
		return;
	context->pdb = pdb;
	context->va = (words[0] & 0xfffff000u) | (u64)(words[1] & 0xff) << 32;
	if (read_word(chip, context, CHIP_CTX_MAGIC, &magic) || magic != CHIP_CTX_MAGIC_VALUE ||
	    read_word(chip, context, CHIP_CTX_COMPUTE_PREEMPTION, &preemption)) {
		context->va = 0;
		return;
	}
	/* a type that does not exist cuts as badly as the worst that does */
	preemption &= CHIP_CTX_PREEMPTION_MASK;
	context->preemption = preemption <= CHIP_CILP ? (u8)preemption : CHIP_WFI;
	count(chip, context, CHIP_CTX_RESTORES);
}

static bool has_image(const struct chip_unit *unit)
{
	return unit->context.va && unit->context.generation == unit->generation;
}

/* How work that can be cut by @preemption is cut in the context on the engine. */
u8 chip_context_limit(const struct chip_unit *unit, u8 preemption)
{
	if (preemption == CHIP_COPY || !has_image(unit))
		return preemption;
	return min(preemption, unit->context.preemption);
}

void chip_context_saved(struct chip *chip, const struct chip_unit *unit)
{
	static const u32 counts[] = {
		[CHIP_WFI] = CHIP_CTX_WFI_SAVES,
		[CHIP_CTA] = CHIP_CTX_CTA_SAVES,
		[CHIP_CILP] = CHIP_CTX_CILP_SAVES,
	};

	if (!has_image(unit))
		return;
	count(chip, &unit->context, CHIP_CTX_SAVES);
	count(chip, &unit->context, counts[unit->context.preemption]);
}
