/* SPDX-License-Identifier: GPL-2.0 */
/*
 * doorbell.h - the usermode page of one open file: a page that a tenant stores a token to, without
 * a system call, and that is noticed all the same.
 */
#ifndef SIM_FRONT_DOORBELL_H
#define SIM_FRONT_DOORBELL_H

#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/mm_types.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

/* Offsets in the page, as class 0xc461 has them (hardware page 7.1, 7.2). */
#define DOORBELL_TIME_0 0x80
#define DOORBELL_TIME_1 0x84
#define DOORBELL_RING 0x90

struct front_doorbell;

/**
 * struct front_doorbell_ops - what the page asks of its owner
 * @rang: a pass found @token in the page (0: nothing was stored since the last pass). Called by
 *        the worker, may sleep. Ring every channel: an earlier token may have been overwritten.
 * @time_ns: what TIME_0/1 shall say. Must not sleep; called with interrupts off too.
 * @reads_time: the page is one that its owner reads the time from. Must not sleep.
 */
struct front_doorbell_ops {
	void (*rang)(struct front_doorbell *bell, u32 token);
	u64 (*time_ns)(struct front_doorbell *bell);
	bool (*reads_time)(struct front_doorbell *bell);
};

/**
 * struct front_doorbell - see doorbell.c
 * @mapping: every user mapping of @page, of this open file only
 * @page: the page
 * @ops: set once at creation
 * @lock: innermost; taken in fault handlers and the timer
 * @armed: [lock] a pass will come that began after the page became writable
 * @quiet: [lock] passes in a row that found nothing; each doubles the next delay
 * @clock: writes the time, from the first mapping on, as long as anybody reads it
 */
struct front_doorbell {
	struct address_space mapping;
	struct page *page;
	const struct front_doorbell_ops *ops;
	spinlock_t lock;
	bool armed;
	u8 quiet;
	struct hrtimer timer;
	struct hrtimer clock;
	struct work_struct work;
};

/**
 * front_doorbell_init() - make the page; @inode is the device node's
 * Return: 0 or -ENOMEM.
 */
int front_doorbell_init(struct front_doorbell *bell, const struct front_doorbell_ops *ops,
			struct inode *inode);

/**
 * front_doorbell_fini() - no mapping may be left (called from release); no callback runs after
 */
void front_doorbell_fini(struct front_doorbell *bell);

/**
 * front_doorbell_map() - map the page at @vma, as one first page of a shared mapping
 * Return: 0 or -EINVAL.
 */
int front_doorbell_map(struct front_doorbell *bell, struct vm_area_struct *vma);

/* The one queue that passes run on. */
int front_doorbell_module_init(void);
void front_doorbell_module_exit(void);

#endif
