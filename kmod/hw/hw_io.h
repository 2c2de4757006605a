/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hw_io.h - the one way in which chip code reaches the world: 32-bit registers, a clock, a wait,
 * and memory that the card reads.
 *
 * Three implementations: MMIO (io_pci.c) or the simulated card in the kernel (io.c), the chip model
 * under virtual time, and a recorder that checks sequences (both in tests/). Chip code never sees
 * which one it has.
 */
#ifndef QGPU_HW_IO_H
#define QGPU_HW_IO_H

#include "qgpu_env.h"

/* Where the card finds memory; values are those of the TARGET fields (hardware page 2.1, 3.1). */
enum hw_target {
	HW_TARGET_VIDMEM = 0,
	HW_TARGET_SYSMEM_COHERENT = 2,
	HW_TARGET_SYSMEM_NONCOHERENT = 3,
};

/**
 * struct hw_mem - memory that both the CPU and the card can read
 * @cpu: the CPU's view; plain stores, then hw_io_ops.flush
 * @bus_addr: the address that goes into a register; 4 KiB aligned
 * @bytes: size
 * @target: what the address is an address of
 */
struct hw_mem {
	void *cpu;
	u64 bus_addr;
	u32 bytes;
	enum hw_target target;
};

/**
 * struct hw_io_ops - registers, time and waiting
 * @read32: one 32-bit register read. Never sleeps. All ones = the card is gone, 0xBADxxxxx = the
 *          card refused; the caller tells these from data (hw_io_bad()).
 * @write32: one 32-bit register write. Never sleeps.
 * @now_ns: the host's monotonic clock, the one all deadlines and plans are in. Never sleeps.
 * @wait_ns: let at least this much host time pass; may sleep. In tests this moves virtual time.
 * @flush: make earlier stores to @mem visible to the card before the next register write.
 */
struct hw_io_ops {
	u32 (*read32)(void *ctx, u32 offset);
	void (*write32)(void *ctx, u32 offset, u32 value);
	u64 (*now_ns)(void *ctx);
	void (*wait_ns)(void *ctx, u64 ns);
	void (*flush)(void *ctx, const struct hw_mem *mem);
};

struct hw_io {
	const struct hw_io_ops *ops;
	void *ctx;
};

static inline u32 hw_read(const struct hw_io *io, u32 offset)
{
	return io->ops->read32(io->ctx, offset);
}

static inline void hw_write(const struct hw_io *io, u32 offset, u32 value)
{
	io->ops->write32(io->ctx, offset, value);
}

static inline u64 hw_now_ns(const struct hw_io *io)
{
	return io->ops->now_ns(io->ctx);
}

static inline void hw_wait_ns(const struct hw_io *io, u64 ns)
{
	io->ops->wait_ns(io->ctx, ns);
}

/* A value that is not data: card off the bus (all ones) or PRI error 0xBADxxxxx (page 7.4). */
static inline bool hw_io_bad(u32 value)
{
	return value == 0xffffffffu || (value & 0xfff00000u) == 0xbad00000u;
}

#endif
