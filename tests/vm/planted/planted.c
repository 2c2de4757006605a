// SPDX-License-Identifier: GPL-2.0
/*
 * planted.c - one bug of a kind when it is loaded with bug=KIND: proof that the debug kernel's
 * detectors see such bugs at all. Loaded by tests/vm/planted/run.sh alone, in a VM.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static char *bug = "";
module_param(bug, charp, 0444);

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static DEFINE_SPINLOCK(spinlock);
static int four[4];
static int at = 4, shift = 40; /* read where the compiler cannot see what they are */

static void write_beyond(void) {
  char *p = kmalloc(100, GFP_KERNEL);

  if (p) WRITE_ONCE(p[96 + READ_ONCE(at)], 1);
  kfree(p);
}

static void use_freed(void) {
  char *p = kmalloc(100, GFP_KERNEL);

  kfree(p);
  if (p) READ_ONCE(p[READ_ONCE(at)]);
}

static void take(struct mutex *outer, struct mutex *inner) {
  mutex_lock(outer);
  mutex_lock(inner);
  mutex_unlock(inner);
  mutex_unlock(outer);
}

static void lock_both_ways(void) {
  take(&first, &second);
  take(&second, &first);
}

static void sleep_in_atomic(void) {
  spin_lock(&spinlock);
  msleep(1);
  spin_unlock(&spinlock);
}

static void leak(void) {
  char *p = kmalloc(300, GFP_KERNEL);

  /* Nothing points to it from here on. */
  OPTIMIZER_HIDE_VAR(p);
  p = NULL;
}

static const struct {
  const char *name;
  void (*plant)(void);
} bugs[] = {
    {"write-beyond", write_beyond},
    {"use-freed", use_freed},
    {"lock-both-ways", lock_both_ways},
    {"sleep-in-atomic", sleep_in_atomic},
    {"leak", leak},
};

static int __init planted_init(void) {
  size_t i;

  if (!strcmp(bug, "index"))
    four[READ_ONCE(at)] = 1;
  else if (!strcmp(bug, "shift"))
    four[0] = 1 << READ_ONCE(shift);
  for (i = 0; i < ARRAY_SIZE(bugs); i++)
    if (!strcmp(bug, bugs[i].name)) bugs[i].plant();
  return 0;
}

static void __exit planted_exit(void) {}

module_init(planted_init);
module_exit(planted_exit);
MODULE_DESCRIPTION("bugs for the debug kernel to find");
MODULE_LICENSE("GPL");
