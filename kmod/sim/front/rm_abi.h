/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * rm_abi.h - the part of the driver's user interface that the simulated driver answers, release
 * 550, x86-64. Names are ours; numbers, sizes and offsets are the driver's. Usable from user
 * space. Where each comes from: docs/rm-abi.md.
 *
 * Every call is an ioctl _IOWR('F', nr, size) on a struct below. The ioctl itself fails only when
 * it is malformed (errno); what the driver thinks of it is in the struct's status field.
 */
#ifndef RM_ABI_H
#define RM_ABI_H

#include <linux/types.h>
#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/ioctl.h>
#include <linux/stddef.h>
#else
#include <stddef.h>
#include <sys/ioctl.h>
#ifndef __cplusplus
#include <assert.h>
#endif
#endif

#define RM_VERSION "550.90.07"

#define RM_MAJOR 195
#define RM_MINOR_CTL 255
#define RM_MINOR_LAST 247

/* A whole ioctl command word. */
#define RM_IOCTL(nr, type) _IOC(_IOC_READ | _IOC_WRITE, 'F', nr, sizeof(type))
#define RM_IOCTL_BYTES_MAX 16384

/* Base group (kernel-open/common/inc/nv-ioctl-numbers.h). */
#define RM_NR_CARD_INFO 200
#define RM_NR_REGISTER_FD 201
#define RM_NR_ALLOC_OS_EVENT 206
#define RM_NR_FREE_OS_EVENT 207
#define RM_NR_CHECK_VERSION 210
#define RM_NR_XFER 211
#define RM_NR_SYS_PARAMS 214
#define RM_NR_WAIT_OPEN 218

/* RM escapes (src/nvidia/arch/nvalloc/unix/include/nv_escape.h). */
#define RM_NR_FREE 0x29
#define RM_NR_CONTROL 0x2a
#define RM_NR_ALLOC 0x2b
#define RM_NR_MAP_MEMORY 0x4e
#define RM_NR_UNMAP_MEMORY 0x4f
#define RM_NR_MAP_DMA 0x57
#define RM_NR_UNMAP_DMA 0x58

/* Status codes (src/common/sdk/nvidia/inc/nvstatuscodes.h). */
#define RM_OK 0x00u
#define RM_GENERIC 0xffffu
#define RM_INSERT_DUPLICATE_NAME 0x19u
#define RM_INSUFFICIENT_RESOURCES 0x1au
#define RM_INSUFFICIENT_PERMISSIONS 0x1bu
#define RM_INVALID_ADDRESS 0x1eu
#define RM_INVALID_ARGUMENT 0x1fu
#define RM_INVALID_BASE 0x20u
#define RM_INVALID_CLASS 0x22u
#define RM_INVALID_CLIENT 0x23u
#define RM_INVALID_LIMIT 0x2eu
#define RM_INVALID_OBJECT 0x31u
#define RM_INVALID_OBJECT_HANDLE 0x33u
#define RM_INVALID_OBJECT_PARENT 0x36u
#define RM_INVALID_OFFSET 0x37u
#define RM_INVALID_PARAM_STRUCT 0x3au
#define RM_INVALID_STATE 0x40u
#define RM_NO_FREE_FIFOS 0x4fu
#define RM_NO_MEMORY 0x51u
#define RM_NOT_SUPPORTED 0x56u
#define RM_OBJECT_NOT_FOUND 0x57u
#define RM_STATE_IN_USE 0x63u
#define RM_TIMEOUT 0x65u

/* Handles that RM makes (inc/libraries/resserv/resserv.h, rs_client.h). */
#define RM_CLIENT_HANDLE_BASE 0xc1d00000u
#define RM_OBJECT_HANDLE_BASE 0xcaf00000u
#define RM_OBJECT_HANDLE_RANGE 0x00080000u

/* Classes (src/nvidia/generated/g_allclasses.h). */
#define RM_CLASS_ROOT 0x00u
#define RM_CLASS_ROOT_NON_PRIV 0x01u
#define RM_CLASS_ROOT_CLIENT 0x41u
#define RM_CLASS_DEVICE 0x80u
#define RM_CLASS_SUBDEVICE 0x2080u
#define RM_CLASS_MEMORY_SYSTEM 0x3eu
#define RM_CLASS_MEMORY_VIRTUAL 0x70u
#define RM_CLASS_VASPACE 0x90f1u
#define RM_CLASS_TSG 0xa06cu
#define RM_CLASS_CHANNEL 0xc46fu
#define RM_CLASS_USERMODE 0xc461u
#define RM_CLASS_MEMORY_DEVICELESS 0x90ceu
#define RM_CLASS_EVENT_BUFFER 0x90cdu

/* Controls (src/common/sdk/nvidia/inc/ctrl/: ctrl0000, ctrl2080, ctrl90cd, ctrla06c, ctrlc36f). */
#define RM_CTRL_GET_FEATURES 0x000001f0u
#define RM_CTRL_GPU_GET_ID_INFO 0x00000205u
#define RM_CTRL_GET_HANDLE_INFO 0x00000d02u
#define RM_CTRL_GPU_GET_ID 0x20800142u
#define RM_CTRL_DISABLE_CHANNELS 0x2080110bu
#define RM_CTRL_BIND_TRACE_V1 0x20801231u
#define RM_CTRL_BIND_TRACE 0x20801238u
#define RM_CTRL_EVENTS_ENABLE 0x90cd0101u
#define RM_CTRL_EVENTS_UPDATE_GET 0x90cd0102u
#define RM_CTRL_EVENTS_FLUSH 0x90cd0104u
#define RM_CTRL_TSG_SCHEDULE 0xa06c0101u
#define RM_CTRL_TSG_SET_TIMESLICE 0xa06c0103u
#define RM_CTRL_TSG_GET_TIMESLICE 0xa06c0104u
#define RM_CTRL_TSG_PREEMPT 0xa06c0105u
#define RM_CTRL_TSG_GET_INFO 0xa06c0106u
#define RM_CTRL_CHANNEL_GET_TOKEN 0xc36f0108u

/* Engine types (class/cl2080_notification.h). */
#define RM_ENGINE_NULL 0u
#define RM_ENGINE_GRAPHICS 1u

/* ---- base group: kernel-open/common/inc/nv-ioctl.h ---- */

struct rm_pci_info {
	__u32 domain;
	__u8 bus, slot, function, pad;
	__u16 vendor_id, device_id;
};

struct rm_card_info {
	__u8 valid, pad0[3];
	struct rm_pci_info pci;
	__u32 gpu_id;
	__u16 interrupt_line, pad1;
	__aligned_u64 reg_address, reg_bytes, fb_address, fb_bytes;
	__u32 minor_number;
	__u8 dev_name[10], pad2[2];
};

struct rm_register_fd {
	__s32 ctl_fd;
};

struct rm_os_event {
	__u32 client, device;
	__s32 fd; /* a number that class 0x90cd names the event by; never looked at */
	__u32 status;
};

#define RM_VERSION_CMD_STRICT 0u
#define RM_VERSION_CMD_RELAXED 0x31u
#define RM_VERSION_CMD_QUERY 0x32u
struct rm_version {
	__u32 cmd;
	__u32 reply; /* 1: understood */
	char text[64];
};

struct rm_xfer {
	__u32 nr;
	__u32 bytes;
	__aligned_u64 params;
};

struct rm_sys_params {
	__aligned_u64 memblock_bytes;
};

struct rm_wait_open {
	__s32 rc;
	__u32 adapter_status;
};

/* ---- escapes: src/common/sdk/nvidia/inc/nvos.h ---- */

struct rm_free { /* NVOS00 */
	__u32 client, parent, object, status;
};

struct rm_control { /* NVOS54 */
	__u32 client, object, cmd, flags;
	__aligned_u64 params;
	__u32 params_bytes, status;
};

struct rm_alloc { /* NVOS21 */
	__u32 client, parent, object, klass;
	__aligned_u64 params;
	__u32 params_bytes, status;
};

struct rm_alloc_rights { /* NVOS64 */
	__u32 client, parent, object, klass;
	__aligned_u64 params;
	__aligned_u64 rights;
	__u32 params_bytes, flags, status, pad;
};

#define RM_MAP_READ_ONLY 1u
struct rm_map_memory { /* NVOS33 and the fd of its wrapper */
	__u32 client, device, memory, pad0;
	__aligned_u64 offset, length, address;
	__u32 status, flags;
	__s32 fd;
	__u32 pad1;
};

struct rm_unmap_memory { /* NVOS34 */
	__u32 client, device, memory, pad0;
	__aligned_u64 address;
	__u32 status, flags;
};

#define RM_MAP_DMA_OFFSET_FIXED (1u << 15)
struct rm_map_dma { /* NVOS46 */
	__u32 client, device, dma, memory;
	__aligned_u64 offset, length;
	__u32 flags, pad0;
	__aligned_u64 va;
	__u32 status, pad1;
};

struct rm_unmap_dma { /* NVOS47 */
	__u32 client, device, dma, memory;
	__u32 flags, pad0;
	__aligned_u64 va;
	__aligned_u64 bytes; /* 0: the whole mapping that begins at va */
	__u32 status, pad1;
};

/* ---- class parameters ---- */

struct rm_device_params { /* class/cl0080.h */
	__u32 device_id, client_share, target_client, target_device, flags, pad0;
	__aligned_u64 va_size, va_start, va_limit;
	__u32 va_mode, pad1;
};

struct rm_subdevice_params { /* class/cl2080.h */
	__u32 subdevice_id;
};

#define RM_ATTR_LOCATION_SHIFT 25 /* NVOS32_ATTR_LOCATION: two bits */
#define RM_ATTR_LOCATION_PCI 1u
#define RM_ATTR_LOCATION_ANY 3u
#define RM_ATTR_COHERENCY_SHIFT 29 /* NVOS32_ATTR_COHERENCY: three bits */
#define RM_ATTR_COHERENCY_WRITE_BACK 5u
#define RM_ATTR2_USER_READ_ONLY (1u << 22) /* NVOS32_ATTR2_PROTECTION_USER */
struct rm_memory_params {		   /* NV_MEMORY_ALLOCATION_PARAMS */
	__u32 owner, type, flags, width, height;
	__s32 pitch;
	__u32 attr, attr2, format, compr_covg, zcull_covg, pad0;
	__aligned_u64 range_low, range_high, bytes, alignment, offset, limit, address;
	__u32 ctag_offset, vaspace, internal_flags, tag;
	__s32 numa_node;
	__u32 pad1;
};

struct rm_virtual_params { /* class/cl0070.h */
	__aligned_u64 offset, limit;
	__u32 vaspace, pad;
};

struct rm_vaspace_params { /* NV_VASPACE_ALLOCATION_PARAMETERS */
	__u32 index, flags;
	__aligned_u64 va_size, va_start, va_limit;
	__u32 big_page_bytes, pad;
	__aligned_u64 va_base;
};

struct rm_tsg_params { /* NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS */
	__u32 error_object, ecc_error_object, vaspace, engine_type;
	__u8 vgpu_plugin, pad[3];
};

struct rm_memory_desc { /* NV_MEMORY_DESC_PARAMS */
	__aligned_u64 base, bytes;
	__u32 space, cache;
};

struct rm_channel_params { /* alloc/alloc_channel.h */
	__u32 error_object, buffer_object;
	__aligned_u64 gpfifo_va;
	__u32 gpfifo_entries, flags, context_share, vaspace;
	__u32 userd_memory[8];
	__aligned_u64 userd_offset[8];
	__u32 engine_type, cid, subdevice_id, ecc_error_object;
	struct rm_memory_desc instance, userd, ramfc, method_buffer;
	__u32 phys_group, internal_flags;
	struct rm_memory_desc error_notifier, ecc_error_notifier;
	__u32 process_id, sub_process_id;
	__u32 encrypt_iv[3], decrypt_iv[3], hmac_nonce[8];
};

struct rm_event_buffer_params { /* class/cl90cd.h */
	__aligned_u64 header_address, record_address;
	__u32 record_bytes, record_count;
	__aligned_u64 vardata_address;
	__u32 vardata_bytes, records_free_threshold;
	__aligned_u64 notification; /* fd of ALLOC_OS_EVENT; 0: none */
	__u32 vardata_free_threshold, subdevice, flags;
	__u32 header_memory, record_memory, vardata_memory;
};

/* ---- the event buffer and what the context-switch trace puts in it: class/cl90cd*.h ---- */

struct rm_event_header {
	__u32 get, put;
	__aligned_u64 count;   /* of keep-newest; 0 here */
	__aligned_u64 dropped; /* for want of room */
	__aligned_u64 vardata_dropped;
};

#define RM_TRACE_RECORD_TYPE 2u /* version 2 of the record */
#define RM_TRACE_START 6u	/* a context is restored and starts */
#define RM_TRACE_END 7u		/* its save is finished */
struct rm_trace_record {
	__u16 type, subtype;
	__u32 vardata;
	__u8 tag, vmid;
	__u16 seq;
	__u32 context; /* RM's counter of contexts */
	__u32 pid;     /* as the reader sees it */
	__u16 pad;
	__u8 gpu_instance, compute_instance; /* 0xff: no MIG */
	__aligned_u64 time_ns;		     /* the GPU's timer: Unix time, steps of 32 ns */
};

/* ---- control parameters ---- */

struct rm_features_params {
	__u32 mask;
};

struct rm_gpu_id_info_params { /* NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS */
	__u32 gpu_id, flags, device_instance, subdevice_instance;
	__u32 sli_status, board_id, gpu_instance;
	__s32 numa_id;
};

#define RM_HANDLE_PARENT 1u
#define RM_HANDLE_CLASS 2u /* the driver's internal number of it */
struct rm_handle_info_params {
	__u32 object, index;
	__aligned_u64 result;
};

struct rm_gpu_id_params {
	__u32 gpu_id;
};

#define RM_DISABLE_MAX 64u
struct rm_disable_params { /* NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS */
	__u8 disable, pad0[3];
	__u32 count;
	__u8 only_scheduling, rewind_gp_put, pad1[6];
	__aligned_u64 preempt_event; /* null for user space */
	__u32 clients[RM_DISABLE_MAX];
	__u32 channels[RM_DISABLE_MAX];
};

struct rm_bind_trace_v1_params {
	__u32 buffer, record_bytes, detail, filter;
	__u8 all_users, pad[3];
};

struct rm_bind_trace_params {
	__u32 buffer, record_bytes, detail, filter;
	__u8 all_users, pad[3];
	__u32 reason;
};

#define RM_EVENTS_KEEP_OLDEST 1u
#define RM_EVENTS_KEEP_NEWEST 2u
struct rm_events_enable_params {
	__u8 enable, pad[3];
	__u32 flags;
};

struct rm_events_get_params {
	__u32 get, vardata_get;
};

#define RM_PREEMPT_TIMEOUT_MAX_US 1000000u
struct rm_preempt_params {
	__u8 wait, manual_timeout, pad[2];
	__u32 timeout_us;
};

struct rm_schedule_params {
	__u8 enable, skip_submit;
};

struct rm_timeslice_params {
	__aligned_u64 timeslice_us;
};

struct rm_tsg_info_params {
	__u32 tsg_id;
};

struct rm_token_params {
	__u32 token;
};

/* ---- the usermode page, class 0xc461 (class/clc361.h) ---- */

#define RM_USERMODE_BYTES 65536u
#define RM_USERMODE_TIME_0 0x80u
#define RM_USERMODE_TIME_1 0x84u
#define RM_USERMODE_DOORBELL 0x90u

#define RM_SIZE(type, bytes) static_assert(sizeof(struct type) == (bytes), #type)
#define RM_AT(type, field, at) static_assert(offsetof(struct type, field) == (at), #type "." #field)
RM_SIZE(rm_card_info, 72);
RM_AT(rm_card_info, gpu_id, 16);
RM_AT(rm_card_info, reg_address, 24);
RM_AT(rm_card_info, minor_number, 56);
RM_SIZE(rm_register_fd, 4);
RM_SIZE(rm_version, 72);
RM_SIZE(rm_xfer, 16);
RM_SIZE(rm_sys_params, 8);
RM_SIZE(rm_wait_open, 8);
RM_SIZE(rm_free, 16);
RM_SIZE(rm_control, 32);
RM_AT(rm_control, status, 28);
RM_SIZE(rm_alloc, 32);
RM_AT(rm_alloc, status, 28);
RM_SIZE(rm_alloc_rights, 48);
RM_AT(rm_alloc_rights, status, 40);
RM_SIZE(rm_map_memory, 56);
RM_AT(rm_map_memory, status, 40);
RM_AT(rm_map_memory, fd, 48);
RM_SIZE(rm_unmap_memory, 32);
RM_SIZE(rm_map_dma, 56);
RM_AT(rm_map_dma, va, 40);
RM_AT(rm_map_dma, status, 48);
RM_SIZE(rm_unmap_dma, 48);
RM_AT(rm_unmap_dma, status, 40);
RM_SIZE(rm_device_params, 56);
RM_SIZE(rm_subdevice_params, 4);
RM_SIZE(rm_memory_params, 128);
RM_AT(rm_memory_params, attr, 24);
RM_AT(rm_memory_params, bytes, 64);
RM_AT(rm_memory_params, vaspace, 108);
RM_SIZE(rm_virtual_params, 24);
RM_SIZE(rm_vaspace_params, 48);
RM_SIZE(rm_tsg_params, 20);
RM_SIZE(rm_channel_params, 360);
RM_AT(rm_channel_params, gpfifo_va, 8);
RM_AT(rm_channel_params, userd_memory, 32);
RM_AT(rm_channel_params, userd_offset, 64);
RM_AT(rm_channel_params, engine_type, 128);
RM_AT(rm_channel_params, internal_flags, 244);
RM_AT(rm_channel_params, process_id, 296);
RM_SIZE(rm_os_event, 16);
RM_SIZE(rm_event_buffer_params, 72);
RM_AT(rm_event_buffer_params, record_bytes, 16);
RM_AT(rm_event_buffer_params, records_free_threshold, 36);
RM_AT(rm_event_buffer_params, notification, 40);
RM_AT(rm_event_buffer_params, subdevice, 52);
RM_AT(rm_event_buffer_params, header_memory, 60);
RM_SIZE(rm_event_header, 32);
RM_SIZE(rm_trace_record, 32);
RM_AT(rm_trace_record, seq, 10);
RM_AT(rm_trace_record, pid, 16);
RM_AT(rm_trace_record, gpu_instance, 22);
RM_AT(rm_trace_record, time_ns, 24);
RM_SIZE(rm_features_params, 4);
RM_SIZE(rm_gpu_id_info_params, 32);
RM_SIZE(rm_handle_info_params, 16);
RM_SIZE(rm_disable_params, 536);
RM_AT(rm_disable_params, only_scheduling, 8);
RM_AT(rm_disable_params, preempt_event, 16);
RM_AT(rm_disable_params, channels, 280);
RM_SIZE(rm_bind_trace_v1_params, 20);
RM_SIZE(rm_bind_trace_params, 24);
RM_SIZE(rm_events_enable_params, 8);
RM_SIZE(rm_events_get_params, 8);
RM_SIZE(rm_preempt_params, 8);
RM_SIZE(rm_schedule_params, 2);
RM_SIZE(rm_timeslice_params, 8);
RM_SIZE(rm_tsg_info_params, 4);
RM_SIZE(rm_token_params, 4);
#undef RM_SIZE
#undef RM_AT

#endif
