// SPDX-License-Identifier: GPL-2.0
/*
 * front_abuse.c - what a hostile or broken tenant may try on the simulated driver. Each case has
 * one right answer: errno for a malformed call, the driver's own status for the rest. Prints TAP
 * lines (no plan) and exits with their verdict. That nothing is left is the caller's to check.
 */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "rm.h"

#define FAILED(e) (RM_IOCTL_FAILED | (uint32_t)(e))
#define BAD_POINTER ((void *)16)

static struct rm_tenant tenant;

static void malformed_calls(void)
{
	uint8_t data[256];
	struct rm_xfer xfer = { 0 };
	struct rm_version version = { .cmd = RM_VERSION_CMD_QUERY };
	struct rm_free free_call = { .client = tenant.client, .object = 1 };
	uint32_t nr, bytes, wrong = 0;

	memset(data, 0, sizeof(data));
	for (nr = 0; nr < 256; nr++) {
		if (nr == RM_NR_CARD_INFO || nr == RM_NR_XFER)
			continue;
		for (bytes = 0; bytes <= 200; bytes += 4) {
			bool right = (nr == RM_NR_REGISTER_FD && bytes == 4) ||
				     (nr == RM_NR_CHECK_VERSION && bytes == 72) ||
				     (nr == RM_NR_ALLOC_OS_EVENT && bytes == 16) ||
				     (nr == RM_NR_FREE_OS_EVENT && bytes == 16) ||
				     (nr == RM_NR_SYS_PARAMS && bytes == 8) ||
				     (nr == RM_NR_WAIT_OPEN && bytes == 8) ||
				     (nr == RM_NR_FREE && bytes == 16) ||
				     (nr == RM_NR_CONTROL && bytes == 32) ||
				     (nr == RM_NR_ALLOC && (bytes == 32 || bytes == 48)) ||
				     (nr == RM_NR_MAP_MEMORY && bytes == 56) ||
				     (nr == RM_NR_UNMAP_MEMORY && bytes == 32) ||
				     (nr == RM_NR_MAP_DMA && bytes == 56) ||
				     (nr == RM_NR_UNMAP_DMA && bytes == 48);

			if (!right && rm_call(tenant.ctl, nr, data, bytes) != FAILED(EINVAL))
				wrong++;
		}
	}
	tap(!wrong, "every unknown call and every wrong size is EINVAL");
	tap_status(rm_call(tenant.ctl, RM_NR_FREE, BAD_POINTER, sizeof(struct rm_free)),
		   FAILED(EFAULT), "a bad pointer is EFAULT");
	tap_status(rm_call(tenant.card, RM_NR_FREE, &free_call, sizeof(free_call)), FAILED(EINVAL),
		   "a control call on the card's node is EINVAL");
	tap_status(rm_call(tenant.ctl, RM_NR_CARD_INFO, data, 4), FAILED(EINVAL),
		   "a card list that is too short is EINVAL");

	xfer.nr = RM_NR_CHECK_VERSION;
	xfer.bytes = sizeof(version);
	xfer.params = (uintptr_t)&version;
	tap_status(rm_call(tenant.ctl, RM_NR_XFER, &xfer, sizeof(xfer)), 0, "the indirect form works");
	tap(version.reply == 1 && !strcmp(version.text, RM_VERSION), "and tells the version");
	xfer.bytes = RM_IOCTL_BYTES_MAX + 1;
	tap_status(rm_call(tenant.ctl, RM_NR_XFER, &xfer, sizeof(xfer)), FAILED(EINVAL),
		   "the indirect form has a largest size");
	xfer.bytes = sizeof(version);
	xfer.params = 16;
	tap_status(rm_call(tenant.ctl, RM_NR_XFER, &xfer, sizeof(xfer)), FAILED(EFAULT),
		   "and checks its pointer");
	xfer.nr = RM_NR_XFER;
	xfer.params = (uintptr_t)&xfer;
	xfer.bytes = sizeof(xfer);
	tap_status(rm_call(tenant.ctl, RM_NR_XFER, &xfer, sizeof(xfer)), FAILED(EINVAL),
		   "it does not nest");
	strcpy(version.text, "1.2.3");
	version.cmd = RM_VERSION_CMD_STRICT;
	tap_status(rm_call(tenant.ctl, RM_NR_CHECK_VERSION, &version, sizeof(version)),
		   FAILED(EINVAL), "another version is refused");
}

static uint32_t new_object(uint32_t parent, uint32_t handle, uint32_t klass, void *params,
			   uint32_t bytes)
{
	return rm_alloc(tenant.ctl, tenant.client, parent, &handle, klass, params, bytes);
}

static void bad_allocations(void)
{
	struct rm_device_params device = { .device_id = 31 };
	struct rm_tsg_params tsg = { .vaspace = tenant.vaspace };
	struct rm_memory_params memory;
	uint32_t handle = 0, i, status = 0;
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	tap_status(new_object(tenant.device, 0, 0xabcd, NULL, 0), RM_INVALID_CLASS, "unknown class");
	tap_status(new_object(tenant.client, 0, RM_CLASS_DEVICE, &device, sizeof(device)),
		   RM_INVALID_CLASS, "a card that is not there");
	tap_status(new_object(tenant.client, 0, RM_CLASS_TSG, &tsg, sizeof(tsg)),
		   RM_INVALID_OBJECT_PARENT, "a parent of the wrong class");
	tap_status(new_object(0x12345, 0, RM_CLASS_TSG, &tsg, sizeof(tsg)), RM_OBJECT_NOT_FOUND,
		   "a parent that is not there");
	tap_status(new_object(tenant.device, tenant.tsg, RM_CLASS_TSG, &tsg, sizeof(tsg)),
		   RM_INSERT_DUPLICATE_NAME, "a handle that is in use");
	tap_status(new_object(tenant.device, RM_OBJECT_HANDLE_BASE, RM_CLASS_TSG, &tsg,
			      sizeof(tsg)),
		   RM_INVALID_OBJECT_HANDLE, "a handle of the driver's own range");
	tap_status(new_object(tenant.device, tenant.client, RM_CLASS_TSG, &tsg, sizeof(tsg)),
		   RM_INVALID_OBJECT_HANDLE, "the client's own handle");
	tap_status(new_object(tenant.device, 77, RM_CLASS_TSG, &tsg, sizeof(tsg)), 0,
		   "a handle of the caller's choice");
	tap_status(new_object(tenant.device, 77, RM_CLASS_TSG, &tsg, sizeof(tsg)),
		   RM_INSERT_DUPLICATE_NAME, "the same handle twice");
	tap_status(rm_free(tenant.ctl, tenant.client, 77), 0, "it can be freed");
	tap_status(rm_free(tenant.ctl, tenant.client, 77), 0, "and freed again");
	tap_status(new_object(tenant.device, 0, RM_CLASS_TSG, NULL, 0), RM_INVALID_ARGUMENT,
		   "parameters that are missing");
	tap_status(new_object(tenant.device, 0, RM_CLASS_TSG, BAD_POINTER, sizeof(tsg)),
		   RM_INVALID_ADDRESS, "parameters that are not there");
	tap_status(new_object(tenant.subdevice, 0, RM_CLASS_USERMODE, &tsg, sizeof(tsg)),
		   RM_INVALID_ARGUMENT, "parameters where there are none");
	tsg.vaspace = tenant.device;
	tap_status(new_object(tenant.device, 0, RM_CLASS_TSG, &tsg, sizeof(tsg)),
		   RM_INVALID_OBJECT_HANDLE, "an address space that is none");
	tsg.vaspace = tenant.vaspace;
	tsg.engine_type = 9;
	tap_status(new_object(tenant.device, 0, RM_CLASS_TSG, &tsg, sizeof(tsg)),
		   RM_INVALID_ARGUMENT, "an engine that is not there");

	rm_init_memory_params(&memory, 0);
	tap_status(new_object(tenant.device, 0, RM_CLASS_MEMORY_SYSTEM, &memory, sizeof(memory)),
		   RM_INVALID_ARGUMENT, "no bytes");
	rm_init_memory_params(&memory, ~0ull);
	tap_status(new_object(tenant.device, 0, RM_CLASS_MEMORY_SYSTEM, &memory, sizeof(memory)),
		   RM_NO_MEMORY, "all bytes there are");
	rm_init_memory_params(&memory, 4096);
	memory.attr = 0;
	tap_status(new_object(tenant.device, 0, RM_CLASS_MEMORY_SYSTEM, &memory, sizeof(memory)),
		   RM_INVALID_ARGUMENT, "video memory");
	/* The answer can't be written: the object must not stay. */
	rm_init_memory_params(&memory, 4096);
	munmap(page, 4096);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(page, &memory, sizeof(memory));
	mprotect(page, 4096, PROT_READ);
	tap_status(new_object(tenant.device, 4711, RM_CLASS_MEMORY_SYSTEM, page, sizeof(memory)),
		   RM_INVALID_ADDRESS, "an answer that can't be written");
	tap_status(rm_map(tenant.ctl, tenant.client, tenant.device, 4711, 4096, tenant.ctl),
		   RM_OBJECT_NOT_FOUND, "and its object is not there");
	munmap(page, 4096);

	rm_init_memory_params(&memory, 64 << 20);
	for (i = 0; i < 8 && !status; i++) {
		handle = 5000 + i;
		status = new_object(tenant.device, handle, RM_CLASS_MEMORY_SYSTEM, &memory,
				    sizeof(memory));
	}
	tap_status(status, RM_NO_MEMORY, "memory ends at the client's limit");
	for (i = 0; i < 8; i++)
		rm_free(tenant.ctl, tenant.client, 5000 + i);
	tsg.engine_type = 0;
	for (i = 0, status = 0; i < 5000 && !status; i++)
		status = new_object(tenant.device, 10000 + i, RM_CLASS_TSG, &tsg, sizeof(tsg));
	tap_status(status, RM_INSUFFICIENT_RESOURCES, "TSGs end at the client's limit");
	for (i = 0, status = 0; i < 5000 && !status; i++)
		status = new_object(tenant.subdevice, 20000 + i, RM_CLASS_USERMODE, NULL, 0);
	tap_status(status, RM_INSUFFICIENT_RESOURCES, "objects end at the client's limit");
	tap_status(rm_free(tenant.ctl, tenant.client, tenant.client), 0, "the client can be freed");
	tap_status(new_object(tenant.device, 0, RM_CLASS_TSG, &tsg, sizeof(tsg)), RM_INVALID_CLIENT,
		   "and is gone");
	for (i = 0, status = 0; i < 5000 && !status; i++) {
		handle = 0;
		status = rm_alloc(tenant.ctl, 0, 0, &handle, RM_CLASS_ROOT_CLIENT, NULL, 0);
	}
	tap_status(status, RM_INSUFFICIENT_RESOURCES, "clients end at the file's limit");
	close(tenant.bell_fd);
	close(tenant.card);
	close(tenant.ctl);
	munmap((void *)tenant.bell, RM_USERMODE_BYTES);
	tap_status(rm_tenant_open(&tenant, 0), 0, "a new file starts with nothing");
}

static void bad_channels(void)
{
	struct rm_channel_params good = { .engine_type = RM_ENGINE_GRAPHICS }, p;
	struct rm_buffer buffer;
	uint32_t handle, i, status = 0;

	tap_status(rm_buffer_create(&tenant, 65536, &buffer), 0, "memory for channels");
	good.gpfifo_va = buffer.va + 4096;
	good.gpfifo_entries = 64;
	good.userd_memory[0] = buffer.handle;
	p = good, p.gpfifo_entries = 63;
	tap_status(new_object(tenant.tsg, 0, RM_CLASS_CHANNEL, &p, sizeof(p)), RM_INVALID_ARGUMENT,
		   "GPFIFO of 63 entries");
	p = good, p.gpfifo_entries = 0;
	tap_status(new_object(tenant.tsg, 0, RM_CLASS_CHANNEL, &p, sizeof(p)), RM_INVALID_ARGUMENT,
		   "GPFIFO of none");
	p = good, p.gpfifo_entries = 1u << 31;
	tap_status(new_object(tenant.tsg, 0, RM_CLASS_CHANNEL, &p, sizeof(p)), RM_INVALID_ARGUMENT,
		   "GPFIFO of 2^31");
	p = good, p.gpfifo_va = ~7ull;
	tap_status(new_object(tenant.tsg, 0, RM_CLASS_CHANNEL, &p, sizeof(p)), RM_INVALID_ARGUMENT,
		   "GPFIFO beyond the address space");
	p = good, p.userd_offset[0] = 65536;
	tap_status(new_object(tenant.tsg, 0, RM_CLASS_CHANNEL, &p, sizeof(p)), RM_INVALID_ARGUMENT,
		   "USERD beyond its memory");
	p = good, p.userd_offset[0] = 8;
	tap_status(new_object(tenant.tsg, 0, RM_CLASS_CHANNEL, &p, sizeof(p)), RM_INVALID_ARGUMENT,
		   "USERD off its alignment");
	p = good, p.userd_memory[0] = tenant.vaspace;
	tap_status(new_object(tenant.tsg, 0, RM_CLASS_CHANNEL, &p, sizeof(p)),
		   RM_INVALID_OBJECT_HANDLE, "USERD in what is no memory");
	tap_status(new_object(tenant.device, 0, RM_CLASS_CHANNEL, &good, sizeof(good)),
		   RM_INVALID_OBJECT_PARENT, "a channel outside a TSG");
	for (i = 0; i < 1000 && !status; i++) {
		p = good, p.userd_offset[0] = i % 8 * 512;
		handle = 30000 + i;
		status = new_object(tenant.tsg, handle, RM_CLASS_CHANNEL, &p, sizeof(p));
	}
	tap_status(status, RM_INSUFFICIENT_RESOURCES, "channels end at the TSG's limit");
	tap(i == 129, "which is 128");
	tap_status(rm_tenant_schedule(&tenant), 0, "all of them can be scheduled");
	/* Nothing was mapped under some of them later: the card must bear it. */
	tap_status(rm_free(tenant.ctl, tenant.client, buffer.handle), 0,
		   "their memory can be freed under them");
	tenant.bell[RM_USERMODE_DOORBELL / 4] = 1;
	sleep_ns(2000000);
	tap_status(rm_free(tenant.ctl, tenant.client, tenant.vaspace), 0,
		   "and their address space, and they with it");
	tap_status(rm_tenant_schedule(&tenant), RM_OBJECT_NOT_FOUND, "the TSG went too");
	munmap(buffer.cpu, buffer.bytes);
	close(buffer.fd);
}

static void bad_controls(void)
{
	struct rm_timeslice_params slice = { 0 };
	struct rm_tsg_info_params info = { 0 };
	struct rm_token_params token = { 0 };
	struct rm_channel c;

	tap_status(rm_tenant_open(&tenant, 0), 0, "another tenant");
	tap_status(rm_tenant_schedule(&tenant), RM_INVALID_STATE, "an empty TSG can't be scheduled");
	tap_status(rm_channel_create(&tenant, &c), 0, "with a channel");
#define CONTROL(object, cmd, params, bytes)                                                        \
	rm_control(tenant.ctl, tenant.client, object, cmd, params, bytes)
	tap_status(CONTROL(tenant.tsg, 0xa06c0199, &slice, 8), RM_NOT_SUPPORTED, "unknown control");
	tap_status(CONTROL(tenant.tsg, 0xa06c0000, NULL, 0), 0, "the null control");
	tap_status(CONTROL(tenant.tsg, RM_CTRL_TSG_GET_INFO, &info, 8), RM_INVALID_ARGUMENT,
		   "a control of the wrong size");
	tap_status(CONTROL(tenant.tsg, RM_CTRL_TSG_GET_INFO, NULL, 4), RM_INVALID_ARGUMENT,
		   "a control without its parameters");
	tap_status(CONTROL(tenant.tsg, RM_CTRL_TSG_GET_INFO, BAD_POINTER, 4), RM_INVALID_ADDRESS,
		   "a control with a bad pointer");
	tap_status(CONTROL(tenant.device, RM_CTRL_TSG_GET_INFO, &info, 4), RM_NOT_SUPPORTED,
		   "a control on the wrong class");
	tap_status(CONTROL(0xdead, RM_CTRL_TSG_GET_INFO, &info, 4), RM_OBJECT_NOT_FOUND,
		   "a control on nothing");
	tap_status(CONTROL(tenant.tsg, RM_CTRL_TSG_GET_INFO, &info, 4), 0, "the TSG has an id");
	tap_status(CONTROL(tenant.tsg, RM_CTRL_TSG_GET_TIMESLICE, &slice, 8), 0, "and a slice");
	tap(slice.timeslice_us == 1024, "of 1024 us");
	slice.timeslice_us = ~0ull;
	tap_status(CONTROL(tenant.tsg, RM_CTRL_TSG_SET_TIMESLICE, &slice, 8), RM_INVALID_ARGUMENT,
		   "a slice beyond the hardware's");
	slice.timeslice_us = 2048;
	tap_status(CONTROL(tenant.tsg, RM_CTRL_TSG_SET_TIMESLICE, &slice, 8), 0, "2048 us");
	slice.timeslice_us = 0;
	tap_status(CONTROL(tenant.tsg, RM_CTRL_TSG_GET_TIMESLICE, &slice, 8), 0, "is read back");
	tap(slice.timeslice_us == 2048, "as set");
	tap_status(CONTROL(c.handle, RM_CTRL_CHANNEL_GET_TOKEN, &token, 4), 0, "a channel's token");
	tap(token.token && token.token == c.token, "is not 0");
#undef CONTROL
	munmap(c.memory.cpu, c.memory.bytes);
	close(c.memory.fd);
}

static void foreign_handles(void)
{
	struct rm_tsg_info_params info;
	struct rm_tenant other;
	struct rm_register_fd link;
	struct rm_device_params device = { 0 };
	uint32_t handle = 0, client = 0;
	int fresh = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC), status;
	pid_t child;

	tap_status(rm_tenant_open(&other, 0), 0, "a second tenant");
	tap(other.client != tenant.client, "has a handle of its own");
	tap_status(rm_control(tenant.ctl, other.client, other.tsg, RM_CTRL_TSG_GET_INFO, &info, 4),
		   RM_INVALID_CLIENT, "its TSG is out of reach");
	tap_status(rm_free(tenant.ctl, other.client, other.tsg), RM_INVALID_CLIENT,
		   "and can't be freed");
	tap_status(rm_free(tenant.ctl, other.client, other.client), RM_INVALID_CLIENT,
		   "nor can its client");
	tap_status(rm_free(tenant.ctl, 0xc1d0ffff, 1), RM_INVALID_CLIENT, "a client that is nobody's");
	tap_status(rm_free(tenant.ctl, 0, 0), RM_INVALID_CLIENT, "client 0");
	tap_status(rm_map(tenant.ctl, other.client, other.subdevice, other.usermode, 65536, fresh),
		   RM_INVALID_CLIENT, "nor mapped");
	tap_status(rm_control(other.ctl, other.client, other.tsg, RM_CTRL_TSG_GET_INFO, &info, 4), 0,
		   "its owner reaches it");
	link.ctl_fd = other.ctl;
	tap_status(rm_call(fresh, RM_NR_REGISTER_FD, &link, sizeof(link)), 0,
		   "a file linked to another's");
	tap_status(rm_control(fresh, other.client, other.tsg, RM_CTRL_TSG_GET_INFO, &info, 4), 0,
		   "acts for it");
	child = fork();
	if (!child) {
		int bell = open("/dev/nvidia0", O_RDWR);

		_exit(rm_map(other.ctl, other.client, other.subdevice, other.usermode, 65536,
			     bell) != RM_INVALID_CLIENT);
	}
	waitpid(child, &status, 0);
	tap(!status, "another process does not map");
	close(fresh);
	close(other.bell_fd);
	close(other.card);

	/* Without an open card node there is no device. */
	child = fork();
	if (!child) {
		int ctl;

		for (ctl = 3; ctl < 1024; ctl++)
			close(ctl);
		ctl = open("/dev/nvidiactl", O_RDWR);
		if (rm_alloc(ctl, 0, 0, &client, RM_CLASS_ROOT_CLIENT, NULL, 0))
			_exit(1);
		_exit(rm_alloc(ctl, client, client, &handle, RM_CLASS_DEVICE, &device,
			       sizeof(device)) != RM_INSUFFICIENT_PERMISSIONS);
	}
	waitpid(child, &status, 0);
	tap(!status, "no device without its node open");
	close(other.ctl);
	munmap((void *)other.bell, RM_USERMODE_BYTES);
}

static uint32_t link_fd(int fd, int ctl)
{
	struct rm_register_fd link = { .ctl_fd = ctl };

	return rm_call(fd, RM_NR_REGISTER_FD, &link, sizeof(link));
}

static void fd_tricks(void)
{
	int a = open("/dev/nvidiactl", O_RDWR), b = open("/dev/nvidiactl", O_RDWR);
	int card = open("/dev/nvidia0", O_RDWR), null = open("/dev/null", O_RDWR);
	struct rm_buffer buffer;

	tap_status(link_fd(a, a), FAILED(EINVAL), "a file is not linked to itself");
	tap_status(link_fd(a, card), FAILED(EINVAL), "nor to a card's file");
	tap_status(link_fd(a, null), FAILED(EINVAL), "nor to a stranger");
	tap_status(link_fd(a, -1), FAILED(EINVAL), "nor to none");
	tap_status(link_fd(a, 1 << 30), FAILED(EINVAL), "nor to a wild number");
	tap_status(link_fd(a, b), 0, "but to another control file");
	tap_status(link_fd(a, b), FAILED(EINVAL), "once");
	tap_status(link_fd(b, a), FAILED(EINVAL), "links do not form a ring");
	tap_status(link_fd(card, a), FAILED(EINVAL), "nor a chain");
	tap(mmap(NULL, 4096, PROT_READ, MAP_SHARED, card, 0) == MAP_FAILED,
	    "a file without MAP_MEMORY has no mmap");
	tap_status(rm_map(tenant.ctl, tenant.client, tenant.subdevice, tenant.usermode, 65536, a),
		   RM_INVALID_ARGUMENT, "the doorbell is not on a control file");
	tap_status(rm_map(tenant.ctl, tenant.client, tenant.subdevice, tenant.usermode, 65537, card),
		   RM_INVALID_LIMIT, "nor larger than it is");
	tap_status(rm_map(tenant.ctl, tenant.client, tenant.subdevice, tenant.usermode, 0, card),
		   RM_INVALID_LIMIT, "nor empty");
	tap_status(rm_map(tenant.ctl, tenant.client, tenant.subdevice, tenant.usermode, 65536, null),
		   RM_INVALID_ARGUMENT, "nor on a stranger");
	tap_status(rm_map(tenant.ctl, tenant.client, tenant.subdevice, tenant.usermode, 65536, card),
		   0, "but on a card's file");
	tap_status(rm_map(tenant.ctl, tenant.client, tenant.subdevice, tenant.usermode, 65536, card),
		   RM_STATE_IN_USE, "once");
	tap_status(rm_buffer_create(&tenant, 8192, &buffer), 0, "memory");
	tap(mmap(NULL, 12288, PROT_READ, MAP_SHARED, buffer.fd, 0) == MAP_FAILED && errno == ERANGE,
	    "is not mapped beyond its end");
	tap_status(rm_free(tenant.ctl, tenant.client, buffer.handle), 0, "memory that is mapped is freed");
	*(volatile uint32_t *)buffer.cpu = 1;
	tap(*(volatile uint32_t *)buffer.cpu == 1, "and stays with its mapping");
	posix_fadvise(card, 0, 0, POSIX_FADV_WILLNEED);
	posix_fadvise(card, 0, 0, POSIX_FADV_DONTNEED);
	readahead(card, 0, 4096);
	fsync(card);
	sync_file_range(card, 0, 4096, SYNC_FILE_RANGE_WRITE);
	tap(lseek(card, 0, SEEK_SET) < 0, "odd calls on the file do no harm");
	munmap(buffer.cpu, buffer.bytes);
	close(buffer.fd);
	close(a);
	close(b);
	close(card);
	close(null);
}

static void bad_mappings(void)
{
	struct rm_buffer buffer;
	uint64_t va = 0, fixed;

	tap_status(rm_buffer_create(&tenant, 16384, &buffer), 0, "memory for mappings");
#define MAP(dma, memory, bytes, flags, at)                                                         \
	rm_map_dma(tenant.ctl, tenant.client, tenant.device, dma, memory, bytes, flags, at)
	tap_status(MAP(tenant.vaspace, buffer.handle, 4096, 0, &va), RM_INVALID_OBJECT_HANDLE,
		   "an address space itself does not map");
	tap_status(MAP(tenant.virtual, 1, 4096, 0, &va), RM_OBJECT_NOT_FOUND, "no memory");
	tap_status(MAP(tenant.virtual, tenant.tsg, 4096, 0, &va), RM_INVALID_OBJECT, "not memory");
	tap_status(MAP(tenant.virtual, buffer.handle, 0, 0, &va), RM_INVALID_LIMIT, "nothing of it");
	tap_status(MAP(tenant.virtual, buffer.handle, ~0ull, 0, &va), RM_INVALID_LIMIT,
		   "more than all of it");
	fixed = buffer.va;
	tap_status(MAP(tenant.virtual, buffer.handle, 4096, RM_MAP_DMA_OFFSET_FIXED, &fixed),
		   RM_STATE_IN_USE, "where something is");
	fixed = 1ull << 50;
	tap_status(MAP(tenant.virtual, buffer.handle, 4096, RM_MAP_DMA_OFFSET_FIXED, &fixed),
		   RM_INVALID_OFFSET, "beyond the address space");
	fixed = (1ull << 40) - 4096;
	tap_status(MAP(tenant.virtual, buffer.handle, 8192, RM_MAP_DMA_OFFSET_FIXED, &fixed),
		   RM_INVALID_OFFSET, "over its end");
	tap_status(MAP(tenant.virtual, buffer.handle, 4096, RM_MAP_DMA_OFFSET_FIXED, &fixed), 0,
		   "up to its end");
	tap_status(rm_unmap_dma(tenant.ctl, tenant.client, tenant.device, tenant.virtual,
				fixed + 1, 0), RM_OBJECT_NOT_FOUND, "unmap what is not mapped");
	tap_status(rm_unmap_dma(tenant.ctl, tenant.client, tenant.device, tenant.virtual, fixed,
				512), RM_INVALID_ARGUMENT, "unmap a part");
	tap_status(rm_unmap_dma(tenant.ctl, tenant.client, tenant.device, tenant.virtual, fixed, 0),
		   0, "unmap it");
	tap_status(rm_unmap_dma(tenant.ctl, tenant.client, tenant.device, tenant.virtual, fixed, 0),
		   RM_OBJECT_NOT_FOUND, "once");
#undef MAP
	munmap(buffer.cpu, buffer.bytes);
	close(buffer.fd);
}

int main(void)
{
	tap_status(rm_tenant_open(&tenant, 0), 0, "a tenant opens the card");
	if (tap_failed)
		return 1;
	malformed_calls();
	bad_allocations();
	bad_channels();
	bad_controls();
	foreign_handles();
	fd_tricks();
	bad_mappings();
	return tap_failed;
}
