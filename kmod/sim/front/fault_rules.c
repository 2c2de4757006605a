// SPDX-License-Identifier: GPL-2.0
/*
 * fault_rules.c - the rules of faults.h as text and as what happens to a call. Portable.
 */
#include "faults.h"
#include "rm_abi.h"

#define WORDS_MAX 5u

static u32 split(char *line, char *words[WORDS_MAX])
{
	u32 count = 0;
	char *at = line;

	while (count < WORDS_MAX) {
		while (*at == ' ' || *at == '\t')
			at++;
		if (!*at)
			break;
		words[count++] = at;
		while (*at && *at != ' ' && *at != '\t')
			at++;
		if (*at)
			*at++ = '\0';
	}
	return count;
}

static int digit(char c, u32 base)
{
	int value = -1;

	if (c >= '0' && c <= '9')
		value = c - '0';
	else if (c >= 'a' && c <= 'f')
		value = c - 'a' + 10;
	else if (c >= 'A' && c <= 'F')
		value = c - 'A' + 10;
	return value < (int)base ? value : -1;
}

static int read_number(const char *text, u32 *out)
{
	u32 base = 10;
	u64 value = 0;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		int d = digit(*text, base);

		if (d < 0)
			return -EINVAL;
		value = value * base + (u32)d;
		if (value > 0xffffffffu)
			return -ERANGE;
	}
	*out = (u32)value;
	return 0;
}

static int read_loss(char *words[], u32 count, struct fault_rule *rule)
{
	int err;

	rule->kind = FAULT_LOSE;
	if (count != 3)
		return -EINVAL;
	err = read_number(words[1], &rule->cmd);
	if (!err)
		err = read_number(words[2], &rule->times);
	if (!err && !rule->times)
		err = -EINVAL;
	return err;
}

static int read_rule(char *words[], u32 count, struct fault_rule *rule)
{
	int err;

	*rule = (struct fault_rule){ .kind = FAULT_REFUSE };
	if (!strcmp(words[0], "lose"))
		return read_loss(words, count, rule);
	if (!strcmp(words[0], "slow"))
		rule->kind = FAULT_SLOW;
	else if (strcmp(words[0], "refuse"))
		return -EINVAL;
	if (count < 3 || count > 4)
		return -EINVAL;
	err = read_number(words[1], &rule->cmd);
	if (!err)
		err = read_number(words[2], &rule->value);
	if (!err && count == 4)
		err = read_number(words[3], &rule->times);
	if (err)
		return err;
	if (!rule->value || (count == 4 && !rule->times))
		return -EINVAL;
	return rule->kind == FAULT_SLOW && rule->value > FAULT_SLOW_MAX_MS ? -ERANGE : 0;
}

int fault_rules_parse(struct fault_rules *rules, char *line)
{
	char *words[WORDS_MAX];
	u32 count = split(line, words);
	struct fault_rule rule;
	int err;

	if (!count)
		return -EINVAL;
	if (!strcmp(words[0], "clear")) {
		if (count > 1)
			return -EINVAL;
		rules->count = 0;
		return 0;
	}
	err = read_rule(words, count, &rule);
	if (err)
		return err;
	if (rules->count == FAULT_RULES_MAX)
		return -ENOSPC;
	rules->rule[rules->count++] = rule;
	return 0;
}

/* Return: whether it stays. */
static bool use_up(struct fault_rule *rule)
{
	return !rule->times || --rule->times;
}

struct fault fault_rules_apply(struct fault_rules *rules, u32 cmd)
{
	struct fault fault = { .status = RM_OK };
	u32 i, kept = 0;

	for (i = 0; i < rules->count; i++) {
		struct fault_rule *rule = &rules->rule[i];

		if (rule->cmd == cmd && rule->kind != FAULT_LOSE) {
			if (rule->kind == FAULT_SLOW)
				fault.slow_ms = max(fault.slow_ms, rule->value);
			else
				fault.status = rule->value;
			if (!use_up(rule))
				continue;
		}
		rules->rule[kept++] = *rule;
	}
	rules->count = kept;
	return fault;
}

bool fault_rules_lose(struct fault_rules *rules, u32 cmd)
{
	u32 i;

	for (i = 0; i < rules->count; i++) {
		struct fault_rule *rule = &rules->rule[i];

		if (rule->cmd != cmd || rule->kind != FAULT_LOSE)
			continue;
		if (!use_up(rule))
			rules->rule[i] = rules->rule[--rules->count];
		return true;
	}
	return false;
}
