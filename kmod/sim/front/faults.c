// SPDX-License-Identifier: GPL-2.0
/*
 * faults.c - the rules in force, and their file in debugfs (faults.h).
 */
#include "faults.h"

#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#define LINE_BYTES 128u

static DEFINE_MUTEX(rules_lock);
static struct fault_rules rules; /* [rules_lock] */

u32 front_fault(u32 cmd)
{
	struct fault fault = {};

	if (!READ_ONCE(rules.count))
		return 0;
	mutex_lock(&rules_lock);
	fault = fault_rules_apply(&rules, cmd);
	mutex_unlock(&rules_lock);
	if (fault.slow_ms)
		msleep(fault.slow_ms);
	return fault.status;
}

bool front_fault_loses(u32 cmd)
{
	bool lost = false;

	if (!READ_ONCE(rules.count))
		return false;
	mutex_lock(&rules_lock);
	lost = fault_rules_lose(&rules, cmd);
	mutex_unlock(&rules_lock);
	return lost;
}

static int rules_show(struct seq_file *out, void *unused)
{
	u32 i;

	mutex_lock(&rules_lock);
	for (i = 0; i < rules.count; i++) {
		const struct fault_rule *rule = &rules.rule[i];

		if (rule->kind == FAULT_LOSE)
			seq_printf(out, "lose %#x %u\n", rule->cmd, rule->times);
		else
			seq_printf(out, "%s %#x %#x %u\n",
				   rule->kind == FAULT_SLOW ? "slow" : "refuse", rule->cmd,
				   rule->value, rule->times);
	}
	mutex_unlock(&rules_lock);
	return 0;
}

static int rules_open(struct inode *inode, struct file *filp)
{
	return single_open(filp, rules_show, NULL);
}

/* One rule a write. */
static ssize_t rules_write(struct file *filp, const char __user *user, size_t bytes, loff_t *at)
{
	char line[LINE_BYTES];
	int err;

	if (bytes >= sizeof(line))
		return -E2BIG;
	if (copy_from_user(line, user, bytes))
		return -EFAULT;
	line[bytes] = '\0';
	strim(line);
	mutex_lock(&rules_lock);
	err = fault_rules_parse(&rules, line);
	mutex_unlock(&rules_lock);
	return err ? err : (ssize_t)bytes;
}

static const struct file_operations rules_fops = {
	.owner = THIS_MODULE,
	.open = rules_open,
	.read = seq_read,
	.write = rules_write,
	.llseek = seq_lseek,
	.release = single_release,
};

void front_faults_init(struct dentry *root)
{
	debugfs_create_file("faults", 0600, root, NULL, &rules_fops);
}
