/* SPDX-License-Identifier: GPL-2.0 */
/*
 * core_types.h - what the scheduling core is told and what it answers. Plain structs; time is
 * passed in; nothing here knows a register, a lock, a process or a percent sign. The theory and
 * the bounds are in theory.rst.
 */
#ifndef QGPU_CORE_TYPES_H
#define QGPU_CORE_TYPES_H

#include "qgpu_env.h"

#define CORE_PPM 1000000u

/* Same values as enum qgpu_policy / qgpu_class / qgpu_source of the uapi (netlink.c asserts it). */
enum core_policy { CORE_BEST_EFFORT, CORE_EQUAL_SHARE, CORE_FIXED_SHARE, CORE_BURST_SHARE };
enum core_class { CORE_NORMAL, CORE_ONLINE, CORE_OFFLINE };
enum core_source { CORE_BY_WINDOW, CORE_BY_TRACE, CORE_BY_SAMPLES, CORE_BY_INFERENCE };

/**
 * struct core_params - the card; set at init, changed only by calibration
 * @switch_ns: s, time lost by one switch between two TSGs (100,000 on the model)
 * @takeoff_ns: p, time to take a TSG off at a window's end (50,000)
 * @sample_ns: P, mean distance of two looks with two or more awake (500,000)
 * @window_look_ns: the same in windows whose owner runs in pieces (125,000)
 * @idle_look_ns: distance of looks with fewer than two awake (5,000,000)
 * @loss_ppm: l, loss aimed at (10,000)
 * @smooth_ns: E, deviation aimed at over one second (5,000,000)
 * @soft_wake_ns: wait the planner aims at where none was promised (50,000,000)
 * @period_min_ns: F of the shortest windows on the clock and ceilings; longer ones are 2^k as long
 *                 (20,000,000)
 * @tenure_ns: the least window of an online tenant's neighbour (20,000,000)
 * @slice_min_ns, @slice_max_ns: what the chip can express
 * @slice_round: what a slice becomes when written (hw_ops.slice_round)
 */
struct core_params {
	u64 switch_ns, takeoff_ns, sample_ns, window_look_ns, idle_look_ns;
	u32 loss_ppm;
	u64 smooth_ns, soft_wake_ns, period_min_ns, tenure_ns;
	u64 slice_min_ns, slice_max_ns;
	u64 (*slice_round)(u64 slice_ns);
};

/* A tenant's settings as asked. Defaults: weight 100, ceiling CORE_PPM, the rest 0. */
struct core_settings {
	u32 weight;		/* 1 ... 10000 */
	u32 guarantee_ppm;	/* 0 ... CORE_PPM */
	u32 ceiling_ppm;	/* 1 ... CORE_PPM */
	enum core_class class_; /* "class" is a word of C++ */
	u64 wake_ns;		/* 0 = no promise */
	u64 hang_ns;		/* 0 = off */
};

/* Cumulative, ns; the same numbers that decide. */
/* How many of what lasted how long: bin k has those below 2^(16 + k) ns (65.5 us ... 1.07 s) that
 * no earlier one has, the last all that are longer. */
#define CORE_HIST_BINS 16
#define CORE_HIST_SHIFT 16

struct core_hist {
	u64 bins[CORE_HIST_BINS];
	u64 sum_ns;
};

struct core_counters {
	u64 run_ns, run_err_ns; /* err: published bound of run_ns's error */
	u64 wait_ns, throttled_ns;
	u64 wait_max_ns; /* longest single wait, as the looks saw it */
	u64 windows, preempts, overruns;
	u64 hangs; /* kernels that ran longer than hang_ns while others waited */
	enum core_source source;
	struct core_hist waits; /* from having work to running, as wait_max_ns */
	struct core_hist tails; /* of work that could not be cut when it was to leave */
};

#endif
