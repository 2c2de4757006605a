// SPDX-License-Identifier: GPL-2.0
/*
 * pbdma.c - a channel on the PBDMA: its RAMFC, its USERD and its GPFIFO.
 *
 * Everything a tenant can write is read here: GPFIFO entries, kernel descriptors, GP_PUT. What
 * makes no sense or cannot be read takes cfg.lat.entry_ns like any entry and is otherwise
 * ignored, so the time a ring can occupy the model is bounded by the virtual time it takes. With
 * cfg.tenant_errors it faults instead.
 */
#include "chip_state.h"

#define RAMFC_SIGNATURE 0xfaceu

/* RAMFC words 2 ... 5 */
struct ramfc_userd {
	u32 userd_lo, userd_hi, signature, gp_get;
};

static int inst_read(struct chip *chip, const struct chip_channel *channel, u32 word, void *buf,
		     u32 bytes)
{
	const u32 target = (channel->inst & CHIP_INST_TARGET) >> CHIP_INST_TARGET_SHIFT;
	const u64 address = (u64)(channel->inst & CHIP_INST_PTR) << 12;

	return chip->ops.read(chip->ctx, target, address + 4 * word, buf, bytes);
}

static void inst_write(struct chip *chip, const struct chip_channel *channel, u32 word, u32 value)
{
	const u32 target = (channel->inst & CHIP_INST_TARGET) >> CHIP_INST_TARGET_SHIFT;
	const u64 address = (u64)(channel->inst & CHIP_INST_PTR) << 12;

	chip->ops.write(chip->ctx, target, address + 4 * word, &value, sizeof(value));
}

static void read_gp_put(struct chip *chip, struct chip_unit *unit, struct chip_channel *channel)
{
	u32 gp_put;

	if (chip->ops.read(chip->ctx, channel->userd_target, channel->userd + CHIP_USERD_GP_PUT,
			   &gp_put, sizeof(gp_put)))
		return;
	if (gp_put < channel->gp_entries)
		channel->gp_put = gp_put;
	else if (chip->cfg.tenant_errors)
		chip_fault_pbdma(chip, unit, CHIP_PBDMA_GPPTR);
}

static int read_ramfc(struct chip *chip, struct chip_unit *unit, struct chip_channel *channel)
{
	struct ramfc_userd fc;
	u32 gp_base[2], pdb[6]; /* two words, two of no interest, the context's two */

	if (inst_read(chip, channel, CHIP_RAMFC_USERD, &fc, sizeof(fc)) ||
	    inst_read(chip, channel, CHIP_RAMFC_GP_BASE, gp_base, sizeof(gp_base)) ||
	    inst_read(chip, channel, CHIP_RAMIN_PDB, pdb, sizeof(pdb)))
		return -EFAULT;
	if (fc.signature != RAMFC_SIGNATURE && fc.signature != CHIP_PFIFO_CFG2_VALUE) {
		chip_protocol_error(chip, "a channel's RAMFC carries no valid signature");
		if (chip->cfg.tenant_errors)
			chip_fault_pbdma(chip, unit, CHIP_PBDMA_SIGNATURE);
		return -EINVAL;
	}
	channel->userd_target = fc.userd_lo & 3;
	channel->userd = (fc.userd_lo & 0xfffffe00u) | (u64)(fc.userd_hi & 0xff) << 32;
	channel->gp_base = (gp_base[0] & 0xfffffff8u) | (u64)(gp_base[1] & 0xff) << 32;
	channel->gp_entries = 1u << ((gp_base[1] >> CHIP_RAMFC_GP_LOG2_SHIFT) & 0x1f);
	channel->gp_get = fc.gp_get & (channel->gp_entries - 1);
	channel->pdb = (pdb[0] & 0xfffff000u) | (u64)pdb[1] << 32;
	chip_context_read(chip, unit, channel->pdb, &pdb[CHIP_RAMIN_CONTEXT - CHIP_RAMIN_PDB]);
	return 0;
}

/* The channel's turn: its pending mark is used up, GP_PUT is looked at. */
void chip_pbdma_load(struct chip *chip, struct chip_unit *unit, u16 id)
{
	struct chip_channel *channel = &chip->channels[id];

	unit->channel = id;
	unit->on_pbdma = true;
	unit->userd_due_ns = CHIP_NEVER;
	channel->loaded_unit = unit->runlist;
	channel->loaded_generation = unit->generation;
	chip_channel_change(chip, id, 0, CHIP_PENDING | CHIP_NEXT | CHIP_FORCE_RELOAD);
	channel->gp_entries = 0;
	channel->gp_get = 0;
	if (!read_ramfc(chip, unit, channel)) {
		channel->gp_put = channel->gp_get;
		read_gp_put(chip, unit, channel);
	} else {
		channel->gp_put = 0;
	}
}

void chip_pbdma_write_back(struct chip *chip, struct chip_unit *unit)
{
	const struct chip_channel *channel = &chip->channels[unit->channel];

	unit->userd_due_ns = CHIP_NEVER;
	if (unit->on_pbdma && channel->gp_entries)
		chip->ops.write(chip->ctx, channel->userd_target,
				channel->userd + CHIP_USERD_GP_GET, &channel->gp_get,
				sizeof(channel->gp_get));
}

/* Off the PBDMA: USERD and RAMFC become true again, work that is left marks the channel. */
void chip_pbdma_save(struct chip *chip, struct chip_unit *unit)
{
	struct chip_channel *channel = &chip->channels[unit->channel];
	const bool cut = channel->work.remaining_ns && !unit->running;

	if (!unit->on_pbdma)
		return;
	chip_pbdma_write_back(chip, unit);
	unit->on_pbdma = false;
	if (channel->gp_entries) {
		inst_write(chip, channel, CHIP_RAMFC_GP_PUT, channel->gp_put);
		inst_write(chip, channel, CHIP_RAMFC_GP_GET, channel->gp_get);
	}
	if (channel->gp_get != channel->gp_put || cut)
		chip_pbdma_mark_left(chip, unit->channel);
}

/* Switched out with work left. A disabled channel is not marked: it needs a ring later. */
void chip_pbdma_mark_left(struct chip *chip, u16 id)
{
	if ((chip->channels[id].facts & CHIP_ENABLED) || chip->cfg.sw.disable_keeps_pending)
		chip_channel_change(chip, id, CHIP_PENDING, 0);
}

bool chip_pbdma_has_more(const struct chip *chip, const struct chip_unit *unit)
{
	const struct chip_channel *channel = &chip->channels[unit->channel];

	return channel->work.remaining_ns || channel->gp_get != channel->gp_put ||
	       (channel->facts & CHIP_PENDING);
}

static void take_kernel(struct chip *chip, struct chip_channel *channel, u64 va)
{
	struct chip_work *work = &channel->work;
	struct chip_kernel kernel;

	if (chip->ops.va_read(chip->ctx, channel->pdb, va, &kernel, sizeof(kernel))) {
		work->fails = chip->cfg.tenant_errors;
		return;
	}
	work->is_kernel = true;
	work->remaining_ns = max(work->remaining_ns, kernel.duration_ns);
	/* a type that does not exist cuts as badly as the worst that does */
	work->preemption = kernel.preemption <= CHIP_COPY ? (u8)kernel.preemption : CHIP_WFI;
	work->block_ns = kernel.block_ns;
	work->semaphore_va = kernel.semaphore_va;
	work->payload = kernel.payload;
}

/* Return: 0, or -EFAULT: the entry lies at a page that is not there, which is a fault. */
static int take_entry(struct chip *chip, struct chip_channel *channel)
{
	struct chip_work *work = &channel->work;
	const u64 va = channel->gp_base + (u64)CHIP_GP_ENTRY_BYTES * channel->gp_get;
	u32 entry[2];
	int err;

	memset(work, 0, sizeof(*work));
	err = chip->ops.va_read(chip->ctx, channel->pdb, va, entry, sizeof(entry));
	if (err && chip->cfg.tenant_errors)
		return -EFAULT;
	work->remaining_ns = chip->cfg.lat.entry_ns;
	work->preemption = CHIP_CILP;
	channel->gp_get = (channel->gp_get + 1) & (channel->gp_entries - 1);
	if (!err && (entry[1] & CHIP_GP1_SYNC))
		take_kernel(chip, channel,
			    (entry[0] & CHIP_GP0_ADDR) | (u64)(entry[1] & CHIP_GP1_ADDR) << 32);
	return 0;
}

/* Have something to run for the channel on the PBDMA. Return: whether there is. */
bool chip_pbdma_fetch(struct chip *chip, struct chip_unit *unit)
{
	struct chip_channel *channel = &chip->channels[unit->channel];

	if (channel->pbdma_error)
		chip_fault_pbdma(chip, unit, channel->pbdma_error);
	if (chip_fault_frozen(chip, unit))
		return false;
	if (channel->work.remaining_ns)
		return true;
	if (channel->gp_get == channel->gp_put) {
		if (!(channel->facts & CHIP_PENDING) && !chip->cfg.sw.gp_put_reread)
			return false;
		chip_channel_change(chip, unit->channel, 0, CHIP_PENDING);
		read_gp_put(chip, unit, channel);
		if (channel->gp_get == channel->gp_put)
			return false;
	}
	if (take_entry(chip, channel)) {
		chip_channel_change(chip, unit->channel, CHIP_PBDMA_FAULTED, 0);
		return false;
	}
	if (unit->userd_due_ns == CHIP_NEVER && chip->cfg.lat.userd_writeback_ns &&
	    (chip->userd_writeback & 0xff))
		unit->userd_due_ns = chip_later(chip->now_ns, chip->cfg.lat.userd_writeback_ns);
	return true;
}

/* The work on the engine has reached its end. Return: 0, or -EFAULT: it fails there. */
int chip_pbdma_complete(struct chip *chip, struct chip_unit *unit)
{
	struct chip_channel *channel = &chip->channels[unit->channel];
	const struct chip_completion completion = {
		.payload = channel->work.payload,
		.time_ns = chip->now_ns,
	};

	channel->work.remaining_ns = 0;
	if (channel->work.fails)
		return -EFAULT;
	if (!channel->work.is_kernel)
		return 0;
	if (channel->work.semaphore_va &&
	    chip->ops.va_write(chip->ctx, channel->pdb, channel->work.semaphore_va, &completion,
			       sizeof(completion)) &&
	    chip->cfg.tenant_errors)
		return -EFAULT;
	if (unit->grce)
		chip->grces[unit->grce - 1].kernels++;
	else
		unit->totals.kernels++;
	return 0;
}
