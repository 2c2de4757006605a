// SPDX-License-Identifier: GPL-2.0
// The event buffer: made, bound, read. The order of the calls is the one seen to work.
#include "trace.hpp"

#include <cstring>

#include "rm_abi.hpp"

namespace qgpu::exec {
namespace {

// Five seconds at the highest rate seen (6,000/s).
constexpr uint32_t kRecords = 32768;
constexpr size_t kHeaderBytes = 4096;

}  // namespace

Result<std::unique_ptr<Trace>> Trace::open(RmClient &client) {
  std::unique_ptr<Trace> out(new Trace(client));
  if (const auto done = out->make(); !done) return done.error();
  if (const auto done = out->bind(); !done) return done.error();
  return out;
}

Trace::~Trace() {
  if (event_fd_ >= 0) client_.io().close(event_fd_);
  if (!buffer_) return;
  rm::EventBufferEnable off{};
  client_.control(buffer_, rm::kCtrlEventBufferEnable, &off, sizeof(off));
  rm::Free call{client_.client(), client_.client(), buffer_, 0};
  client_.io().ioctl(client_.fd(), rm::request(rm::kNrFree, sizeof(call)), &call);
}

Result<uint32_t> Trace::makeMemory(size_t bytes, const void *&address) {
  rm::MemoryParams params{};
  params.attr = rm::kAttrWriteBack;
  params.attr2 = rm::kAttr2UserReadOnly;
  params.size = bytes;
  const auto memory = client_.alloc(client_.client(), rm::kClassMemoryDeviceless, &params,
                                    client_.profile().memory_params_bytes, "the trace's memory");
  if (!memory) return memory;
  const auto at = client_.map(client_.client(), *memory, bytes, "/dev/nvidiactl", rm::kMapReadOnly);
  if (!at) return at.error();
  address = *at;
  return memory;
}

Result<void> Trace::make() {
  const void *header = nullptr;
  const auto header_memory = makeMemory(kHeaderBytes, header);
  if (!header_memory) return header_memory.error();
  const auto record_memory = makeMemory(kRecords * sizeof(rm::FecsRecord), records_);
  if (!record_memory) return record_memory.error();
  header_ = header;

  const auto fd = client_.io().open("/dev/nvidiactl");
  if (!fd) return fd.error();
  event_fd_ = *fd;
  rm::AllocOsEvent event{client_.client(), client_.subdevice(), event_fd_, 0};
  RmOutcome out;
  out.err = client_.io().ioctl(event_fd_, rm::request(rm::kNrAllocOsEvent, sizeof(event)), &event);
  out.status = event.status;
  if (!out.ok()) return out.error("cannot make the trace's wake-up");

  rm::EventBufferParams params{};
  params.record_bytes = sizeof(rm::FecsRecord);
  params.record_count = kRecords;
  params.free_threshold = kRecords;  // wake at every batch
  params.notification_handle = static_cast<uint64_t>(event_fd_);
  params.subdevice = client_.subdevice();
  params.header_memory = *header_memory;
  params.record_memory = *record_memory;
  const auto buffer = client_.alloc(client_.client(), rm::kClassEventBuffer, &params,
                                    sizeof(params), "the trace's buffer");
  if (!buffer) return buffer.error();
  buffer_ = *buffer;
  return {};
}

Result<void> Trace::bind() {
  rm::FecsBind bind{};
  bind.event_buffer = buffer_;
  bind.record_bytes = sizeof(rm::FecsRecord);
  bind.all_users = 1;
  RmOutcome out =
      client_.control(client_.subdevice(), rm::kCtrlFecsBindEventBufferV2, &bind, sizeof(bind));
  if (!out.ok())
    out = client_.control(client_.subdevice(), rm::kCtrlFecsBindEventBuffer, &bind,
                          rm::kFecsBindV1Bytes);
  if (!out.ok()) return out.error("cannot bind the context-switch trace");
  rm::EventBufferEnable on{};
  on.enable = 1;
  on.flags = rm::kEventBufferKeepOldest;
  out = client_.control(buffer_, rm::kCtrlEventBufferEnable, &on, sizeof(on));
  if (!out.ok()) return out.error("cannot start the context-switch trace");
  return {};
}

RmOutcome Trace::flush() { return client_.control(buffer_, rm::kCtrlEventBufferFlush, nullptr, 0); }

void Trace::countLost(uint16_t sequence) {
  if (sequenced_) lost_ += static_cast<uint16_t>(sequence - sequence_ - 1);
  // Before Hopper all are 0.
  sequenced_ = sequence != 0 || sequenced_;
  sequence_ = sequence;
}

void Trace::read(std::vector<Switch> &out) {
  const auto *header = static_cast<const volatile rm::EventBufferHeader *>(header_);
  const auto *records = static_cast<const rm::FecsRecord *>(records_);
  const uint32_t put = header->put;
  if (put == get_ || put >= kRecords) return;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  for (; get_ != put; get_ = (get_ + 1) % kRecords) {
    rm::FecsRecord record;
    std::memcpy(&record, records + get_, sizeof(record));
    if (record.type != rm::kRecordV2 && record.type != rm::kRecordV1) understood_ = false;
    if (!understood_) continue;
    countLost(record.sequence);
    if (record.tag == rm::kTagStart || record.tag == rm::kTagEnd)
      out.push_back({record.tag == rm::kTagStart, record.pid, record.context, record.time_ns});
  }
  rm::EventBufferGet update{get_, 0};
  client_.control(buffer_, rm::kCtrlEventBufferUpdateGet, &update, sizeof(update));
}

}  // namespace qgpu::exec
