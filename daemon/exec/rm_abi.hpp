// SPDX-License-Identifier: GPL-2.0
// The part of the NVIDIA driver's user interface (RM) that the executor uses: numbers, sizes and
// offsets are the driver's, names ours. Sources are files of NVIDIA/open-gpu-kernel-modules; "all"
// means the same in every release from 515.43.04 to 595.45.04. What depends on the release is
// chosen by driver_profile.hpp. x86-64 and arm64.
//
// Every call is ioctl(_IOWR('F', nr, size)) on /dev/nvidiactl; it fails with an errno only when it
// is malformed. What the driver thinks of it is in the struct's status.
#pragma once

#include <sys/ioctl.h>

#include <cstddef>
#include <cstdint>

namespace qgpu::exec::rm {

constexpr unsigned kMajor = 195;
constexpr unsigned kMinorControl = 255;

// kernel-open/common/inc/nv-ioctl-numbers.h; arch/nvalloc/unix/include/nv_escape.h; all
constexpr unsigned kNrCardInfo = 200;
constexpr unsigned kNrRegisterFd = 201;
constexpr unsigned kNrAllocOsEvent = 206;
constexpr unsigned kNrFree = 0x29;
constexpr unsigned kNrControl = 0x2a;
constexpr unsigned kNrAlloc = 0x2b;
constexpr unsigned kNrMapMemory = 0x4e;

constexpr unsigned long request(unsigned nr, size_t bytes) { return _IOC(3, 'F', nr, bytes); }

// src/common/sdk/nvidia/inc/nvstatuscodes.h; all
constexpr uint32_t kOk = 0;
constexpr uint32_t kInsufficientPermissions = 0x1b;
constexpr uint32_t kInvalidClient = 0x23;
constexpr uint32_t kInvalidObjectHandle = 0x33;
constexpr uint32_t kObjectNotFound = 0x57;

// src/nvidia/generated/g_allclasses.h; all
constexpr uint32_t kClassClient = 0x41;
constexpr uint32_t kClassDevice = 0x80;
constexpr uint32_t kClassSubdevice = 0x2080;
constexpr uint32_t kClassMemoryDeviceless = 0x90ce;
constexpr uint32_t kClassEventBuffer = 0x90cd;
// The doorbell page, newest first: Blackwell, Hopper, Ampere, Turing, Volta.
constexpr uint32_t kClassUsermode[] = {0xc761, 0xc661, 0xc561, 0xc461, 0xc361};

// src/nvidia/inc/libraries/resserv/resserv.h: clients of user space are this + index; all
constexpr uint32_t kClientBase = 0xc1d00000;
constexpr uint32_t kClientCount = 0x100000;
// libcuda numbers its objects from here on.
constexpr uint32_t kCudaObjectBase = 0x5c000000;

// Controls: src/common/sdk/nvidia/inc/ctrl/*.h; all, unless said
constexpr uint32_t kCtrlSystemGetFeatures = 0x1f0;    // ctrl0000system.h: u32, harmless
constexpr uint32_t kCtrlGpuGetIdInfoV2 = 0x205;       // ctrl0000gpu.h
constexpr uint32_t kCtrlClientGetHandleInfo = 0xd02;  // ctrl0000client.h
constexpr uint32_t kCtrlGpuGetId = 0x20800142;        // ctrl2080gpu.h: u32
constexpr uint32_t kCtrlFifoDisableChannels = 0x2080110b;
constexpr uint32_t kCtrlFecsBindEventBuffer = 0x20801231;
constexpr uint32_t kCtrlFecsBindEventBufferV2 = 0x20801238;
constexpr uint32_t kCtrlEventBufferEnable = 0x90cd0101;
constexpr uint32_t kCtrlEventBufferUpdateGet = 0x90cd0102;
constexpr uint32_t kCtrlEventBufferFlush = 0x90cd0104;  // no parameters
constexpr uint32_t kCtrlTsgSetTimeslice = 0xa06c0103;   // u64 in us
constexpr uint32_t kCtrlTsgGetTimeslice = 0xa06c0104;   // u64 in us
constexpr uint32_t kCtrlTsgPreempt = 0xa06c0105;
constexpr uint32_t kCtrlTsgGetInfo = 0xa06c0106;             // u32: hardware id
constexpr uint32_t kCtrlChannelGetSubmitToken = 0xc36f0108;  // u32: runlist << 16 | channel id

// kernel-open/common/inc/nv-ioctl.h nv_ioctl_card_info_t; all
struct CardInfo {
  uint8_t valid;
  uint8_t reserved0[3];
  uint32_t pci_domain;
  uint8_t pci_bus, pci_slot, pci_function, reserved1;
  uint16_t pci_vendor, pci_device;
  uint32_t gpu_id;
  uint16_t interrupt_line;
  uint8_t reserved2[2];
  uint64_t reg_address, reg_size, fb_address, fb_size;
  uint32_t minor;
  uint8_t name[10];
  uint8_t reserved3[2];
};
static_assert(sizeof(CardInfo) == 72 && offsetof(CardInfo, gpu_id) == 16 &&
              offsetof(CardInfo, minor) == 56);
constexpr size_t kCardsMax = 32;

// src/common/sdk/nvidia/inc/nvos.h NVOS00; all
struct Free {
  uint32_t client, parent, object, status;
};

// nvos.h NVOS54; all
struct Control {
  uint32_t client, object, cmd, flags;
  uint64_t params;
  uint32_t params_bytes, status;
};
static_assert(sizeof(Control) == 32 && offsetof(Control, status) == 28);

// nvos.h NVOS21: status moved with 535.43.02 (DriverProfile.alloc_has_size)
struct Alloc {
  uint32_t client, parent, object, klass;
  uint64_t params;
  uint32_t size_or_status;  // 535 and later: params' size
  uint32_t status;          // 535 and later
};
static_assert(sizeof(Alloc) == 32);

// nvos.h NVOS33 and the descriptor that wraps it; all
struct MapMemory {
  uint32_t client, device, memory, reserved0;
  uint64_t offset, length, linear_address;
  uint32_t status, flags;
  int32_t fd;
  uint32_t reserved1;
};
static_assert(sizeof(MapMemory) == 56 && offsetof(MapMemory, fd) == 48);
constexpr uint32_t kMapReadOnly = 1;

// kernel-open/common/inc/nv-ioctl.h; all
struct RegisterFd {
  int32_t control_fd;
};
struct AllocOsEvent {
  uint32_t client, device;
  int32_t fd;
  uint32_t status;
};

// class/cl0080.h NV0080_ALLOC_PARAMETERS; all
struct DeviceParams {
  uint32_t device_id, client_share, target_client, target_device;
  uint32_t flags, reserved0;
  uint64_t va_space_size, va_start, va_limit;
  uint32_t va_mode, reserved1;
};
static_assert(sizeof(DeviceParams) == 56);
struct SubdeviceParams {
  uint32_t subdevice_id;
};

// nvos.h NV_MEMORY_ALLOCATION_PARAMS: 120 bytes, 128 from 545.23.06 (only the size changed)
struct MemoryParams {
  uint32_t owner, type, flags, width, height;
  int32_t pitch;
  uint32_t attr, attr2, format, compression, zcull, reserved0;
  uint64_t range_low, range_high, size, alignment, offset, limit, address;
  uint32_t tag_offset, va_space, internal_flags, tag;
  int32_t numa_node;
  uint32_t reserved1;
};
static_assert(sizeof(MemoryParams) == 128 && offsetof(MemoryParams, attr) == 24 &&
              offsetof(MemoryParams, size) == 64 && offsetof(MemoryParams, va_space) == 108);
constexpr uint32_t kAttrWriteBack = 5u << 29;
constexpr uint32_t kAttr2UserReadOnly = 1u << 22;

// ctrl0000gpu.h NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS; all
struct GpuIdInfo {
  uint32_t gpu_id, flags, device_instance, subdevice_instance;
  uint32_t sli_status, board_id, gpu_instance;
  int32_t numa_id;
};
static_assert(sizeof(GpuIdInfo) == 32);

// ctrl0000client.h NV0000_CTRL_CLIENT_GET_HANDLE_INFO_PARAMS; all
struct HandleInfo {
  uint32_t object, index;
  uint64_t result;
};
constexpr uint32_t kHandleInfoParent = 1;
static_assert(sizeof(HandleInfo) == 16);

// ctrl2080fifo.h NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS; all
constexpr uint32_t kDisableChannelsMax = 64;
struct DisableChannels {
  uint8_t disable;
  uint8_t reserved0[3];
  uint32_t count;
  uint8_t only_disable_scheduling;  // never set: a tenant that submits nothing more is then lost
  uint8_t rewind_gp_put;
  uint8_t reserved1[6];
  uint64_t preempt_event;  // 0
  uint32_t clients[kDisableChannelsMax];
  uint32_t channels[kDisableChannelsMax];
};
static_assert(sizeof(DisableChannels) == 536 && offsetof(DisableChannels, clients) == 24 &&
              offsetof(DisableChannels, channels) == 280);

// ctrla06c.h NVA06C_CTRL_PREEMPT_PARAMS; all
struct Preempt {
  uint8_t wait, manual_timeout;
  uint8_t reserved[2];
  uint32_t timeout_us;  // at most 1,000,000
};
static_assert(sizeof(Preempt) == 8);

// class/cl90cd.h NV_EVENT_BUFFER_ALLOC_PARAMETERS; all
struct EventBufferParams {
  uint64_t header_address, record_address;
  uint32_t record_bytes, record_count;
  uint64_t variable_address;
  uint32_t variable_bytes, free_threshold;
  uint64_t notification_handle;
  uint32_t variable_threshold;
  uint32_t subdevice;  // always given: the constructor does not check it
  uint32_t flags, header_memory, record_memory, variable_memory;
};
static_assert(sizeof(EventBufferParams) == 72);
static_assert(offsetof(EventBufferParams, notification_handle) == 40 &&
              offsetof(EventBufferParams, subdevice) == 52 &&
              offsetof(EventBufferParams, header_memory) == 60);

// class/cl90cd.h NV_EVENT_BUFFER_HEADER; all
struct EventBufferHeader {
  uint32_t get, put;
  uint64_t record_count, dropped, variable_dropped;
};

struct EventBufferEnable {
  uint8_t enable;
  uint8_t reserved[3];
  uint32_t flags;
};
constexpr uint32_t kEventBufferKeepOldest = 1;
struct EventBufferGet {
  uint32_t record_get, variable_get;
};

// ctrl2080gr.h NV2080_CTRL_GR_FECS_BIND_EVTBUF_FOR_UID(_V2)_PARAMS; the first lacks `reason`
struct FecsBind {
  uint32_t event_buffer, record_bytes, level, filter;
  uint8_t all_users;
  uint8_t reserved[3];
  uint32_t reason;
};
constexpr size_t kFecsBindV1Bytes = 20;
static_assert(sizeof(FecsBind) == 24);

// class/cl90cd.h record header + class/cl90cdfecs.h: V2 from 525; V1 has a pid of 64 bits, whose
// low half is in the same place
struct FecsRecord {
  uint16_t type, subtype;
  uint32_t variable;
  uint8_t tag, vmid;
  uint16_t sequence;  // Hopper and later; 0 before
  uint32_t context;
  uint32_t pid;
  uint16_t reserved;
  uint8_t gpu_instance, compute_instance;
  uint64_t time_ns;
};
static_assert(sizeof(FecsRecord) == 32 && offsetof(FecsRecord, pid) == 16 &&
              offsetof(FecsRecord, time_ns) == 24);
constexpr uint16_t kRecordV2 = 2, kRecordV1 = 134;  // FecsRecord.type
constexpr uint8_t kTagStart = 6;  // restored, starts
constexpr uint8_t kTagEnd = 7;    // saved
constexpr uint32_t kKernelPid = 0xffffffff;

// class/clc361.h and later; the page is 64 KiB
constexpr size_t kUsermodeBytes = 0x10000;
constexpr size_t kUsermodeTimeLow = 0x80;
constexpr size_t kUsermodeTimeHigh = 0x84;
constexpr size_t kUsermodeDoorbell = 0x90;

}  // namespace qgpu::exec::rm
