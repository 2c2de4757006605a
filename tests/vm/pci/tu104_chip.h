/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tu104_chip.h - the chip model as the device sees it: QEMU's headers and the model's environment have
 * names in common, so neither file includes the other's.
 */
#ifndef QGPU_TESTS_VM_PCI_TU104_CHIP_H
#define QGPU_TESTS_VM_PCI_TU104_CHIP_H

#include <stdbool.h>
#include <stdint.h>

struct tu104_chip;

/* Memory of the guest, by bus address. Return: 0, -EFAULT. */
typedef int (*tu104_dma)(void *ctx, uint64_t addr, void *buf, uint32_t bytes, bool to_guest);

/* Return: NULL when out of memory. */
struct tu104_chip *tu104_chip_create(tu104_dma dma, void *ctx);
void tu104_chip_destroy(struct tu104_chip *chip);
/* As after power-on. */
void tu104_chip_reset(struct tu104_chip *chip, uint64_t now_ns);

/* BAR 0. */
uint32_t tu104_chip_read(struct tu104_chip *chip, uint64_t now_ns, uint32_t offset);
void tu104_chip_write(struct tu104_chip *chip, uint64_t now_ns, uint32_t offset, uint32_t value);

/* The judge's BAR (kmod/sim/judge.h). */
uint32_t tu104_judge_read(struct tu104_chip *chip, uint64_t now_ns, uint32_t offset);
void tu104_judge_write(struct tu104_chip *chip, uint64_t now_ns, uint32_t offset, uint32_t value);

/* How the graphics runlist's slot and the channels are left, as a line to stderr. */
void tu104_chip_tell(struct tu104_chip *chip, uint64_t now_ns);

/* Bring it to @now_ns. Return: when to do so next, or UINT64_MAX. */
uint64_t tu104_chip_advance(struct tu104_chip *chip, uint64_t now_ns);
uint64_t tu104_chip_next_ns(const struct tu104_chip *chip);

#endif
