// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tu104.c - the chip model as a PCI device of QEMU: a T4's ids and BAR 0, each access of which goes to
 * kmod/sim/chip at QEMU's virtual time. What the chip reads and writes of memory it does by DMA, as
 * long as it is bus master; a timer brings it to the next thing that a program can see there. BAR 5 is
 * the judge's (kmod/sim/judge.h), which a T4 does not have. There is no video memory and no interrupt.
 * When the guest reboots, a line on stderr tells how the card was left.
 * Built by build-device.sh for exactly the QEMU that is installed, and preloaded into it by run.sh.
 */
#include "qemu/osdep.h"
#include "hw/pci/pci.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "qom/object.h"
#include "sysemu/sysemu.h"

#include "sim/judge.h"
#include "tu104_chip.h"

#define TYPE_TU104 "tu104"
OBJECT_DECLARE_SIMPLE_TYPE(Tu104, TU104)

struct Tu104 {
	PCIDevice parent;
	MemoryRegion bar0, judge;
	struct tu104_chip *chip;
	QEMUTimer *timer;
	Notifier at_shutdown;
};

static uint64_t now_ns(void)
{
	return (uint64_t)qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static void set_timer(Tu104 *card)
{
	uint64_t next_ns = tu104_chip_next_ns(card->chip);

	if (next_ns > INT64_MAX)
		timer_del(card->timer);
	else
		timer_mod(card->timer, (int64_t)next_ns);
}

static void timer_fired(void *opaque)
{
	Tu104 *card = opaque;

	tu104_chip_advance(card->chip, now_ns());
	set_timer(card);
}

static uint64_t bar0_read(void *opaque, hwaddr offset, unsigned bytes)
{
	Tu104 *card = opaque;
	uint32_t value = tu104_chip_read(card->chip, now_ns(), (uint32_t)offset);

	set_timer(card);
	return value;
}

static void bar0_write(void *opaque, hwaddr offset, uint64_t value, unsigned bytes)
{
	Tu104 *card = opaque;

	tu104_chip_write(card->chip, now_ns(), (uint32_t)offset, (uint32_t)value);
	set_timer(card);
}

static uint64_t judge_read(void *opaque, hwaddr offset, unsigned bytes)
{
	Tu104 *card = opaque;
	uint32_t value = tu104_judge_read(card->chip, now_ns(), (uint32_t)offset);

	set_timer(card);
	return value;
}

static void judge_write(void *opaque, hwaddr offset, uint64_t value, unsigned bytes)
{
	Tu104 *card = opaque;

	tu104_judge_write(card->chip, now_ns(), (uint32_t)offset, (uint32_t)value);
	set_timer(card);
}

static const MemoryRegionOps bar0_ops = {
	.read = bar0_read,
	.write = bar0_write,
	.endianness = DEVICE_LITTLE_ENDIAN,
	.valid = { .min_access_size = 4, .max_access_size = 4 },
};

static const MemoryRegionOps judge_ops = {
	.read = judge_read,
	.write = judge_write,
	.endianness = DEVICE_LITTLE_ENDIAN,
	.valid = { .min_access_size = 4, .max_access_size = 4 },
};

static int dma(void *ctx, uint64_t addr, void *buf, uint32_t bytes, bool to_guest)
{
	Tu104 *card = ctx;
	MemTxResult result = to_guest ? pci_dma_write(&card->parent, addr, buf, bytes) :
					pci_dma_read(&card->parent, addr, buf, bytes);

	return result == MEMTX_OK ? 0 : -EFAULT;
}

static void tell(Notifier *notifier, void *unused)
{
	tu104_chip_tell(container_of(notifier, Tu104, at_shutdown)->chip, now_ns());
}

static void realize(PCIDevice *device, Error **errp)
{
	Tu104 *card = TU104(device);

	card->chip = tu104_chip_create(dma, card);
	if (!card->chip) {
		error_setg(errp, "tu104: out of memory");
		return;
	}
	card->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, timer_fired, card);
	card->at_shutdown.notify = tell;
	qemu_register_shutdown_notifier(&card->at_shutdown);
	memory_region_init_io(&card->bar0, OBJECT(card), &bar0_ops, card, "tu104-bar0", 16 * MiB);
	pci_register_bar(device, 0, PCI_BASE_ADDRESS_SPACE_MEMORY, &card->bar0);
	memory_region_init_io(&card->judge, OBJECT(card), &judge_ops, card, "tu104-judge", JUDGE_BYTES);
	pci_register_bar(device, JUDGE_BAR, PCI_BASE_ADDRESS_SPACE_MEMORY, &card->judge);
}

static void unrealize(PCIDevice *device)
{
	Tu104 *card = TU104(device);

	notifier_remove(&card->at_shutdown);
	timer_free(card->timer);
	tu104_chip_destroy(card->chip);
}

static void reset(DeviceState *device)
{
	Tu104 *card = TU104(device);

	tu104_chip_reset(card->chip, now_ns());
	set_timer(card);
}

static void init_class(ObjectClass *klass, void *data)
{
	PCIDeviceClass *device = PCI_DEVICE_CLASS(klass);

	DEVICE_CLASS(klass)->reset = reset;
	device->realize = realize;
	device->exit = unrealize;
	device->vendor_id = 0x10de;
	device->device_id = 0x1eb8;
	device->revision = 0xa1;
	device->class_id = 0x0302;
	device->subsystem_vendor_id = 0x10de;
	device->subsystem_id = 0x12a2;
}

static void register_type(void)
{
	static InterfaceInfo interfaces[] = { { INTERFACE_CONVENTIONAL_PCI_DEVICE }, {} };
	static const TypeInfo info = {
		.name = TYPE_TU104,
		.parent = TYPE_PCI_DEVICE,
		.instance_size = sizeof(Tu104),
		.class_init = init_class,
		.interfaces = interfaces,
	};

	type_register_static(&info);
}

static void __attribute__((constructor)) load(void)
{
	register_module_init(register_type, MODULE_INIT_QOM);
}
