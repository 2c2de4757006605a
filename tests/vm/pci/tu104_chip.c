// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tu104_chip.c - the chip model with the guest's memory behind it, for tu104.c.
 */
#include "tu104_chip.h"

#include "chip.h"

static tu104_dma dma;
static void *dma_ctx;

static int read_memory(void *ctx, u32 target, u64 addr, void *buf, u32 bytes)
{
	return target ? dma(dma_ctx, addr, buf, bytes, false) : -EFAULT;
}

static int write_memory(void *ctx, u32 target, u64 addr, const void *buf, u32 bytes)
{
	return target ? dma(dma_ctx, addr, (void *)buf, bytes, true) : -EFAULT;
}

static int no_va_read(void *ctx, u64 pdb, u64 va, void *buf, u32 bytes)
{
	return -EFAULT;
}

static int no_va_write(void *ctx, u64 pdb, u64 va, const void *buf, u32 bytes)
{
	return -EFAULT;
}

struct chip *tu104_chip_create(tu104_dma memory, void *ctx)
{
	static const struct chip_host_ops ops = {
		.read = read_memory,
		.write = write_memory,
		.va_read = no_va_read,
		.va_write = no_va_write,
	};
	struct chip_config config;

	dma = memory;
	dma_ctx = ctx;
	chip_default_config(&config);
	return chip_create(&config, &ops, NULL);
}

void tu104_chip_destroy(struct chip *chip)
{
	chip_destroy(chip);
}

uint32_t tu104_chip_read(struct chip *chip, uint64_t now_ns, uint32_t offset)
{
	return chip_read32(chip, now_ns, offset);
}

void tu104_chip_write(struct chip *chip, uint64_t now_ns, uint32_t offset, uint32_t value)
{
	chip_write32(chip, now_ns, offset, value);
}
