/* SPDX-License-Identifier: GPL-2.0 */
/*
 * io.h - how a card's registers and memory are reached. There are two ways:
 *
 *   io.c        through the simulator's ops, for a card that is on no bus
 *   io_pci.c    MMIO and DMA of our own, for a card on the PCI bus
 *
 * Which one it is, nobody but card.c knows; chip code sees hw_io_ops (hw/hw_io.h).
 */
#ifndef QGPU_IO_H
#define QGPU_IO_H

#include "hw/hw_io.h"

struct device;
struct qgpu_sim_device;

/**
 * struct qgpu_io - a card as it is reached
 * @hw: for chip code
 * @kind: set by qgpu_io_open()
 * @sim: the simulated driver's device, which tells of objects whatever the registers are
 * @bar: io_pci.c's own
 */
struct qgpu_io {
	struct hw_io hw;
	const struct qgpu_io_kind *kind;
	struct qgpu_sim_device *sim;
	struct qgpu_bar *bar;
};

/**
 * struct qgpu_io_kind - one of the two
 * @open: 0; -errno with the reason in the log
 * @close: all memory was given back
 * @mem_map: the page of memory at @addr as the card finds it, for reading; NULL: no way to that. Its
 *           result may be ERR_PTR(): -EOPNOTSUPP: it is not in this machine's memory; -ENOMEM. To be
 *           unmapped
 * @mem_alloc: zeroed memory that the card can read, 4 KiB aligned; 0, -ENOMEM, -ENOSPC; may sleep
 */
struct qgpu_io_kind {
	int (*open)(struct qgpu_io *io);
	void (*close)(struct qgpu_io *io);
	const void *(*mem_map)(struct qgpu_io *io, enum hw_target target, u64 addr);
	void (*mem_unmap)(struct qgpu_io *io, const void *page);
	int (*mem_alloc)(struct qgpu_io *io, u32 bytes, struct hw_mem *out);
	void (*mem_free)(struct qgpu_io *io, struct hw_mem *mem);
};

extern const struct qgpu_io_kind qgpu_io_sim, qgpu_io_pci;

/**
 * qgpu_io_open() - reach the card of @sim
 * Return: 0; -ENODEV: it is left alone, for a reason that the log tells; -ENOMEM.
 */
int qgpu_io_open(struct qgpu_io *io, struct qgpu_sim_device *sim);
void qgpu_io_close(struct qgpu_io *io);

/* The host's part of hw_io_ops, the same for both. */
u64 qgpu_io_now_ns(void *ctx);
void qgpu_io_wait_ns(void *ctx, u64 ns);
void qgpu_io_flush(void *ctx, const struct hw_mem *mem);

#endif
