// SPDX-License-Identifier: GPL-2.0
/*
 * chip.c - the model as a whole: creation, time, totals.
 *
 * Time moves from event to event, always to the earliest one over all units and at equal times
 * in unit order. A register access first brings the model to its own time, so all events up to
 * and including that moment come before it. That is why looking changes nothing.
 */
#include "chip_state.h"

#define BOOT0_TU104 0x164000a1u

void chip_default_config(struct chip_config *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->boot0 = BOOT0_TU104;
	cfg->lat.fetch_ns = 10000;
	cfg->lat.fetch_entry_ns = 50;
	cfg->lat.pbdma_save_ns = 5000;
	cfg->lat.pbdma_load_ns = 5000;
	cfg->lat.gr_save_ns = 45000;
	cfg->lat.gr_load_ns = 45000;
	cfg->lat.ce_save_ns = 5000;
	cfg->lat.ce_load_ns = 5000;
	cfg->lat.entry_ns = 500;
	cfg->lat.slice_unit_ns = 1024;
	cfg->lat.userd_writeback_ns = 100000;
}

struct chip *chip_create(const struct chip_config *cfg, const struct chip_host_ops *ops, void *ctx)
{
	struct chip *chip = env_zalloc(sizeof(*chip));

	if (!chip)
		return NULL;
	chip->cfg = *cfg;
	chip->ops = *ops;
	chip->ctx = ctx;
	/* nothing that repeats may take no time at all */
	chip->cfg.lat.entry_ns = max(cfg->lat.entry_ns, (u32)1);
	chip->cfg.lat.slice_unit_ns = max(cfg->lat.slice_unit_ns, (u32)1);
	chip_reset_all(chip);
	return chip;
}

void chip_destroy(struct chip *chip)
{
	env_free(chip);
}

void chip_protocol_error(struct chip *chip, const char *what)
{
	chip->protocol_errors++;
	if (chip->ops.protocol_error)
		chip->ops.protocol_error(chip->ctx, what);
}

/* The clock starts with the first call. */
static void start(struct chip *chip, u64 now_ns)
{
	u32 i;

	chip->started = true;
	chip->start_ns = now_ns;
	chip->now_ns = now_ns;
	for (i = 0; i < CHIP_RUNLISTS; i++)
		chip->units[i].accounted_ns = now_ns;
}

static struct chip_unit *earliest(struct chip *chip)
{
	struct chip_unit *unit = &chip->units[0];
	u32 i;

	for (i = 1; i < CHIP_RUNLISTS; i++)
		if (chip->units[i].next_ns < unit->next_ns)
			unit = &chip->units[i];
	return unit;
}

void chip_advance(struct chip *chip, u64 now_ns)
{
	struct chip_unit *unit;
	u64 next;

	if (!chip->started)
		start(chip, now_ns);
	for (;;) {
		unit = earliest(chip);
		next = min(unit->next_ns, chip->doorbells.due_ns);
		if (next > now_ns || next == CHIP_NEVER)
			break;
		chip->now_ns = next;
		if (chip->doorbells.due_ns == next)
			chip_doorbell_arrive(chip);
		else
			chip_engine_step(chip, unit);
	}
	chip->now_ns = max(chip->now_ns, now_ns);
}

u32 chip_read32(struct chip *chip, u64 now_ns, u32 offset)
{
	chip_advance(chip, now_ns);
	return chip_pri_read(chip, offset);
}

void chip_write32(struct chip *chip, u64 now_ns, u32 offset, u32 value)
{
	chip_advance(chip, now_ns);
	chip_pri_write(chip, offset, value);
}

/* From the stages in which nothing can be seen, the earliest moment at which work runs. */
static u64 unit_next_event(const struct chip *chip, const struct chip_unit *unit)
{
	const struct chip_latency *lat = &chip->cfg.lat;
	const u32 load_ns = unit->runlist ? lat->ce_load_ns : lat->gr_load_ns;
	u64 next = unit->next_ns;

	if (unit->stage == CHIP_ENGINE_SAVE)
		next = chip_later(unit->stage_end_ns, (u64)load_ns + lat->pbdma_load_ns);
	else if (unit->stage == CHIP_ENGINE_LOAD)
		next = chip_later(unit->stage_end_ns, lat->pbdma_load_ns);
	return next;
}

u64 chip_next_event_ns(const struct chip *chip)
{
	u64 next = chip->doorbells.due_ns;
	u32 i;

	for (i = 0; i < CHIP_RUNLISTS; i++)
		next = min(next, unit_next_event(chip, &chip->units[i]));
	return next;
}

void chip_engine_totals(const struct chip *chip, u32 engine, struct chip_totals *out)
{
	const struct chip_unit *unit = NULL;
	u64 rest;
	u32 i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < CHIP_RUNLISTS; i++)
		if (chip->units[i].engine == engine)
			unit = &chip->units[i];
	if (unit) {
		*out = unit->totals;
		rest = chip->now_ns - unit->accounted_ns;
		if (unit->running && !unit->grce)
			out->run_ns += rest;
		else if (unit->stage == CHIP_REST ||
			 (unit->grce && (unit->running || chip_work_loading(unit))))
			out->idle_ns += rest;
		else
			out->switch_ns += rest;
	} else if (engine && engine <= CHIP_GRCES) {
		chip_work_grce_totals(chip, engine, out);
	} else {
		out->idle_ns = chip->now_ns - chip->start_ns;
	}
	out->protocol_errors = chip->protocol_errors;
}

u64 chip_tsg_run_ns(const struct chip *chip, u16 tsg_id)
{
	const u16 tsg = tsg_id & (CHIP_TSGS - 1);
	u64 ns = chip->tsg_run_ns[tsg];
	u32 i;

	for (i = 0; i < CHIP_RUNLISTS; i++)
		if (chip->units[i].running && chip->units[i].tsg == tsg)
			ns += chip->now_ns - chip->units[i].accounted_ns;
	return ns;
}

void chip_tsg_forget(struct chip *chip, u16 tsg_id)
{
	u32 i;

	for (i = 0; i < CHIP_RUNLISTS; i++)
		chip_work_account(chip, &chip->units[i]);
	chip->tsg_run_ns[tsg_id & (CHIP_TSGS - 1)] = 0;
}
