// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs.c - the judge's view, qgpu_sim/cardN/: "totals" and "tsgs" from the chip's own exact
 * record, "gates" for what a TSG's slice is and how many of its channels are stopped, "believes"
 * for what the driver last set beside what the registers say, "objects" for leaks. Lines of "name
 * value". "restless_ms" has it re-slice and submit all the time (restless.c). A write to "insist"
 * has the driver submit its list, whoever holds the slot, one to "power_cycle" has it take its
 * card's power away and bring it back; of TSGs that a process makes while its number is in
 * "hidden_pid" it tells nobody.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "host.h"
#include "regs.h"

static int totals_show(struct seq_file *out, void *unused)
{
	struct front_host *host = out->private;
	struct sim_record record;
	const struct chip_totals *t = &record.totals;

	host->card->ops->record(host->card, &record);
	seq_printf(out, "time_ns %llu\n", record.time_ns);
	seq_printf(out, "run_ns %llu\nswitch_ns %llu\nidle_ns %llu\n", t->run_ns, t->switch_ns,
		   t->idle_ns);
	seq_printf(out, "switches %llu\nkernels %llu\n", t->switches, t->kernels);
	seq_printf(out, "submits %llu\npreempts %llu\ndoorbells %llu\n", t->submits, t->preempts,
		   t->doorbells);
	seq_printf(out, "protocol_errors %llu\n", t->protocol_errors);
	if (record.error)
		seq_printf(out, "last_protocol_error %s\n", record.error);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(totals);

static void show_tsg(struct seq_file *out, const char *state, const struct front_past *tsg)
{
	seq_printf(out, "serial %llu pid %d tsg %u state %s run_ns %llu\n", tsg->serial, tsg->pid,
		   tsg->id, state, tsg->run_ns);
}

static void show_list(struct seq_file *out, const char *state, struct list_head *list)
{
	struct front_tsg *tsg;

	list_for_each_entry(tsg, list, node) {
		struct front_past now = {
			.serial = tsg->serial,
			.run_ns = front_tsg_run_ns(tsg),
			.pid = pid_nr(tsg->opener),
			.id = tsg->id,
		};

		show_tsg(out, state, &now);
	}
}

/* One line a TSG: those that are gone first (the last HOST_HISTORY of them). */
static int tsgs_show(struct seq_file *out, void *unused)
{
	struct front_host *host = out->private;
	u64 i = 0;

	mutex_lock(&host->mutex);
	if (host->past_count > HOST_HISTORY)
		i = host->past_count - HOST_HISTORY;
	for (; i < host->past_count; i++)
		show_tsg(out, "gone", &host->past[i % HOST_HISTORY]);
	show_list(out, "leaving", &host->zombies);
	show_list(out, "live", &host->tsgs);
	mutex_unlock(&host->mutex);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(tsgs);

static u32 gated_channels(const struct front_tsg *tsg)
{
	const struct front_channel *channel;
	u32 count = 0;

	list_for_each_entry(channel, &tsg->channels, node)
		count += channel->gate != GATE_OPEN;
	return count;
}

static int gates_show(struct seq_file *out, void *unused)
{
	struct front_host *host = out->private;
	struct front_tsg *tsg;

	mutex_lock(&host->mutex);
	list_for_each_entry(tsg, &host->tsgs, node)
		seq_printf(out, "pid %d tsg %u slice_us %llu gated %u\n", pid_nr(tsg->opener),
			   tsg->id, tsg->timeslice_us, gated_channels(tsg));
	mutex_unlock(&host->mutex);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(gates);

static void show_pair(struct seq_file *out, const char *what, u32 id, u32 wanted, u32 found)
{
	seq_printf(out, "%s %u %08x %08x\n", what, id, wanted, found);
}

/* What the driver last set, and what the registers say: name, number, wanted, found. */
static int believes_show(struct seq_file *out, void *unused)
{
	struct front_host *host = out->private;
	struct sim_card *card = host->card;
	const struct front_channel *channel;
	u32 r = card->gr_runlist, id;
	struct front_tsg *tsg;

	mutex_lock(&host->mutex);
	show_pair(out, "base_lo", r, lower_32_bits(host->last_list) | HW_TARGET_SYSMEM_COHERENT,
		  sim_card_read32(card, RUNLIST_BASE_LO(r)));
	show_pair(out, "base_hi", r, upper_32_bits(host->last_list),
		  sim_card_read32(card, RUNLIST_BASE_HI(r)));
	show_pair(out, "submit", r, host->last_entries, sim_card_read32(card, RUNLIST_SUBMIT(r)));
	show_pair(out, "sched_disable", r, 0, sim_card_read32(card, SCHED_DISABLE));
	list_for_each_entry(tsg, &host->tsgs, node) {
		list_for_each_entry(channel, &tsg->channels, node) {
			id = channel->id;
			show_pair(out, "instance", id, front_channel_instance(channel),
				  sim_card_read32(card, PCCSR_INST(id)));
			show_pair(out, "enable", id,
				  channel->scheduled && channel->gate == GATE_OPEN,
				  sim_card_read32(card, PCCSR_CHANNEL(id)) & PCCSR_ENABLE);
		}
	}
	mutex_unlock(&host->mutex);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(believes);

static ssize_t insist_write(struct file *file, const char __user *from, size_t count, loff_t *pos)
{
	front_runlist_insist(file->private_data);
	return count;
}

static const struct file_operations insist_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = insist_write,
};

static ssize_t power_write(struct file *file, const char __user *from, size_t count, loff_t *pos)
{
	front_host_power_cycle(file->private_data);
	return count;
}

static const struct file_operations power_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = power_write,
};

static int restless_get(void *host, u64 *every_ms)
{
	*every_ms = READ_ONCE(((struct front_host *)host)->restless_ms);
	return 0;
}

static int restless_set(void *host, u64 every_ms)
{
	if (every_ms > MSEC_PER_SEC)
		return -EINVAL;
	front_restless_set(host, every_ms);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(restless_fops, restless_get, restless_set, "%llu\n");

/* Of all cards: a client is of no card. */
static int objects_show(struct seq_file *out, void *unused)
{
	seq_printf(out, "files %d\n", atomic_read(&front_live.files));
	seq_printf(out, "clients %d\n", atomic_read(&front_live.clients));
	seq_printf(out, "objects %d\n", atomic_read(&front_live.objects));
	seq_printf(out, "memories %d\n", atomic_read(&front_live.memories));
	seq_printf(out, "mappings %d\n", atomic_read(&front_live.mappings));
	seq_printf(out, "tsgs %d\n", atomic_read(&front_live.tsgs));
	seq_printf(out, "channels %d\n", atomic_read(&front_live.channels));
	seq_printf(out, "zombies %d\n", atomic_read(&front_live.zombies));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(objects);

void front_debugfs_init(struct front_host *host, struct dentry *root)
{
	char name[16];

	snprintf(name, sizeof(name), "card%u", host->card->index);
	host->debug_dir = debugfs_create_dir(name, root);
	debugfs_create_file("totals", 0400, host->debug_dir, host, &totals_fops);
	debugfs_create_file("tsgs", 0400, host->debug_dir, host, &tsgs_fops);
	debugfs_create_file("gates", 0400, host->debug_dir, host, &gates_fops);
	debugfs_create_file("believes", 0400, host->debug_dir, host, &believes_fops);
	debugfs_create_file("restless_ms", 0600, host->debug_dir, host, &restless_fops);
	debugfs_create_u32("hidden_pid", 0600, host->debug_dir, &host->hidden_pid);
	debugfs_create_file("insist", 0200, host->debug_dir, host, &insist_fops);
	debugfs_create_file("power_cycle", 0200, host->debug_dir, host, &power_fops);
	debugfs_create_file("objects", 0400, host->debug_dir, host, &objects_fops);
}
