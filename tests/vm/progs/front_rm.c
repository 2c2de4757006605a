// SPDX-License-Identifier: GPL-2.0
/*
 * front_rm.c - what an executor does on the simulated driver: find another process's objects, set
 * its slices, stop and start it, lose it and bring it back, follow the switches. Prints TAP lines
 * (no plan). Tenants are children that push and count on command.
 */
#include <sys/prctl.h>
#include <sys/wait.h>

#include "rm_exec.h"

#define KERNEL_NS 1000000u
#define QUEUE 40u
#define RECORDS 4096u

/* What a child is told and what it tells. */
struct child {
	pid_t pid;
	volatile uint32_t ready, wanted, pushed, done;
	volatile bool saturate;
	volatile uint64_t kernel_ns;
};

static struct rm_tenant own;
static struct exec_trace trace;
static struct rm_trace_record records[RECORDS];

static void child_main(struct child *me)
{
	struct rm_tenant tenant;
	struct rm_channel channel;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	syscall(SYS_close_range, 3, ~0u, 0); /* the executor's own files */
	if (rm_tenant_open(&tenant, 0) || rm_channel_create(&tenant, &channel) ||
	    rm_tenant_schedule(&tenant))
		_exit(1);
	me->ready = 1;
	for (;;) {
		uint32_t before = channel.put;

		while (me->done < channel.put &&
		       rm_completion(&channel, me->done)->payload == (uint64_t)me->done + 1)
			me->done++;
		if (me->saturate)
			me->wanted = me->done + QUEUE;
		while (channel.put < me->wanted && channel.put - me->done < QUEUE)
			rm_push(&channel, me->kernel_ns, 2);
		/* One ring, and none without new work: who waits for its queue does not ring. */
		if (channel.put != before)
			rm_ring(&tenant, &channel);
		me->pushed = channel.put;
		sleep_ns(500000);
	}
}

static struct child *child_start(uid_t uid)
{
	struct child *child = mmap(NULL, sizeof(*child), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t deadline = now_ns() + 5000000000u;
	pid_t pid;

	child->kernel_ns = KERNEL_NS;
	pid = fork();
	if (!pid) {
		if (uid && setuid(uid))
			_exit(1);
		child_main(child);
	}
	child->pid = pid; /* the child shares it, and has another answer */
	while (!child->ready && now_ns() < deadline)
		sleep_ns(1000000);
	return child;
}

static void child_stop(struct child *child)
{
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	munmap(child, sizeof(*child));
}

static bool wait_done(const struct child *child, uint32_t count, uint64_t timeout_ns)
{
	uint64_t deadline = now_ns() + timeout_ns;

	while (child->done < count && now_ns() < deadline)
		sleep_ns(1000000);
	return child->done >= count;
}

static bool wait_pushed(const struct child *child, uint32_t count)
{
	uint64_t deadline = now_ns() + 5000000000u;

	while (child->pushed < count && now_ns() < deadline)
		sleep_ns(200000);
	return child->pushed >= count;
}

static void discovery(const struct child *child, struct exec_target *target)
{
	struct rm_handle_info_params info = { .index = RM_HANDLE_PARENT };
	struct rm_timeslice_params slice = { 0 };

	tap(exec_adopt(target, child->pid, own.client + 16),
	    "a process's client, TSG and channel are found through its file");
	tap_status(exec_probe_client(target->fd, own.client), RM_INVALID_CLIENT,
		   "another file's client answers 0x23");
	tap_status(exec_probe_client(own.ctl, target->client), RM_INVALID_CLIENT, "both ways");
	tap(target->count == 1 && target->tokens[0] >> 16 == 0, "its token names the runlist");
	info.object = target->channels[0];
	tap_status(rm_control(target->fd, target->client, target->client, RM_CTRL_GET_HANDLE_INFO,
			      &info, sizeof(info)),
		   0, "a channel has a parent");
	tap(info.result == target->tsg, "which is its TSG");
	tap_status(exec_slice(target, 3000), 0, "its slice is set from outside");
	rm_control(target->fd, target->client, target->tsg, RM_CTRL_TSG_GET_TIMESLICE, &slice,
		   sizeof(slice));
	tap(slice.timeslice_us == 3000, "and reads back");
	tap(rm_map(target->fd, target->client, target->subdevice, target->tsg, 4096, own.card) ==
		    RM_INVALID_CLIENT,
	    "mapping is the owner's alone");
}

static void counters_go_up(void)
{
	uint32_t first = 0, second = 0;

	rm_alloc(own.ctl, 0, 0, &first, RM_CLASS_ROOT_CLIENT, NULL, 0);
	rm_free(own.ctl, first, first);
	rm_alloc(own.ctl, 0, 0, &second, RM_CLASS_ROOT_CLIENT, NULL, 0);
	rm_free(own.ctl, second, second);
	tap(second == first + 1, "client handles come from a counter");
}

static void bad_gates(const struct exec_target *target)
{
	struct rm_disable_params good = { .disable = 1, .count = 1,
					  .clients = { target->client },
					  .channels = { target->channels[0] } }, p;
	uint32_t cmd = RM_CTRL_DISABLE_CHANNELS;

#define GATE(params, bytes)                                                                      \
	rm_control(target->fd, target->client, target->subdevice, cmd, params, bytes)
	p = good, p.count = 0;
	tap_status(GATE(&p, sizeof(p)), RM_INVALID_PARAM_STRUCT, "a gate of no channel is 0x3a");
	p.count = RM_DISABLE_MAX + 1;
	tap_status(GATE(&p, sizeof(p)), RM_INVALID_PARAM_STRUCT, "and so is one of 65");
	p = good, p.preempt_event = 16;
	tap_status(GATE(&p, sizeof(p)), RM_INSUFFICIENT_PERMISSIONS,
		   "an event pointer is the kernel's alone");
	p = good, p.clients[0] = 0;
	tap_status(GATE(&p, sizeof(p)), RM_INVALID_CLIENT, "a client that is none");
	p = good, p.channels[0] = target->tsg;
	tap_status(GATE(&p, sizeof(p)), RM_INVALID_OBJECT_HANDLE, "a channel that is none");
	tap_status(GATE(&good, sizeof(good) - 8), RM_INVALID_ARGUMENT, "a wrong size");
	tap_status(rm_control(target->fd, target->client, target->tsg, cmd, &good, sizeof(good)),
		   RM_NOT_SUPPORTED, "a TSG is no subdevice");
	p = good, p.count = 2;
	tap_status(GATE(&p, sizeof(p)), RM_INVALID_CLIENT, "one bad entry of two");
#undef GATE
}

static void gating(struct child *child, const struct exec_target *target)
{
	struct rm_schedule_params schedule = { .enable = 1 };
	uint32_t before;

	child->saturate = true;
	tap(wait_done(child, 20, 5000000000u), "it works");
	tap_status(exec_gate(target, true, false), 0, "stopped with preemption");
	sleep_ns(3000000); /* what was done is seen by then */
	before = child->done;
	sleep_ns(100000000);
	tap(child->done == before, "nothing ends in 100 ms");
	exec_ring(&own, target->tokens[0]);
	sleep_ns(50000000);
	tap(child->done == before, "ringing it does not start it");
	tap_status(rm_control(target->fd, target->client, target->tsg, RM_CTRL_TSG_SCHEDULE,
			      &schedule, sizeof(schedule)),
		   0, "scheduling it is taken");
	sleep_ns(50000000);
	tap(child->done == before, "and does not start it");
	tap_status(exec_gate(target, false, false), 0, "enabled");
	tap(wait_done(child, before + 20, 5000000000u), "it goes on, without a ring");
	child->saturate = false;
	child->wanted = child->pushed;
	tap(wait_done(child, child->pushed, 5000000000u), "and ends");
}

enum drained {
	DRAINED,
	LOST,	/* what was queued does not go on */
	MISSED, /* it had ended before it was stopped */
	REFUSED,
};

/* Queue work, gate while it is pending, enable. */
static enum drained drain(struct child *child, const struct exec_target *target, bool only)
{
	uint32_t wanted = child->pushed + QUEUE;
	bool missed;

	child->wanted = wanted;
	if (!wait_pushed(child, wanted) || !wait_done(child, wanted - QUEUE + 3, 5000000000u))
		return REFUSED;
	if (exec_gate(target, true, only))
		return REFUSED;
	sleep_ns(20000000);
	missed = child->done == wanted;
	if (exec_gate(target, false, only))
		return REFUSED;
	if (missed)
		return MISSED;
	return wait_done(child, wanted, 1000000000) ? DRAINED : LOST;
}

/* With a gate that preempts it is drained, with one that does not it is lost. A machine that is busy
 * with other things may be late with the gate, or the work may go on all the same: once more. */
static bool ends(struct child *child, const struct exec_target *target, enum drained wanted)
{
	enum drained end;
	int tries = 0;

	do
		end = drain(child, target, wanted == LOST);
	while (end != wanted && (end == MISSED || end == DRAINED) && ++tries < 5);
	return end == wanted;
}

static uint32_t remedy_ring(const struct exec_target *target)
{
	exec_ring(&own, target->tokens[0]);
	return 0;
}

static uint32_t remedy_slice(const struct exec_target *target)
{
	return exec_slice(target, 2000);
}

static uint32_t remedy_gate(const struct exec_target *target)
{
	uint32_t status = exec_gate(target, true, false);

	return status ? status : exec_gate(target, false, false);
}

static uint32_t no_remedy(const struct exec_target *target)
{
	uint32_t status = exec_gate(target, true, true);

	return status ? status : exec_gate(target, false, true);
}

static void losing(struct child *child, const struct exec_target *target)
{
	static const struct {
		const char *name;
		uint32_t (*run)(const struct exec_target *target);
		bool helps;
	} remedies[] = {
		{ "the same again", no_remedy, false },
		{ "one ring from outside", remedy_ring, true },
		{ "PREEMPT", exec_preempt, true },
		{ "SET_TIMESLICE", remedy_slice, true },
		{ "a gate with preemption", remedy_gate, true },
	};
	char name[128];
	size_t i;

	for (i = 0; i < 3; i++)
		tap(ends(child, target, DRAINED), "who waits for its queue survives preemption");
	for (i = 0; i < sizeof(remedies) / sizeof(remedies[0]); i++) {
		tap(ends(child, target, LOST), "without preemption it is lost");
		tap_status(remedies[i].run(target), 0, remedies[i].name);
		snprintf(name, sizeof(name), "%s %s", remedies[i].name,
			 remedies[i].helps ? "brings it back" : "does not bring it back");
		tap(wait_done(child, child->pushed, remedies[i].helps ? 3000000000u : 200000000u) ==
			    remedies[i].helps,
		    name);
		if (!remedies[i].helps) {
			exec_ring(&own, target->tokens[0]);
			wait_done(child, child->pushed, 3000000000u);
		}
	}
}

/* START, END, START ..., by seq and time without a gap. @pids: who may appear. */
static bool is_orderly(const struct rm_trace_record *r, uint32_t count, const pid_t pids[2])
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		bool start = r[i].tag == RM_TRACE_START;

		if ((r[i].tag != RM_TRACE_END) != start || r[i].type != RM_TRACE_RECORD_TYPE)
			return false;
		if (r[i].time_ns % 32 || (r[i].pid != (uint32_t)pids[0] && r[i].pid != (uint32_t)pids[1]))
			return false;
		if (!i)
			continue;
		if (r[i].seq != (uint16_t)(r[i - 1].seq + 1) || r[i].time_ns < r[i - 1].time_ns)
			return false;
		if (start == (r[i - 1].tag == RM_TRACE_START))
			return false;
		if (!start && r[i].pid != r[i - 1].pid)
			return false;
	}
	return true;
}

static uint64_t held_ns(const struct rm_trace_record *r, uint32_t count, pid_t pid)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 1; i < count; i++) {
		if (r[i].tag == RM_TRACE_END && r[i].pid == (uint32_t)pid)
			sum += r[i].time_ns - r[i - 1].time_ns;
	}
	return sum;
}

static void trace_alone(struct child *child, const struct exec_target *target)
{
	struct pollfd wait = { .fd = trace.event_fd, .events = POLLIN };
	const pid_t pids[2] = { child->pid, child->pid };
	uint32_t count;

	child->saturate = true;
	wait_done(child, child->done + 20, 5000000000u);
	exec_trace_flush(&own, &trace);
	exec_trace_read(&own, &trace, records, RECORDS);
	poll(&wait, 1, 0);
	sleep_ns(100000000);
	tap_status(exec_trace_flush(&own, &trace), 0, "a flush");
	tap(!exec_trace_read(&own, &trace, records, RECORDS), "nobody else: no record");
	tap(!poll(&wait, 1, 0), "and nothing to wake for");
	exec_preempt(target);
	sleep_ns(5000000);
	exec_trace_flush(&own, &trace);
	count = exec_trace_read(&own, &trace, records, RECORDS);
	tap(count == 1 && records[0].tag == RM_TRACE_START,
	    "the first record after a bind is a START: who was there before is not told");
	poll(&wait, 1, 0);
	tap_status(exec_preempt(target), 0, "PREEMPT of a lone tenant");
	tap(poll(&wait, 1, 1000) == 1 && (wait.revents & POLLIN), "its records wake the reader");
	sleep_ns(5000000);
	exec_trace_flush(&own, &trace);
	count = exec_trace_read(&own, &trace, records, RECORDS);
	tap(count == 2 && records[0].tag == RM_TRACE_END && records[1].tag == RM_TRACE_START &&
		    records[0].pid == (uint32_t)pids[0] && records[1].pid == (uint32_t)pids[1],
	    "they are END and START");
}

/* Gates that close while the context is being loaded: it must not stay on the engine. */
static void gate_while_loading(struct child *child, const struct exec_target *target)
{
	struct rm_preempt_params now = { 0 };
	uint32_t i, count, held = 0;

	exec_trace_flush(&own, &trace);
	exec_trace_read(&own, &trace, records, RECORDS);
	for (i = 0; i < 40; i++) {
		rm_control(target->fd, target->client, target->tsg, RM_CTRL_TSG_PREEMPT, &now,
			   sizeof(now));
		if (i % 2)
			sleep_ns(i * 2000);
		exec_gate(target, true, false);
		exec_trace_flush(&own, &trace);
		count = exec_trace_read(&own, &trace, records, RECORDS);
		held += count && records[count - 1].tag == RM_TRACE_START;
		exec_gate(target, false, false);
		sleep_ns(1000000);
	}
	tap(!held, "who is stopped while it is loaded does not hold the engine");
	tap(wait_done(child, child->done + 10, 5000000000u), "and it goes on");
}

static void trace_two(struct child *a, struct child *b, const struct exec_target *first,
		      const struct exec_target *second)
{
	const pid_t pids[2] = { a->pid, b->pid };
	uint64_t held_a, held_b;
	uint32_t count;

	exec_slice(first, 8000);
	exec_slice(second, 4000);
	/* Enough in the queue for a machine that is busy with other things. */
	a->kernel_ns = b->kernel_ns = 5 * KERNEL_NS;
	a->saturate = b->saturate = true;
	wait_done(b, b->done + 20, 5000000000u);
	exec_trace_flush(&own, &trace);
	exec_trace_read(&own, &trace, records, RECORDS);
	sleep_ns(1000000000);
	exec_trace_flush(&own, &trace);
	count = exec_trace_read(&own, &trace, records, RECORDS);
	tap(count > 40 && is_orderly(records, count, pids), "two: an orderly trace without a gap");
	held_a = held_ns(records, count, a->pid);
	held_b = held_ns(records, count, b->pid);
	printf("# %u records, held %llu : %llu\n", count, (unsigned long long)held_a,
	       (unsigned long long)held_b);
	tap(held_a > held_b * 19 / 10 && held_a < held_b * 21 / 10,
	    "slices of 8 and 4 ms hold the card 2 : 1");
	tap(trace.header->dropped == 0, "nothing was dropped");
}

static void trace_full(const struct exec_target *target)
{
	struct rm_tenant reader;
	struct exec_trace small;
	struct rm_trace_record last[2];
	uint32_t i, count;

	tap_status(rm_client_open(&reader, 0), 0, "a second reader");
	tap_status(exec_trace_open(&reader, 16, &small), 0, "with room for 15 records");
	for (i = 0; i < 20; i++) {
		exec_preempt(target);
		sleep_ns(2000000);
	}
	exec_trace_flush(&reader, &small);
	count = exec_trace_read(&reader, &small, records, RECORDS);
	tap(count == 15 && small.header->dropped > 0, "keeps the oldest and counts the others");
	for (i = 0; i < 2; i++) {
		exec_preempt(target);
		sleep_ns(2000000);
	}
	exec_trace_flush(&reader, &small);
	tap(exec_trace_read(&reader, &small, last, 1) == 1 &&
		    (uint16_t)(last[0].seq - records[14].seq) == small.header->dropped + 1,
	    "the gap in seq is what was dropped");
	tap(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, small.header_fd, 0) == MAP_FAILED,
	    "the header can't be mapped writable");
	tap(mprotect((void *)small.header, 4096, PROT_READ | PROT_WRITE) < 0,
	    "nor made so");
	close(small.event_fd);
	close(small.header_fd);
	close(small.records_fd);
	munmap((void *)small.header, 4096);
	munmap((void *)small.records, 4096);
	exec_close(&reader);
}

static void bad_traces(void)
{
	struct rm_event_buffer_params p = { .record_bytes = 32, .record_count = 16 };
	struct rm_events_get_params get = { .get = RECORDS };
	struct rm_events_enable_params enable = { .enable = 1, .flags = RM_EVENTS_KEEP_NEWEST };
	struct rm_bind_trace_params bind = { .buffer = trace.buffer, .record_bytes = 32 };
	struct rm_os_event event = { .client = 0xc1d00000 + 0xfffff, .fd = 1 };
	uint32_t handle = rm_next_handle(&own);

	tap_status(rm_alloc(own.ctl, own.client, own.client, &handle, RM_CLASS_EVENT_BUFFER, &p,
			    sizeof(p)),
		   RM_INVALID_OBJECT_HANDLE, "an event buffer without a subdevice is refused");
	p.subdevice = own.subdevice;
	p.header_memory = own.usermode;
	p.record_memory = own.usermode;
	tap_status(rm_alloc(own.ctl, own.client, own.client, &handle, RM_CLASS_EVENT_BUFFER, &p,
			    sizeof(p)),
		   RM_INVALID_OBJECT_HANDLE, "and one on something that is no memory");
	tap_status(rm_control(own.ctl, own.client, trace.buffer, RM_CTRL_EVENTS_UPDATE_GET, &get,
			      sizeof(get)),
		   RM_INVALID_ARGUMENT, "a get outside the buffer is refused");
	tap_status(rm_control(own.ctl, own.client, trace.buffer, RM_CTRL_EVENTS_ENABLE, &enable,
			      sizeof(enable)),
		   RM_NOT_SUPPORTED, "keep-newest is refused");
	tap_status(rm_control(own.ctl, own.client, own.subdevice, RM_CTRL_BIND_TRACE, &bind,
			      sizeof(bind)),
		   RM_STATE_IN_USE, "a buffer is bound once");
	tap_status(rm_call(own.ctl, RM_NR_ALLOC_OS_EVENT, &event, sizeof(event)), 0,
		   "an event of a client that is none");
	tap_status(event.status, RM_INVALID_CLIENT, "is refused");
}

/* As nobody: the trace comes, and says of others only that somebody held the card. */
static void trace_unprivileged(const struct exec_target *target)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		static struct rm_tenant reader;
		static struct exec_trace mine;
		uint32_t i, count, wrong = 0;

		if (setuid(65534) || rm_client_open(&reader, 0) || exec_trace_open(&reader, 256, &mine))
			_exit(1);
		sleep_ns(200000000);
		exec_trace_flush(&reader, &mine);
		count = exec_trace_read(&reader, &mine, records, RECORDS);
		for (i = 0; i < count; i++)
			wrong += records[i].pid || records[i].context;
		_exit(count < 4 ? 2 : wrong ? 3 : 0);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		exec_preempt(target);
		sleep_ns(5000000);
	}
	if (status)
		printf("# status %#x\n", status);
	tap(!status, "another user's switches have neither pid nor context");
}

static int write_fault(const char *rule)
{
	int fd = open("/sys/kernel/debug/qgpu_sim/faults", O_WRONLY), err = 0;

	if (fd < 0 || write(fd, rule, strlen(rule)) < 0)
		err = errno;
	close(fd);
	return err;
}

static void faults(const struct exec_target *target)
{
	uint64_t start;

	tap(!write_fault("refuse 0xa06c0103 0x1b 1"), "a refusal is set");
	tap_status(exec_slice(target, 1000), 0x1b, "one control is refused");
	tap_status(exec_slice(target, 1000), 0, "the next is not");
	tap(!write_fault("slow 0xa06c0105 300 1\n"), "a slow control is set");
	start = now_ns();
	tap_status(exec_preempt(target), 0, "it is done");
	tap(now_ns() - start >= 300000000, "after 300 ms");
	tap(write_fault("slow 1") == EINVAL, "half a rule is refused");
	tap(write_fault("slow 1 60001") == ERANGE, "and a minute's wait");
	tap(!write_fault("refuse 1 1") && !write_fault("clear"), "rules go");
}

int main(void)
{
	struct child *a, *b;
	struct exec_target first, second;

	tap_status(rm_client_open(&own, 0), 0, "an executor opens the card");
	counters_go_up();
	a = child_start(0);
	discovery(a, &first);
	bad_gates(&first);
	gating(a, &first);
	losing(a, &first);
	tap_status(exec_trace_open(&own, RECORDS, &trace), 0, "a trace is bound");
	bad_traces();
	trace_alone(a, &first);
	gate_while_loading(a, &first);
	b = child_start(1000);
	tap(exec_adopt(&second, b->pid, own.client + 64), "a second process is found");
	trace_two(a, b, &first, &second);
	trace_full(&first);
	trace_unprivileged(&first);
	faults(&first);
	exec_gate(&first, true, false);
	child_stop(a);
	close(first.fd);
	tap(wait_done(b, b->done + 50, 5000000000u), "one killed while gated does not stop the other");
	child_stop(b);
	close(second.fd);
	return tap_failed;
}
