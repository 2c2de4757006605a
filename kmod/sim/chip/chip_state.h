/* SPDX-License-Identifier: GPL-2.0 */
/*
 * chip_state.h - what the files of the model share. Not for users of the model: chip.h is theirs.
 *
 * Time: chip->now_ns is the moment being worked on. Only chip.c moves it, from event to event;
 * everything else acts "now" and leaves behind the times at which it wants to be looked at again.
 */
#ifndef QGPU_SIM_CHIP_STATE_H
#define QGPU_SIM_CHIP_STATE_H

#include "chip.h"
#include "chip_fault.h"
#include "chip_regs.h"

#define CHIP_NEVER U64_MAX
#define CHIP_NONE 0xffffffffu
#define CHIP_NO_TSG 0xffffu
#define CHIP_NO_RUNLIST 0xffu
#define CHIP_LIST_ENTRIES 65536u
#define CHIP_LIST_VISITS 32768u
#define CHIP_GRCES 2u
#define CHIP_DOORBELLS_LATE 4096u
#define CHIP_RUNQUEUE_BIT 0x1000u /* beside a channel id, in the list in force */

/* Channel facts (hardware page 10.2). On PBDMA and on engine follow from the unit. */
enum chip_channel_fact {
	CHIP_BOUND = 1 << 0,
	CHIP_ENABLED = 1 << 1,
	CHIP_PENDING = 1 << 2,
	CHIP_NEXT = 1 << 3,
	CHIP_PBDMA_FAULTED = 1 << 4,
	CHIP_ENG_FAULTED = 1 << 5,
	CHIP_FORCE_RELOAD = 1 << 6,
};

/* A GPFIFO entry taken from the ring and not finished. */
struct chip_work {
	u64 remaining_ns; /* 0: none */
	u64 ran_ns;
	u64 semaphore_va;
	u64 payload;
	u32 block_ns;
	u8 preemption;	/* enum chip_preemption */
	bool is_kernel; /* false: an entry that only takes time */
	bool fails;	/* at its end it reaches for a page that is not there */
};

struct chip_channel {
	u32 inst;	       /* PCCSR_CHANNEL_INST as stored */
	u16 tsg;	       /* where the list in force has it */
	u8 runlist;	       /* CHIP_NO_RUNLIST: in no list */
	u8 facts;	       /* enum chip_channel_fact; change by chip_channel_change() only */
	u8 loaded_unit;	       /* unit it was last loaded on */
	u32 loaded_generation; /* of that unit's context; 0: never */
	u32 pbdma_error;       /* bits of INTR_0 it raises each time it is to be served */
	/* RAMFC as loaded on a PBDMA; stale when not on one */
	u8 userd_target;
	u32 gp_get, gp_put, gp_entries;
	u64 gp_base, userd, pdb;
	struct chip_work work;
};

/* One TSG header of the list in force; a TSG listed k times has k visits. */
struct chip_visit {
	u16 tsg;
	u16 entry; /* of the header; its channels follow */
	u8 channels;
	u8 timeout, scale;
};

struct chip_runlist {
	u32 base_lo, base_hi, submit;
	u32 preempted;	  /* SUBMIT_INFO without PENDING */
	bool pending;	  /* SUBMIT_INFO.PENDING */
	bool fetching;	  /* scheduling waits for the fetch */
	u64 fetch_end_ns; /* CHIP_NEVER: not running */
	/* latched by the last SUBMIT */
	u32 target, length, offset;
	u64 address, hash;
	bool owned; /* a list was fetched from there and is in force */
	u32 visit_count;
	struct chip_visit visits[CHIP_LIST_VISITS];
	u16 channels[CHIP_LIST_ENTRIES]; /* by entry number, with CHIP_RUNQUEUE_BIT */
	/* Channels of the TSG, in this list: those that could be picked, those with a fault. */
	struct {
		u16 ready, faulted;
	} tsgs[CHIP_TSGS];
};

/*
 * Where a unit is. The engine may be running in RUN, in PBDMA_SAVE and DRAIN (work that cannot
 * be cut), and in REST (the PBDMA left and nobody else wants the engine). RUN with an end is a
 * graphics copy engine that loads.
 */
enum chip_stage {
	CHIP_REST,
	CHIP_RUN,
	CHIP_PBDMA_SAVE,
	CHIP_DRAIN,
	CHIP_ENGINE_SAVE,
	CHIP_ENGINE_LOAD,
	CHIP_PBDMA_LOAD,
};

/* What keeps an engine from computing and from saving. */
enum chip_engine_fault { CHIP_ENGINE_SOUND, CHIP_ENGINE_PAGE, CHIP_ENGINE_EXCEPTION };

/* A context image, as named by the instance block of the first channel that was loaded with it. */
struct chip_context {
	u64 pdb, va;
	u32 generation; /* the unit's, when this was read; va 0: there is none */
	u8 preemption;	/* the best it allows */
};

/* A graphics copy engine. It has the graphics engine's context or none. */
struct chip_grce {
	u32 generation; /* of the context it has; the unit's: the one on the graphics engine */
	u64 run_ns, load_ns;
	u64 loads, kernels;
};

/*
 * A runlist with the PBDMA and the engine it feeds. The graphics runlist has two PBDMAs, of which
 * one at a time holds a channel, and two copy engines, on which its copies run one at a time.
 */
struct chip_unit {
	u8 runlist, engine, pbdma;
	enum chip_stage stage;
	u64 next_ns; /* earliest of the times below and of the fetch */
	u64 stage_end_ns;
	u64 slice_end_ns;  /* CHIP_NEVER outside RUN, or when the slice is over already */
	u64 kernel_end_ns; /* CHIP_NEVER when the engine does not run, or never ends */
	u64 userd_due_ns;
	u64 timeout_ns;	   /* of the switch the engine was asked for; CHIP_NEVER: it is over or out */
	u64 ctxsw_from_ns; /* when it was asked; CHIP_NEVER: no switch is under way */
	u64 kernel_from_ns;
	u64 record_from_ns; /* start of the interval not yet reported; CHIP_NEVER: none */
	u64 accounted_ns;   /* totals are complete up to here */
	u32 visit;	    /* being served; CHIP_NONE: not in the list in force */
	u32 slot;	    /* channel within the visit */
	u32 scan_from;	    /* visit at which the next scan starts */
	u32 target;	    /* visit chosen to come next; CHIP_NONE */
	u32 generation;	    /* of the context on the engine */
	u16 tsg;	    /* context on the engine; CHIP_NO_TSG */
	u16 target_tsg;	    /* as target */
	u16 last_tsg;	    /* stale id that status shows while loading */
	u16 channel;	    /* on the PBDMA, or last there */
	u16 preempt_id;	    /* whom preempt_tsg is about */
	u8 runqueue;	    /* of the channel */
	u8 grce;	    /* the work is the engine's (0), or the first's or second's GRCE */
	u32 ctxsw_info;
	enum chip_engine_fault engine_fault;
	struct chip_context context;
	bool running; /* the engine computes */
	bool cut_due; /* only until kernel_end_ns: there the blocks that run have ended */
	bool on_pbdma;
	bool held;	   /* the stage is over but for a trouble */
	bool engine_off;   /* held in reset */
	bool context_lost; /* the engine was reset under the channel on the PBDMA */
	bool timed_out;
	bool expired;	  /* slice over; the decision waits for fetch or SCHED_DISABLE */
	bool list_is_new; /* the context was scheduled from an earlier list */
	bool preempt_tsg, preempt_runlist;
	struct chip_totals totals;
};

/* Doorbells on their way, in the order in which they arrive. */
struct chip_doorbells {
	u64 due_ns; /* the first's; CHIP_NEVER: none */
	u32 first, count;
	struct {
		u64 at_ns;
		u32 token;
	} queue[CHIP_DOORBELLS_LATE];
};

struct chip {
	struct chip_config cfg;
	struct chip_host_ops ops;
	void *ctx;
	bool started;
	u64 start_ns, now_ns;
	u32 sched_disable, preempt, virtual_channel_cfg, userd_writeback;
	u32 intr_0, intr_runlist, intr_en_0, intr_en_1, intr_stall, intr_preempt_en;
	u32 bind_error, sched_error, ctxsw_timeout, intr_ctxsw;
	u32 pmc_enable, pri_address, pri_data, pri_code;
	u32 pbdma_intr[CHIP_PBDMAS], pbdma_intr_en[CHIP_PBDMAS][2];
	u64 protocol_errors;
	u32 generation; /* last one given to a context */
	u64 tsg_run_ns[CHIP_TSGS];
	struct chip_trouble trouble;
	enum chip_presence presence;
	bool firmware;
	struct chip_doorbells doorbells;
	struct chip_grce grces[CHIP_GRCES];
	struct chip_unit units[CHIP_RUNLISTS];
	struct chip_runlist runlists[CHIP_RUNLISTS];
	struct chip_channel channels[CHIP_CHANNELS];
};

static inline u64 chip_later(u64 now_ns, u64 ns)
{
	return ns > U64_MAX - now_ns ? CHIP_NEVER : now_ns + ns;
}

/* chip.c */
void chip_protocol_error(struct chip *chip, const char *what);

/* topology.c */
u32 chip_topology_device_info(u32 slot);
u32 chip_topology_pbdma_map(u32 pbdma);
u32 chip_topology_runlist_count(void);
struct chip_unit *chip_topology_unit(struct chip *chip, u32 engine);
struct chip_unit *chip_topology_pbdma_unit(struct chip *chip, u32 pbdma);
u32 chip_topology_reset_bits(void);
u32 chip_topology_reset_bit(u32 engine);
u32 chip_topology_intr_bit(u32 engine);
u32 chip_topology_runqueues(const struct chip_unit *unit);
void chip_topology_init(struct chip_unit *unit, u32 runlist);

/* reset.c */
void chip_reset_all(struct chip *chip);
void chip_reset_write(struct chip *chip, u32 value);

/* channel.c */
void chip_channel_change(struct chip *chip, u16 id, u8 set, u8 clear);
void chip_channel_list(struct chip *chip, u16 id, u8 runlist, u16 tsg);
void chip_channel_unlist(struct chip *chip, u16 id);
bool chip_channel_ready(const struct chip_channel *channel);
bool chip_channel_is_on_pbdma(const struct chip *chip, u16 id);
bool chip_channel_is_on_engine(const struct chip *chip, u16 id);
u32 chip_channel_read(struct chip *chip, u16 id);
void chip_channel_write(struct chip *chip, u16 id, u32 value);
void chip_channel_write_inst(struct chip *chip, u16 id, u32 value);
void chip_channel_kick(struct chip *chip, u16 id);

/* doorbell.c */
void chip_doorbell_ring(struct chip *chip, u32 token);
void chip_doorbell_arrive(struct chip *chip);

/* pbdma.c */
void chip_pbdma_load(struct chip *chip, struct chip_unit *unit, u16 id);
void chip_pbdma_save(struct chip *chip, struct chip_unit *unit);
bool chip_pbdma_fetch(struct chip *chip, struct chip_unit *unit);
void chip_pbdma_mark_left(struct chip *chip, u16 id);
bool chip_pbdma_has_more(const struct chip *chip, const struct chip_unit *unit);
void chip_pbdma_write_back(struct chip *chip, struct chip_unit *unit);
int chip_pbdma_complete(struct chip *chip, struct chip_unit *unit);

/* context.c */
void chip_context_read(struct chip *chip, struct chip_unit *unit, u64 pdb, const u32 *words);
u8 chip_context_limit(const struct chip_unit *unit, u8 preemption);
void chip_context_saved(struct chip *chip, const struct chip_unit *unit);

/* runlist.c */
u32 chip_runlist_read(struct chip *chip, u32 runlist, u32 reg);
void chip_runlist_write(struct chip *chip, u32 runlist, u32 reg, u32 value);
bool chip_runlist_blocked(const struct chip *chip, const struct chip_unit *unit);
void chip_runlist_start_fetch(struct chip *chip, u32 runlist);
void chip_runlist_finish_fetch(struct chip *chip, u32 runlist);
u32 chip_runlist_find_tsg(const struct chip_runlist *rl, u16 tsg);
u64 chip_runlist_slice_ns(const struct chip *chip, const struct chip_visit *visit);
bool chip_runlist_reread(struct chip *chip, u32 runlist);

/* rotation.c */
u16 chip_rotation_channel(const struct chip_runlist *rl, u32 entry);
bool chip_rotation_serviceable(const struct chip *chip, const struct chip_unit *unit, u32 visit);
u32 chip_rotation_scan(struct chip *chip, struct chip_unit *unit);
bool chip_rotation_pick_first(struct chip *chip, struct chip_unit *unit);
bool chip_rotation_pick_next(struct chip *chip, struct chip_unit *unit);

/* work.c */
void chip_work_account(struct chip *chip, struct chip_unit *unit);
void chip_work_record(struct chip *chip, struct chip_unit *unit);
void chip_work_start(struct chip *chip, struct chip_unit *unit);
void chip_work_loaded(struct chip *chip, struct chip_unit *unit);
bool chip_work_loading(const struct chip_unit *unit);
void chip_work_cut(struct chip *chip, struct chip_unit *unit);
void chip_work_stop(struct chip *chip, struct chip_unit *unit);
void chip_work_over(struct chip *chip, struct chip_unit *unit);
void chip_work_forget(struct chip *chip, struct chip_unit *unit);
void chip_work_grce_totals(const struct chip *chip, u32 grce, struct chip_totals *out);

/* engine.c */
void chip_engine_arm(struct chip *chip, struct chip_unit *unit);
void chip_engine_step(struct chip *chip, struct chip_unit *unit);
void chip_engine_kick(struct chip *chip, struct chip_unit *unit);
void chip_engine_expire(struct chip *chip, struct chip_unit *unit);
void chip_engine_new_list(struct chip *chip, struct chip_unit *unit, u32 start);
void chip_engine_preempt(struct chip *chip, struct chip_unit *unit);
bool chip_engine_preempting(const struct chip *chip, const struct chip_unit *unit);
void chip_engine_cancel_target(struct chip_unit *unit);
void chip_engine_leave(struct chip *chip, struct chip_unit *unit);
void chip_engine_proceed(struct chip *chip, struct chip_unit *unit);
void chip_engine_drop_context(struct chip *chip, struct chip_unit *unit);
void chip_engine_release(struct chip *chip, struct chip_unit *unit);

/* ctxsw.c */
void chip_ctxsw_begin(struct chip *chip, struct chip_unit *unit);
void chip_ctxsw_due(struct chip *chip, struct chip_unit *unit);
void chip_ctxsw_end(struct chip_unit *unit, u32 how);
void chip_ctxsw_write_timeout(struct chip *chip, u32 value);
u32 chip_ctxsw_info(struct chip *chip, u32 engine);

/* fault.c */
void chip_fault_engine(struct chip *chip, struct chip_unit *unit, enum chip_engine_fault fault);
void chip_fault_pbdma_page(struct chip *chip, struct chip_unit *unit);
void chip_fault_pbdma(struct chip *chip, struct chip_unit *unit, u32 bits);
void chip_fault_cleared(struct chip *chip, u16 id);
u32 chip_fault_pbdma_mask(const struct chip *chip);
u32 chip_fault_engine_mask(const struct chip *chip);
bool chip_fault_frozen(const struct chip *chip, const struct chip_unit *unit);
u32 chip_fault_pbdma_read(const struct chip *chip, u32 pbdma, u32 reg);
void chip_fault_pbdma_write(struct chip *chip, u32 pbdma, u32 reg, u32 value);

/* trouble.c */
bool chip_trouble_holds(const struct chip *chip, const struct chip_unit *unit);

/* pri.c */
u32 chip_pri_read(struct chip *chip, u32 offset);
void chip_pri_write(struct chip *chip, u32 offset, u32 value);
u32 chip_pri_absent(struct chip *chip, u32 offset);

/* control.c */
u32 chip_control_read(struct chip *chip, u32 offset);
void chip_control_write(struct chip *chip, u32 offset, u32 value);

/* status.c */
u32 chip_status_engine(struct chip *chip, u32 engine);
u32 chip_status_engine_inst(struct chip *chip, u32 engine);
u32 chip_status_engine_next_inst(struct chip *chip, u32 engine);
u32 chip_status_pbdma(struct chip *chip, u32 pbdma);
u32 chip_status_pbdma_inst(struct chip *chip, u32 pbdma);
u32 chip_status_pbdma_userd(struct chip *chip, u32 pbdma);
u32 chip_status_pbdma_userd_hi(struct chip *chip, u32 pbdma);
u32 chip_status_pbdma_reg(struct chip *chip, u32 pbdma, u32 reg);
u32 chip_status_runlist_info(struct chip *chip, u32 runlist);
u32 chip_status_sched(struct chip *chip);

/* intr.c */
bool chip_intr_owns(u32 offset);
u32 chip_intr_read(struct chip *chip, u32 offset);
void chip_intr_write(struct chip *chip, u32 offset, u32 value);
void chip_intr_bind_error(struct chip *chip, u32 code);
void chip_intr_sched_error(struct chip *chip, u32 code);
void chip_intr_runlist_event(struct chip *chip, u32 runlist);
void chip_intr_tsg_preempted(struct chip *chip);

/* mmio.c */
u32 chip_mmio_read(struct chip *chip, u32 offset);
void chip_mmio_write(struct chip *chip, u32 offset, u32 value);

/* timer.c */
u32 chip_timer_low(const struct chip *chip);
u32 chip_timer_high(const struct chip *chip);

#endif
