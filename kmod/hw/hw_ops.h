/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hw_ops.h - what the scheduler may ask of a chip: at most ten operations. Implemented by
 * tu104/. All of them may sleep (they poll through hw_io_ops.wait_ns), none allocates, the
 * caller serialises them per card (card->lock in the kernel).
 *
 * Errors, the same for every operation: -ENODEV the card is gone (all ones), -EIO the card
 * refused a register (0xBADxxxxx), -ETIMEDOUT no answer before the stated deadline.
 */
#ifndef QGPU_HW_OPS_H
#define QGPU_HW_OPS_H

#include "hw_io.h"

#define HW_MAX_RUNLISTS 16
#define HW_MAX_ENGINES 16
#define HW_MAX_TSG_CHANNELS 128
#define HW_NO_ID 0xffffu

enum hw_engine_type {
	HW_ENGINE_GRAPHICS,
	HW_ENGINE_COPY,
	HW_ENGINE_VIDEO,
	HW_ENGINE_OTHER,
};

/**
 * struct hw_engine - one engine as found in the chip's own table; nothing is hard-coded
 * @type: what it does
 * @index: its slot in the status registers
 * @runlist: the runlist that feeds it; several engines may share one
 */
struct hw_engine {
	enum hw_engine_type type;
	u16 index;
	u16 runlist;
};

/* What was found at probe; set once. */
struct hw_identity {
	u32 boot0;              /* PMC_BOOT_0 at probe; a change means the card was lost */
	u32 chip_id;            /* 0x164 = TU104 */
	u32 channels;           /* size of the channel id space */
	u32 engine_count;
	struct hw_engine engines[HW_MAX_ENGINES];
	u16 pbdmas[HW_MAX_RUNLISTS]; /* of each runlist: bit p = PBDMA p serves it */
	u64 slice_min_ns, slice_max_ns; /* what an image entry can express */
};

enum hw_engine_state {
	HW_ENGINE_EMPTY,        /* no context loaded */
	HW_ENGINE_IDLE,         /* a context is loaded and has nothing running */
	HW_ENGINE_RUNNING,      /* tsg_id is computing, or copying on an engine of the same runlist */
	HW_ENGINE_SWITCHING,    /* save or load in progress: nobody computes */
};

/**
 * struct hw_status - who is on an engine
 * @tsg_id: whose context is (still) loaded; HW_NO_ID when empty
 * @next_tsg_id: who is being loaded; HW_NO_ID unless switching with a known successor
 */
struct hw_status {
	enum hw_engine_state state;
	u16 tsg_id;
	u16 next_tsg_id;
};

/* A channel as an image needs it, from the driver's own list. */
struct hw_channel {
	u16 id;
	u8 runqueue;            /* runqueue selector */
	u8 inst_target, userd_target; /* enum hw_target */
	u64 inst_addr, userd_addr;
	bool closed;            /* its gate, by us; the turn's own */
	bool unheard;           /* it may have rung in vain; the turn's own */
};

/* What to do with a channel's gate. Opening rings too. */
enum hw_gate { HW_GATE_CLOSE, HW_GATE_OPEN, HW_GATE_RING };

/* One TSG of an image: header and its channels. */
struct hw_image_tsg {
	u16 tsg_id;
	u16 channel_count;      /* 1 ... HW_MAX_TSG_CHANNELS */
	u64 slice_ns;           /* as asked; hw_ops.image_write returns what it became */
	const struct hw_channel *channels;
};

/* What a channel's own state says about work. */
enum hw_channel_work {
	HW_CHANNEL_DISABLED,
	HW_CHANNEL_QUIET,       /* nothing to do */
	HW_CHANNEL_HAS_WORK,    /* pending, waiting on a semaphore, or being worked on */
	HW_CHANNEL_FAULTED,
};

struct hw;

struct hw_ops {
	/* Identify the chip and read its engine table. -EOPNOTSUPP: a chip this layer does not know. */
	int (*probe)(struct hw *hw);

	/* Card's own clock, ns. Does not sleep. */
	int (*time_ns)(struct hw *hw, u64 *time_ns);

	/* What a slice becomes when written: rounded to the nearest the entry can express, clamped
	 * to slice_min_ns ... slice_max_ns. Pure; touches no register. */
	u64 (*slice_round)(u64 slice_ns);

	/* Write an image into @mem from byte 0, in order. Stores to memory only; nothing is
	 * submitted. @entries_out = 16-byte entries written. -ENOSPC: does not fit;
	 * -EINVAL: a TSG without channels or with too many. On error @mem's content is undefined
	 * and nothing the card reads has changed, because @mem is never the one in the slot. */
	int (*image_write)(const struct hw_mem *mem, const struct hw_image_tsg *tsgs, u32 count,
			   u32 *entries_out);

	/* Put @entries of @mem in the slot of @runlist and wait until the chip took it. The old
	 * image stays the card's until this returned 0; after -ETIMEDOUT both must stay untouched.
	 * -EBUSY: an earlier submit is still pending after the deadline. */
	int (*submit)(struct hw *hw, u32 runlist, const struct hw_mem *mem, u32 entries);

	/* Is the list in the slot of @runlist the one that was submitted last, @entries of @mem?
	 * -ESTALE: somebody else submitted since; -ENODEV: also when its registers read as after a
	 * reset. At most three register reads; does not sleep. */
	int (*slot_check)(struct hw *hw, u32 runlist, const struct hw_mem *mem, u32 entries);

	/* Take @tsg_id off engine and PBDMA at once; returns when it is off. -EBUSY: not
	 * acknowledged before the deadline (uncuttable work): the request stays pending in the
	 * chip. It may come back unless it is outside the image in the slot. @deadline_ns is
	 * absolute, in hw_now_ns() time. */
	int (*preempt)(struct hw *hw, u32 engine_index, u16 tsg_id, u64 deadline_ns);

	/* Close: the chip picks @channel no more, though what is on the engine stays; open: it does
	 * again. Only ever the channel of that instance block: -ESTALE when the id is another's. One
	 * that faulted, and to close one that is disabled already, is left alone. @changed: it was
	 * not so before. -EIO: also when it does not open. Three accesses to close or ring, five to
	 * open; does not sleep. */
	int (*gate)(struct hw *hw, u32 runlist, const struct hw_channel *channel, enum hw_gate gate,
		    bool *changed);

	/* Who is on the engine. One register read, and while it is idle one more for each engine
	 * that shares its runlist: what those do for the same TSG is computing too. Does not sleep. */
	int (*status)(struct hw *hw, u32 engine_index, struct hw_status *out);

	/* What a channel is doing. @inst_addr identifies it: -ESTALE when the id now belongs to
	 * another instance block. Two register reads; does not sleep. */
	int (*channel_work)(struct hw *hw, u16 channel_id, u64 inst_addr,
			    enum hw_channel_work *out);
};

/**
 * struct hw - a chip in use
 * @id: filled by ops->probe
 */
struct hw {
	const struct hw_ops *ops;
	struct hw_io io;
	struct hw_identity id;
};

extern const struct hw_ops tu104_ops;

#endif
