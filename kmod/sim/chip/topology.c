// SPDX-License-Identifier: GPL-2.0
/*
 * topology.c - which engines there are, which runlist feeds each, which PBDMA serves it: the
 * contents of PTOP_DEVICE_INFO and PBDMA_MAP, and the same facts for the rest of the model.
 *
 * The real table of a T4 is unknown. This one has what RM's class list gives a TU104, with the
 * shape a reader must cope with: empty slots between devices, a device without engine and
 * runlist, two copy engines on the graphics runlist, register arrays longer than what is there.
 */
#include "chip_state.h"

#define WORDS_PER_DEVICE 4u     /* three used, one empty slot */
#define NO_ENGINE 0xffu

#define KIND_DATA 1u
#define KIND_ENUM 2u
#define KIND_TYPE 3u
#define CHAIN (1u << 31)

struct device {
	u8 type, instance;
	u8 engine, runlist;
	u8 fault, intr, reset;
	u32 pri_base;
};

static const struct device devices[] = {
	{ 0, 0, 0, 0, 64, 12, 12, 0x400000 },           /* graphics */
	{ 18, 0, NO_ENGINE, NO_ENGINE, 0, 0, 0, 0x10c000 }, /* IOCTRL: nothing to schedule */
	{ 19, 0, 1, 0, 15, 5, 6, 0x104000 },            /* LCE 0 and 1: the GRCEs */
	{ 19, 1, 2, 0, 16, 6, 7, 0x104000 },
	{ 19, 2, 3, 1, 17, 7, 21, 0x104000 },           /* LCE 2 to 4 */
	{ 19, 3, 4, 2, 18, 10, 22, 0x104000 },
	{ 19, 4, 5, 3, 19, 11, 23, 0x104000 },
	{ 16, 0, 6, 4, 20, 17, 15, 0x830000 },          /* NVDEC 0 and 1 */
	{ 16, 1, 7, 5, 21, 18, 16, 0x834000 },
	{ 14, 0, 8, 6, 25, 16, 18, 0x1c8000 },          /* NVENC 0 */
	{ 13, 0, 9, 7, 14, 15, 14, 0x840000 },          /* SEC2 */
	{ 20, 0, 10, 8, 29, 29, 29, 0x110000 },         /* GSP */
};

/* Graphics runlist: PBDMA 0 and 1. Every other runlist: the one after. */
#define RUNLISTS_PRESENT 9u
#define GR_PBDMAS 2u

static u32 enum_word(const struct device *d)
{
	u32 w = KIND_ENUM | CHAIN;

	if (d->engine != NO_ENGINE)
		w |= (u32)d->engine << 26 | 1u << 5 | (u32)d->runlist << 21 | 1u << 4;
	if (d->reset)
		w |= (u32)d->intr << 15 | 1u << 3 | (u32)d->reset << 9 | 1u << 2;
	return w;
}

static u32 data_word(const struct device *d)
{
	u32 w = KIND_DATA | CHAIN | (d->pri_base >> 12) << 12 | (u32)d->instance << 26;

	if (d->fault)
		w |= (u32)d->fault << 3 | 1u << 2;
	return w;
}

u32 chip_topology_device_info(u32 slot)
{
	const u32 device = slot / WORDS_PER_DEVICE;

	if (device >= ARRAY_SIZE(devices))
		return 0;
	switch (slot & (WORDS_PER_DEVICE - 1)) {
	case 1:
		return enum_word(&devices[device]);
	case 2:
		return data_word(&devices[device]);
	case 3:
		return KIND_TYPE | (u32)devices[device].type << 2;
	default:
		return 0;
	}
}

u32 chip_topology_pbdma_map(u32 pbdma)
{
	if (pbdma < GR_PBDMAS)
		return 1u << 0;
	if (pbdma - GR_PBDMAS + 1 < RUNLISTS_PRESENT)
		return 1u << (pbdma - GR_PBDMAS + 1);
	return 0;
}

u32 chip_topology_runlist_count(void)
{
	return RUNLISTS_PRESENT;
}

struct chip_unit *chip_topology_unit(struct chip *chip, u32 engine)
{
	u32 i;

	for (i = 0; i < CHIP_RUNLISTS; i++)
		if (chip->units[i].engine == engine)
			return &chip->units[i];
	return NULL;
}

u32 chip_topology_runqueues(const struct chip_unit *unit)
{
	return unit->runlist ? 1 : GR_PBDMAS;
}

struct chip_unit *chip_topology_pbdma_unit(struct chip *chip, u32 pbdma)
{
	u32 i;

	for (i = 0; i < CHIP_RUNLISTS; i++)
		if (pbdma - chip->units[i].pbdma < chip_topology_runqueues(&chip->units[i]))
			return &chip->units[i];
	return NULL;
}

/* PMC_ENABLE bits of all devices. */
u32 chip_topology_reset_bits(void)
{
	u32 bits = 0, i;

	for (i = 0; i < ARRAY_SIZE(devices); i++)
		if (devices[i].reset)
			bits |= 1u << devices[i].reset;
	return bits;
}

static const struct device *device_of(u32 engine)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(devices); i++)
		if (devices[i].engine == engine && engine != NO_ENGINE)
			return &devices[i];
	return NULL;
}

/* PMC_ENABLE and PMC_INTR bit of one engine, 0: it is not there. */
u32 chip_topology_reset_bit(u32 engine)
{
	const struct device *d = device_of(engine);

	return d ? 1u << d->reset : 0;
}

u32 chip_topology_intr_bit(u32 engine)
{
	const struct device *d = device_of(engine);

	return d ? 1u << d->intr : 0;
}

void chip_topology_init(struct chip_unit *unit, u32 runlist)
{
	unit->runlist = (u8)runlist;
	/* engines 1 and 2 are the GRCEs, fed by runlist 0 */
	unit->engine = (u8)(runlist ? runlist + CHIP_GRCES : 0);
	unit->pbdma = (u8)(runlist ? runlist + GR_PBDMAS - 1 : 0);
}
