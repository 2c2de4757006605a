/* SPDX-License-Identifier: GPL-2.0 */
/*
 * procfs.h - /proc/driver/nvidia as programs read it to learn which cards there are: "version" and
 * gpus/ADDRESS/information.
 */
#ifndef SIM_FRONT_PROCFS_H
#define SIM_FRONT_PROCFS_H

struct front_host;

/* Return: 0 or -ENOMEM. */
int front_procfs_init(void);
int front_procfs_add(struct front_host *host);
/* After front_procfs_add() of it. */
void front_procfs_remove(struct front_host *host);
void front_procfs_exit(void);

#endif
