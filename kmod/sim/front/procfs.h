/* SPDX-License-Identifier: GPL-2.0 */
/*
 * procfs.h - /proc/driver/nvidia as programs read it to learn which cards there are: "version" and
 * gpus/ADDRESS/information.
 */
#ifndef SIM_FRONT_PROCFS_H
#define SIM_FRONT_PROCFS_H

/* All cards exist. Return: 0 or -ENOMEM. */
int front_procfs_init(void);
void front_procfs_exit(void);

#endif
