/* SPDX-License-Identifier: GPL-2.0 */
/*
 * sim_device.h - how a simulated card is offered to qgpu.ko: a device on the auxiliary bus that
 * carries an ops struct. Neither module links to the other; either may load or unload first.
 *
 * qgpu_sim.ko creates a struct qgpu_sim_device per card (auxiliary device name "card", so the
 * match string is "qgpu_sim.card"); qgpu.ko is that device's driver. The simulator keeps the
 * device (and itself) pinned only while the driver is bound: removing either module unbinds.
 *
 * Locks. The front's per-card mutex is taken before qgpu's card->lock: events arrive with the
 * front's mutex held, and qgpu may take its own lock in them. So qgpu never calls an op marked
 * [front] while it holds card->lock. Ops marked [leaf] take only the chip's spinlock.
 */
#ifndef QGPU_SIM_DEVICE_H
#define QGPU_SIM_DEVICE_H

#include <linux/auxiliary_bus.h>
#include "hw/hw_ops.h"

struct cgroup;

#define QGPU_SIM_DEVICE_MATCH "qgpu_sim.card"

/**
 * struct qgpu_driver_tsg - a TSG the driver made; what hooks will report on a real card
 * @serial: unique for ever on this card; ids below are reused, this is not
 * @opener: pid of the process that opened the client; a reference is held during the call only;
 *          NULL for an object the driver made for itself
 * @cgroup: where that process lived when the TSG was made, in the default hierarchy: told again to
 *          who listens later, when it may be gone; a reference is held during the call; NULL: as
 *          @opener, or it was gone already
 * @slice_ns: the slice the driver wants it to have
 */
struct qgpu_driver_tsg {
	u64 serial;
	struct pid *opener;
	struct cgroup *cgroup;
	u16 runlist;
	u16 tsg_id;
	u64 slice_ns;
};

/**
 * struct qgpu_driver_events - qgpu's ears; called with the front's mutex held, may sleep
 * @tsg_created: a TSG exists; it has no channels yet
 * @tsg_destroyed: it is gone, with all its channels; returns when qgpu will never touch its id
 *                 again. The front calls list_changed (without it) first.
 * @channel_created: a channel of the TSG exists; @channel is valid during the call
 * @channel_destroyed: likewise gone
 * @slice_changed: the driver wants the TSG to have another slice; list_changed follows when the
 *                 TSG is in the list
 * @list_changed: the driver's list for @runlist changed: these TSGs, in this order, are what
 *                exists and may be scheduled. While qgpu holds the slot: returns when no image in
 *                it holds anything outside. While it follows the list: it is in the slot already.
 * @call_begins: a call that stops or frees channels of the TSG comes next (FREE, DISABLE_CHANNELS,
 *               a file that closes): returns when they are as the driver left them
 * @call_ended: it was carried out, and the TSG is there still
 */
struct qgpu_driver_events {
	int (*tsg_created)(void *ctx, const struct qgpu_driver_tsg *tsg);
	void (*tsg_destroyed)(void *ctx, u64 serial);
	int (*channel_created)(void *ctx, u64 serial, const struct hw_channel *channel);
	void (*channel_destroyed)(void *ctx, u64 serial, u16 channel_id);
	void (*slice_changed)(void *ctx, u64 serial, u64 slice_ns);
	void (*list_changed)(void *ctx, u32 runlist, const u64 *serials, u32 count);
	void (*call_begins)(void *ctx, u64 serial);
	void (*call_ended)(void *ctx, u64 serial);
};

struct qgpu_sim_device;

/**
 * struct qgpu_sim_ops - what a simulated card offers
 * @read32, @write32: [leaf] registers; never sleep
 * @mem_alloc, @mem_free: [leaf] zeroed memory that the card can read, 4 KiB aligned; may sleep
 * @listen: [front] register ears; existing objects are replayed through the same events before
 *          it returns, list_changed excluded. One listener a card: -EBUSY otherwise.
 * @unlisten: [front] after it returned no event is running or will come. Gives back all slots.
 * @take_slot: [front] from its return on the driver submits nothing on @runlist and reports
 *             list_changed instead; it is called once with the current list before this returns.
 * @follow_list: [front] instead of take_slot: the driver goes on submitting on @runlist, and
 * reports list_changed after each time; once with the current list before this returns
 * @give_slot: [front] the driver submits its own list before this returns, then carries on
 *             by itself.
 */
struct qgpu_sim_ops {
	u32 (*read32)(struct qgpu_sim_device *dev, u32 offset);
	void (*write32)(struct qgpu_sim_device *dev, u32 offset, u32 value);
	int (*mem_alloc)(struct qgpu_sim_device *dev, u32 bytes, struct hw_mem *out);
	void (*mem_free)(struct qgpu_sim_device *dev, struct hw_mem *mem);
	int (*listen)(struct qgpu_sim_device *dev, const struct qgpu_driver_events *events,
		      void *ctx);
	void (*unlisten)(struct qgpu_sim_device *dev);
	int (*take_slot)(struct qgpu_sim_device *dev, u32 runlist);
	int (*follow_list)(struct qgpu_sim_device *dev, u32 runlist);
	void (*give_slot)(struct qgpu_sim_device *dev, u32 runlist);
};

/**
 * struct qgpu_sim_device - the auxiliary device of one simulated card
 * @pdev: the PCI device it is; NULL: there is none, and registers and memory are @ops' to reach
 * @index: 0 ... 7
 * @uuid: as RM would report it, "GPU-xxxxxxxx-xxxx-..."
 * @name: product name, "Simulated T4"
 */
struct qgpu_sim_device {
	struct auxiliary_device adev;
	const struct qgpu_sim_ops *ops;
	struct pci_dev *pdev;
	u32 index;
	char uuid[48];
	char name[32];
};

static inline struct qgpu_sim_device *to_qgpu_sim_device(struct auxiliary_device *adev)
{
	return container_of(adev, struct qgpu_sim_device, adev);
}

#endif
