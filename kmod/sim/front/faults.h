/* SPDX-License-Identifier: GPL-2.0 */
/*
 * faults.h - what goes wrong on request: controls that are refused or take long, for every caller.
 * Set through debugfs qgpu_sim/faults, one rule a line:
 *
 *   refuse CONTROL STATUS [TIMES]    the control fails with this status
 *   slow CONTROL MS [TIMES]          the call takes so long, and can't be interrupted, as when
 *                                    the firmware does not answer
 *   lose CONTROL TIMES               of 0x2080110b: enabling channels says it is done, and is not
 *   clear                            no rules
 *
 * Numbers as C writes them; without TIMES until cleared.
 */
#ifndef SIM_FRONT_FAULTS_H
#define SIM_FRONT_FAULTS_H

#include "qgpu_env.h"

#define FAULT_RULES_MAX 16u
#define FAULT_SLOW_MAX_MS 60000u

enum fault_kind { FAULT_REFUSE, FAULT_SLOW, FAULT_LOSE };

/**
 * struct fault_rule - see above
 * @value: a status code, or milliseconds; 0 of what is lost
 * @times: how often it still happens; 0: always
 */
struct fault_rule {
	enum fault_kind kind;
	u32 cmd;
	u32 value;
	u32 times;
};

struct fault_rules {
	struct fault_rule rule[FAULT_RULES_MAX];
	u32 count;
};

/* What happens to one call. */
struct fault {
	u32 status; /* RM_OK: nothing */
	u32 slow_ms;
};

/**
 * fault_rules_parse() - do what @line, without its newline, says; @line is changed
 * Return: 0, -EINVAL, -ERANGE, -ENOSPC; then nothing changed.
 */
int fault_rules_parse(struct fault_rules *rules, char *line);

/**
 * fault_rules_apply() - what happens to this call of @cmd; rules with TIMES count it
 */
struct fault fault_rules_apply(struct fault_rules *rules, u32 cmd);

/**
 * fault_rules_lose() - is what this call of @cmd asks for lost? Counted apart from the above
 */
bool fault_rules_lose(struct fault_rules *rules, u32 cmd);

#ifdef __KERNEL__
struct dentry;

/* Wait as long as a rule says. Return: the status that a rule gives this call, or RM_OK. */
u32 front_fault(u32 cmd);
/* Is what this call asks for lost? */
bool front_fault_loses(u32 cmd);
void front_faults_init(struct dentry *root);
#endif

#endif
