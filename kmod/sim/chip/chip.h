/* SPDX-License-Identifier: GPL-2.0 */
/*
 * chip.h - a TU104 host engine in software, at register level.
 *
 * Portable C with hosts that give it memory, a clock and a lock: a user-space library under
 * virtual time, and qgpu_sim.ko under the kernel's clock. The model is advanced lazily: every
 * call carries the time "now", and the model first brings itself there through exact event
 * times. So results never depend on how often it is looked at.
 *
 * Memory is read when the model passes the moment of reading, so a host that stores into memory
 * the chip may read (list, USERD, ring) brings the chip to its own time first, chip_advance(), if
 * the store must not be seen by what lies before it. Where the host cannot (a tenant's own stores
 * in the kernel), the error is at most the time since the last call: keep to chip_next_event_ns().
 *
 * The caller serialises all calls on one chip and passes a "now" that never goes back.
 * No call sleeps or allocates except create and destroy.
 */
#ifndef QGPU_SIM_CHIP_H
#define QGPU_SIM_CHIP_H

#include "qgpu_env.h"

#define CHIP_RUNLISTS 11
#define CHIP_ENGINES 13
#define CHIP_PBDMAS 12
#define CHIP_CHANNELS 4096
#define CHIP_TSGS 4096

/* What the model asks of its host. All may be called from any chip call; none may sleep. */
struct chip_host_ops {
	/* Physical memory: runlists, instance blocks, USERD. @target as in the TARGET fields.
	 * Return 0, or -EFAULT: nothing there. */
	int (*read)(void *ctx, u32 target, u64 addr, void *buf, u32 bytes);
	int (*write)(void *ctx, u32 target, u64 addr, const void *buf, u32 bytes);
	/* GPU virtual memory of the address space whose page directory base (instance block
	 * word 128/129, address part) is @pdb: GPFIFO, kernel descriptors, semaphores. */
	int (*va_read)(void *ctx, u64 pdb, u64 va, void *buf, u32 bytes);
	int (*va_write)(void *ctx, u64 pdb, u64 va, const void *buf, u32 bytes);
	/* The exact record: @tsg_id's work ran on @engine from @from_ns to @to_ns. Consecutive
	 * intervals of one visit may be merged. NULL: only the totals are kept. */
	void (*ran)(void *ctx, u32 engine, u16 tsg_id, u64 from_ns, u64 to_ns);
	/* @tsg_id's context is on @engine now (@on), or its save is finished now. NULL: not told. */
	void (*switched)(void *ctx, u32 engine, u16 tsg_id, u64 time_ns, bool on);
	/* A protocol error by whoever drives the chip (submit while pending, a buffer changed
	 * while owned, ...). @what is a constant sentence. NULL: only counted. */
	void (*protocol_error)(void *ctx, const char *what);
};

/* Knobs: latencies in ns, defaults in chip_default_config(), basis in the hardware page 10. */
struct chip_latency {
	u32 fetch_ns, fetch_entry_ns;   /* runlist fetch: base, and per entry */
	u32 pbdma_save_ns, pbdma_load_ns;
	u32 gr_save_ns, gr_load_ns;
	u32 ce_save_ns, ce_load_ns;     /* engines other than graphics */
	u32 entry_ns;                   /* least time a GPFIFO entry takes, whatever is in it */
	u32 slice_unit_ns;              /* 1024 */
	u32 userd_writeback_ns;         /* GP_GET is written back this late at most */
};

/* Each point the sources leave open: false = the harsher reading, the default. */
struct chip_switches {
	bool submit_keeps_running;      /* a submit does not end the running slice (Ampere) */
	bool doorbell_kept_when_disabled;
	bool enable_sets_pending;       /* ENABLE_SET alone is enough (before Volta) */
	bool disable_keeps_pending;     /* a disabled channel stays marked as having work, so
					 * that enabling it again needs no doorbell */
	bool gp_put_reread;             /* a channel looks at GP_PUT once more, unrung, before
					 * it goes idle */
	bool fetch_waits_for_sched_enable;
	bool list_reread;               /* entries are read again on each traversal */
	bool malformed_clears_pending;
	bool empty_list_drops_context;
	bool ignore_owned_list_change;  /* no protocol error when a snapshot's source changes */
	bool pending_submit_kept;       /* a submit while another is pending is lost, else the last
					 * one wins */
	bool submit_offset_ignored;     /* a new list is scheduled from its first entry */
	bool preempted_not_recorded;    /* SUBMIT_INFO says nothing of where a list was cut */
	bool preempt_replaces;          /* a request to preempt drops one that is pending */
	bool fault_holds_channel_only;  /* a faulted channel does not keep its TSG away */
	bool idle_pbdma_stays_valid;    /* PBDMA_STATUS goes on naming a TSG that ran out of work */
	bool absent_reads_zero;         /* a register that is not there is no PRI error */
};

struct chip_config {
	struct chip_latency lat;
	struct chip_switches sw;
	u32 boot0;
	u64 ptimer_offset_ns;           /* PTIMER = now + offset, low 5 bits 0 */
	/* What a tenant does wrong (GP_PUT outside the ring, a page that is not there, no signature)
	 * faults as on hardware, for hosts whose driver recovers from that; false: it is skipped. */
	bool tenant_errors;
};

/* How a simulated kernel can be cut (descriptor word), and which engine it is for. */
enum chip_preemption {
	CHIP_WFI = 0,                   /* at its end */
	CHIP_CTA = 1,                   /* when the blocks that run have ended */
	CHIP_CILP = 2,                  /* anywhere */
	CHIP_COPY = 3,                  /* a copy: anywhere; on the graphics runlist it runs on the
					 * graphics copy engine of its channel's runqueue */
};

/*
 * A simulated kernel: a GPFIFO entry with sync = 1 whose address points to this, in the
 * channel's GPU virtual memory. At its exact end the model writes a chip_completion at
 * @semaphore_va.
 *
 * The type is what the kernel can do. A channel whose instance block names a context image (words
 * 132 and 133, a virtual address) is cut no better than that image's own word says.
 */
struct chip_kernel {
	u64 duration_ns;
	u32 preemption;                 /* enum chip_preemption */
	u32 block_ns;                   /* CHIP_CTA: how long a block takes; 0 = all of it is one */
	u64 semaphore_va;               /* 0 = none */
	u64 payload;
};

struct chip_completion {
	u64 payload;
	u64 time_ns;                    /* chip's "now" at the exact end (not PTIMER) */
};

struct chip;

/**
 * chip_default_config() - TU104 with the latencies of the hardware page, all switches harsh
 */
void chip_default_config(struct chip_config *cfg);

/**
 * chip_create() - a chip in its reset state
 * Return: the chip, or NULL when out of memory. May sleep.
 */
struct chip *chip_create(const struct chip_config *cfg, const struct chip_host_ops *ops, void *ctx);
void chip_destroy(struct chip *chip);

/**
 * chip_read32() / chip_write32() - a register access at time @now_ns; @offset is a BAR0 offset
 */
u32 chip_read32(struct chip *chip, u64 now_ns, u32 offset);
void chip_write32(struct chip *chip, u64 now_ns, u32 offset, u32 value);

/**
 * chip_advance() - bring the model to @now_ns without touching a register
 */
void chip_advance(struct chip *chip, u64 now_ns);

/**
 * chip_next_event_ns() - when something a program can see without reading a register happens
 * next (a completion or a USERD write-back), if nobody intervenes. A host sets its timer by it.
 * It is never later than that, but may be earlier (a slice ends, say): advance and ask again.
 * Return: an absolute time, U64_MAX = nothing.
 */
u64 chip_next_event_ns(const struct chip *chip);

/* Totals, exact, as of the time of the last call on the chip. */
struct chip_totals {
	u64 run_ns;             /* some tenant's work ran on the engine */
	u64 switch_ns;          /* saving or loading */
	u64 idle_ns;            /* neither */
	u64 switches;           /* completed engine loads */
	u64 kernels;            /* completed */
	u64 submits, preempts, doorbells, protocol_errors;
};
void chip_engine_totals(const struct chip *chip, u32 engine, struct chip_totals *out);
/* Time the TSG's work ran since the id was first used; chip_tsg_forget() when ids are reused. */
u64 chip_tsg_run_ns(const struct chip *chip, u16 tsg_id);
void chip_tsg_forget(struct chip *chip, u16 tsg_id);

#endif
