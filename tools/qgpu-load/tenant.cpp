// SPDX-License-Identifier: GPL-2.0
// What a tenant does with the driver, in the driver's own calls and nothing else.
#include "tenant.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "rm_abi.h"

namespace qgpu {
namespace {

// A simulated kernel as the card reads it (kmod/sim/chip/chip.h).
struct KernelDescriptor {
  uint64_t duration_ns;
  uint32_t preemption;
  uint32_t flags;
  uint64_t semaphore_va;
  uint64_t payload;
};
static_assert(sizeof(KernelDescriptor) == 32);

// USERD, in the first page of a queue's memory.
constexpr uint64_t kGpPut = 0x8c;
constexpr uint64_t kPage = 4096;
constexpr uint32_t kFirstHandle = 0x5c000001;  // as libcuda numbers its objects
// Word 1 of a GPFIFO entry: length in words, and "wait for what came before".
constexpr uint32_t kEntryWords = sizeof(KernelDescriptor) / 4 << 10;
constexpr uint32_t kEntrySync = 1u << 31;

uint64_t roundUp(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Where things are in a queue's memory.
struct Layout {
  explicit Layout(uint64_t entries)
      : gpfifo(kPage),
        kernels(gpfifo + roundUp(entries * 8)),
        completions(kernels + roundUp(entries * sizeof(KernelDescriptor))),
        bytes(completions + roundUp(entries * sizeof(Completion))) {}
  uint64_t gpfifo, kernels, completions, bytes;
};

template <typename T>
void store(uint8_t *where, T value) {
  *reinterpret_cast<volatile T *>(where) = value;
}

template <typename T>
T load(const uint8_t *where) {
  return *reinterpret_cast<const volatile T *>(where);
}

[[noreturn]] void failErrno(const std::string &what) {
  throw DriverError(what + ": " + std::strerror(errno));
}

void call(const File &file, unsigned nr, void *data, size_t bytes, const char *what) {
  if (ioctl(file.fd(), _IOC(_IOC_READ | _IOC_WRITE, 'F', nr, bytes), data) != 0) failErrno(what);
}

void checkStatus(uint32_t status, const char *what) {
  if (status == RM_OK) return;
  char text[32];
  std::snprintf(text, sizeof(text), "driver status 0x%x", status);
  throw DriverError(std::string(what) + ": " + text);
}

std::string nodeOf(unsigned card) { return "/dev/nvidia" + std::to_string(card); }

}  // namespace

File::File(const std::string &path) : fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
  if (fd_ < 0) failErrno(path);
}

File::File(File &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

File::~File() {
  if (fd_ >= 0) close(fd_);
}

Mapping::Mapping(const File &file, uint64_t bytes)
    : address_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0)),
      bytes_(bytes) {
  if (address_ == MAP_FAILED) failErrno("mmap");
}

Mapping::Mapping(Mapping &&other) noexcept
    : address_(std::exchange(other.address_, nullptr)), bytes_(other.bytes_) {}

Mapping::~Mapping() {
  if (address_) munmap(address_, bytes_);
}

void Queue::push(uint64_t duration_ns, Preemption preemption) {
  const Layout layout(entries_);
  const uint64_t number = pushed_++, slot = number % entries_;
  const uint64_t kernel = layout.kernels + slot * sizeof(KernelDescriptor);
  const KernelDescriptor descriptor = {
      .duration_ns = duration_ns,
      .preemption = static_cast<uint32_t>(preemption),
      .flags = 0,
      .semaphore_va = va_ + layout.completions + slot * sizeof(Completion),
      .payload = number + 1,
  };
  std::memcpy(memory_.at(kernel), &descriptor, sizeof(descriptor));
  uint8_t *entry = memory_.at(layout.gpfifo + slot * 8);
  store<uint32_t>(entry, static_cast<uint32_t>(va_ + kernel));
  store<uint32_t>(entry + 4,
                  static_cast<uint32_t>((va_ + kernel) >> 32) | kEntryWords | kEntrySync);
  std::atomic_thread_fence(std::memory_order_release);
  store<uint32_t>(memory_.at(kGpPut), static_cast<uint32_t>(pushed_ % entries_));
}

bool Queue::completed(uint64_t number, uint64_t &time_ns) const {
  const Layout layout(entries_);
  const uint8_t *where = memory_.at(layout.completions + number % entries_ * sizeof(Completion));
  if (load<uint64_t>(where) != number + 1) return false;
  std::atomic_thread_fence(std::memory_order_acquire);
  time_ns = load<uint64_t>(where + 8);
  return true;
}

uint32_t Tenant::alloc(uint32_t parent, uint32_t klass, void *params, uint32_t bytes,
                       const char *what) {
  rm_alloc request{};
  request.client = client_;
  request.parent = parent;
  if (klass != RM_CLASS_ROOT_CLIENT) request.object = kFirstHandle + handles_++;
  request.klass = klass;
  request.params = reinterpret_cast<uintptr_t>(params);
  request.params_bytes = bytes;
  call(ctl_, RM_NR_ALLOC, &request, sizeof(request), what);
  checkStatus(request.status, what);
  return request.object;
}

void Tenant::control(uint32_t object, uint32_t cmd, void *params, uint32_t bytes,
                     const char *what) {
  rm_control request{};
  request.client = client_;
  request.object = object;
  request.cmd = cmd;
  request.params = reinterpret_cast<uintptr_t>(params);
  request.params_bytes = bytes;
  call(ctl_, RM_NR_CONTROL, &request, sizeof(request), what);
  checkStatus(request.status, what);
}

void Tenant::mapMemory(uint32_t on, uint32_t memory, uint64_t bytes, const File &file) {
  rm_map_memory request{};
  request.client = client_;
  request.device = on;
  request.memory = memory;
  request.length = bytes;
  request.fd = file.fd();
  call(ctl_, RM_NR_MAP_MEMORY, &request, sizeof(request), "map memory");
  checkStatus(request.status, "map memory");
}

Tenant::Tenant(unsigned card, unsigned queues, unsigned depth)
    : ctl_("/dev/nvidiactl"), card_(nodeOf(card)), bell_file_(nodeOf(card)) {
  rm_version version{};
  std::strcpy(version.text, RM_VERSION);
  call(ctl_, RM_NR_CHECK_VERSION, &version, sizeof(version), "check the driver's version");
  rm_register_fd link{ctl_.fd()};
  call(card_, RM_NR_REGISTER_FD, &link, sizeof(link), "register the card's file");

  client_ = alloc(0, RM_CLASS_ROOT_CLIENT, nullptr, 0, "allocate a client");
  rm_device_params device{};
  device.device_id = card;
  device_ = alloc(client_, RM_CLASS_DEVICE, &device, sizeof(device), "allocate the device");
  rm_subdevice_params subdevice{};
  subdevice_ =
      alloc(device_, RM_CLASS_SUBDEVICE, &subdevice, sizeof(subdevice), "allocate the subdevice");
  rm_vaspace_params vaspace{};
  vaspace_ =
      alloc(device_, RM_CLASS_VASPACE, &vaspace, sizeof(vaspace), "allocate an address space");
  rm_virtual_params range{};
  range.vaspace = vaspace_;
  virtual_ =
      alloc(device_, RM_CLASS_MEMORY_VIRTUAL, &range, sizeof(range), "allocate virtual memory");

  const uint32_t usermode =
      alloc(subdevice_, RM_CLASS_USERMODE, nullptr, 0, "allocate the doorbell");
  mapMemory(subdevice_, usermode, RM_USERMODE_BYTES, bell_file_);
  bell_ = std::make_unique<Mapping>(bell_file_, RM_USERMODE_BYTES);
  for (unsigned i = 0; i < queues; i++) queues_.push_back(makeQueue(depth));
}

Queue Tenant::makeQueue(unsigned depth) {
  // A ring of n entries holds n - 1.
  const unsigned entries = std::bit_ceil(depth + 1);
  const Layout layout(entries);

  rm_memory_params memory{};
  memory.attr = RM_ATTR_LOCATION_PCI << RM_ATTR_LOCATION_SHIFT;
  memory.bytes = layout.bytes;
  const uint32_t handle =
      alloc(device_, RM_CLASS_MEMORY_SYSTEM, &memory, sizeof(memory), "allocate memory");
  File file("/dev/nvidiactl");
  mapMemory(device_, handle, layout.bytes, file);
  Mapping mapping(file, layout.bytes);

  rm_map_dma dma{};
  dma.client = client_;
  dma.device = device_;
  dma.dma = virtual_;
  dma.memory = handle;
  dma.length = layout.bytes;
  call(ctl_, RM_NR_MAP_DMA, &dma, sizeof(dma), "map memory for the card");
  checkStatus(dma.status, "map memory for the card");

  rm_tsg_params tsg_params{};
  tsg_params.engine_type = RM_ENGINE_GRAPHICS;
  tsg_params.vaspace = vaspace_;
  const uint32_t tsg =
      alloc(device_, RM_CLASS_TSG, &tsg_params, sizeof(tsg_params), "allocate a TSG");
  rm_channel_params channel_params{};
  channel_params.gpfifo_va = dma.va + layout.gpfifo;
  channel_params.gpfifo_entries = entries;
  channel_params.userd_memory[0] = handle;
  channel_params.engine_type = RM_ENGINE_GRAPHICS;
  const uint32_t channel =
      alloc(tsg, RM_CLASS_CHANNEL, &channel_params, sizeof(channel_params), "allocate a channel");
  rm_token_params token{};
  control(channel, RM_CTRL_CHANNEL_GET_TOKEN, &token, sizeof(token), "get the doorbell token");
  token_ = token.token;
  rm_schedule_params schedule{};
  schedule.enable = 1;
  control(tsg, RM_CTRL_TSG_SCHEDULE, &schedule, sizeof(schedule), "schedule the TSG");
  return Queue(std::move(file), std::move(mapping), dma.va, entries);
}

void Tenant::ring() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  store<uint32_t>(bell_->at(RM_USERMODE_DOORBELL), token_);
}

}  // namespace qgpu
