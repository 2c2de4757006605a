// SPDX-License-Identifier: GPL-2.0
/*
 * turn_inside.c - the turn as it is, with a window into its core for explore.cpp. Linked before the
 * library, so that the same code is in the program once.
 */
#include "../../kmod/turn.c"

const struct core *turn_inside(const struct turn *turn);

const struct core *turn_inside(const struct turn *turn) { return &turn->core; }
