// SPDX-License-Identifier: GPL-2.0
/*
 * probe.c - is this a TU104, and which engine hangs on which runlist. Engine and runlist numbers
 * are read from the chip's own table (NV_PTOP_DEVICE_INFO): published numbers for a T4 do not
 * exist, so nothing is hard-coded. Reads only.
 */
#include "hw/tu104/tu104.h"

static int read_identity(struct hw *hw)
{
	u32 boot0, boot42;

	boot0 = hw_read(&hw->io, TU104_PMC_BOOT_0);
	if (hw_io_bad(boot0))
		return boot0 == 0xffffffffu ? -ENODEV : -EIO;
	hw->id.boot0 = boot0;
	hw->id.chip_id = tu104_get(boot0, TU104_PMC_BOOT_0_CHIP_ID);
	if (hw->id.chip_id != TU104_CHIP_ID)
		return -EOPNOTSUPP;
	boot42 = hw_read(&hw->io, TU104_PMC_BOOT_42);
	if (hw_io_bad(boot42))
		return tu104_odd(hw);
	return tu104_get(boot42, TU104_PMC_BOOT_42_CHIP_ID) == TU104_CHIP_ID ? 0 : -EOPNOTSUPP;
}

static enum hw_engine_type engine_type(u32 type)
{
	if (type == TU104_ENGINE_TYPE_GRAPHICS)
		return HW_ENGINE_GRAPHICS;
	if (type == TU104_ENGINE_TYPE_LCE ||
	    (type >= TU104_ENGINE_TYPE_COPY0 && type <= TU104_ENGINE_TYPE_COPY2))
		return HW_ENGINE_COPY;
	if ((type >= TU104_ENGINE_TYPE_MSPDEC && type <= TU104_ENGINE_TYPE_VIC) ||
	    (type >= TU104_ENGINE_TYPE_NVENC && type <= TU104_ENGINE_TYPE_NVDEC) ||
	    type == TU104_ENGINE_TYPE_NVJPG)
		return HW_ENGINE_VIDEO;
	return HW_ENGINE_OTHER;
}

/* One device of the table, as its words are met. */
struct device {
	bool open; /* some word was seen, the chain is not finished */
	bool has_engine, has_runlist, has_type;
	u32 engine, runlist, type;
};

static int add_engine(struct hw_identity *id, const struct device *dev)
{
	u32 i;

	/* Units without an engine or a runlist (timers, NVLink) are none of ours. */
	if (!dev->has_engine || !dev->has_runlist || !dev->has_type)
		return 0;
	if (dev->engine >= TU104_ENGINES || dev->runlist >= TU104_RUNLISTS)
		return -EIO;
	for (i = 0; i < id->engine_count; i++)
		if (id->engines[i].index == dev->engine)
			return -EIO;
	if (id->engine_count == HW_MAX_ENGINES)
		return -EIO;
	id->engines[id->engine_count++] = (struct hw_engine){
		.type = engine_type(dev->type),
		.index = (u16)dev->engine,
		.runlist = (u16)dev->runlist,
	};
	return 0;
}

static void take_word(struct device *dev, u32 word)
{
	switch (tu104_get(word, TU104_DEVICE_INFO_ENTRY)) {
	case TU104_DEVICE_INFO_ENTRY_ENUM:
		dev->has_engine = word & TU104_DEVICE_INFO_ENGINE_VALID;
		dev->engine = tu104_get(word, TU104_DEVICE_INFO_ENGINE_ENUM);
		dev->has_runlist = word & TU104_DEVICE_INFO_RUNLIST_VALID;
		dev->runlist = tu104_get(word, TU104_DEVICE_INFO_RUNLIST_ENUM);
		break;
	case TU104_DEVICE_INFO_ENTRY_ENGINE_TYPE:
		dev->has_type = true;
		dev->type = tu104_get(word, TU104_DEVICE_INFO_ENGINE_TYPE);
		break;
	}
}

static int read_engines(struct hw *hw)
{
	struct device dev = { .open = false };
	u32 i, word;
	int err;

	hw->id.engine_count = 0;
	for (i = 0; i < TU104_DEVICE_INFOS; i++) {
		err = tu104_read(hw, TU104_DEVICE_INFO(i), &word);
		if (err)
			return err;
		if (tu104_get(word, TU104_DEVICE_INFO_ENTRY) == TU104_DEVICE_INFO_ENTRY_NOT_VALID)
			continue;
		take_word(&dev, word);
		dev.open = word & TU104_DEVICE_INFO_CHAIN;
		if (dev.open)
			continue;
		err = add_engine(&hw->id, &dev);
		if (err)
			return err;
		dev = (struct device){ .open = false };
	}
	return dev.open ? -EIO : 0; /* a chain that never ends */
}

static int read_limits(struct hw *hw)
{
	u32 cfg0, channels, pbdmas, map, p, r;
	int err;

	err = tu104_read(hw, TU104_PFIFO_CFG0, &cfg0);
	if (!err)
		err = tu104_read(hw, TU104_PFIFO_CFG1, &channels);
	if (err)
		return err;
	pbdmas = tu104_get(cfg0, TU104_PFIFO_CFG0_NUM_PBDMA);
	if (!channels || channels > TU104_CHANNELS || !pbdmas || pbdmas > TU104_PBDMAS)
		return -EIO;
	hw->id.channels = channels;

	memset(hw->id.pbdmas, 0, sizeof(hw->id.pbdmas));
	for (p = 0; p < pbdmas; p++) {
		err = tu104_read(hw, TU104_PBDMA_MAP(p), &map);
		if (err)
			return err;
		for (r = 0; r < TU104_RUNLISTS; r++)
			if (tu104_get(map, TU104_PBDMA_MAP_RUNLISTS) & (1u << r))
				hw->id.pbdmas[r] |= (u16)(1u << p);
	}
	return 0;
}

int tu104_probe(struct hw *hw)
{
	u32 i;
	int err;

	err = read_identity(hw);
	if (!err)
		err = read_limits(hw);
	if (!err)
		err = read_engines(hw);
	if (err)
		return err;
	hw->id.slice_min_ns = TU104_SLICE_UNIT_NS;
	hw->id.slice_max_ns = tu104_slice_decode(
		(struct tu104_slice){ TU104_SLICE_TIMEOUT_MAX, TU104_SLICE_SCALE_MAX });

	for (i = 0; i < hw->id.engine_count; i++)
		if (hw->id.engines[i].type == HW_ENGINE_GRAPHICS)
			return hw->id.pbdmas[hw->id.engines[i].runlist] ? 0 : -EIO;
	return -EOPNOTSUPP;
}
