/* SPDX-License-Identifier: GPL-2.0 */
/*
 * compat.h - the one place where kernel versions differ, 6.1 ... 6.12. Real sources are written
 * for the newest; each shim names the version that brought the newer form.
 */
#ifndef QGPU_COMPAT_H
#define QGPU_COMPAT_H

#include <linux/version.h>
#include <linux/device/class.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pm_runtime.h>
#include <net/genetlink.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0) || LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#error "qgpu is known to build on 6.1 ... 6.12 only"
#endif

/* vm_flags is changed through functions from 6.3 on. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* class_create() lost its module argument in 6.4. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define qgpu_class_create(name) class_create(THIS_MODULE, name)
#else
#define qgpu_class_create(name) class_create(name)
#endif

/* class->devnode got a const device in 6.2. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define QGPU_DEVNODE_CONST
#else
#define QGPU_DEVNODE_CONST const
#endif

/* pm_runtime_get_if_active() takes whoever uses the device for granted from 6.9 on. */
static inline int qgpu_pm_get_if_active(struct device *dev)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
	return pm_runtime_get_if_active(dev, true);
#else
	return pm_runtime_get_if_active(dev);
#endif
}

/* A dump's attributes are found through struct genl_info from 6.6 on. */
static inline struct nlattr **qgpu_dump_attrs(struct netlink_callback *cb)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
	return genl_dumpit_info(cb)->attrs;
#else
	return genl_info_dump(cb)->attrs;
#endif
}

#endif
