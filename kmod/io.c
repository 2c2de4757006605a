// SPDX-License-Identifier: GPL-2.0
/*
 * io.c - which way a card is reached, the host's clock, and the way through the simulator's ops. A
 * card that has a PCI device is reached by io_pci.c alone: the simulator's registers of it are not
 * used.
 */
#include "io.h"

#include <linux/delay.h>
#include <linux/timekeeping.h>

#include "sim_device.h"

u64 qgpu_io_now_ns(void *ctx)
{
	return ktime_get_ns();
}

void qgpu_io_wait_ns(void *ctx, u64 ns)
{
	u64 us = DIV_ROUND_UP_ULL(ns, NSEC_PER_USEC);

	if (us < 10)
		udelay(us);
	else
		usleep_range(us, us + us / 8 + 1);
}

void qgpu_io_flush(void *ctx, const struct hw_mem *mem)
{
	wmb(); /* entries before the register write that makes the card read them */
}

static u32 read32(void *ctx, u32 offset)
{
	struct qgpu_io *io = ctx;

	return io->sim->ops->read32(io->sim, offset);
}

static void write32(void *ctx, u32 offset, u32 value)
{
	struct qgpu_io *io = ctx;

	io->sim->ops->write32(io->sim, offset, value);
}

static const struct hw_io_ops sim_ops = {
	.read32 = read32,
	.write32 = write32,
	.now_ns = qgpu_io_now_ns,
	.wait_ns = qgpu_io_wait_ns,
	.flush = qgpu_io_flush,
};

static int open_sim(struct qgpu_io *io)
{
	io->hw = (struct hw_io){ &sim_ops, io };
	return 0;
}

static void close_sim(struct qgpu_io *io)
{
}

static int mem_alloc(struct qgpu_io *io, u32 bytes, struct hw_mem *out)
{
	return io->sim->ops->mem_alloc(io->sim, bytes, out);
}

static void mem_free(struct qgpu_io *io, struct hw_mem *mem)
{
	io->sim->ops->mem_free(io->sim, mem);
}

const struct qgpu_io_kind qgpu_io_sim = {
	.open = open_sim,
	.close = close_sim,
	.mem_alloc = mem_alloc,
	.mem_free = mem_free,
};

int qgpu_io_open(struct qgpu_io *io, struct qgpu_sim_device *sim)
{
	io->sim = sim;
	io->kind = sim->pdev ? &qgpu_io_pci : &qgpu_io_sim;
	return io->kind->open(io);
}

void qgpu_io_close(struct qgpu_io *io)
{
	io->kind->close(io);
}
