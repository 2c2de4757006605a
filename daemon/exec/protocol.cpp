// SPDX-License-Identifier: GPL-2.0
// Building and checking of the packets of protocol.hpp. What comes from a socket is looked at as
// bytes until its size, counts and texts are known to be right.
#include "protocol.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "../printable.hpp"

namespace qgpu::exec {
namespace {

Error broken(const std::string &sentence) { return {EPROTO, sentence, {}}; }

struct Size {
  size_t fixed;
  bool more;  // elements may follow
};

// {0, false} for a number that is no type.
Size sizeOf(Type type) {
  switch (type) {
    case Type::kHelloRequest:
      return {sizeof(HelloRequest), false};
    case Type::kHelloReply:
      return {sizeof(HelloReply), false};
    case Type::kPlanRequest:
      return {sizeof(PlanRequest), true};
    case Type::kPlanReply:
      return {sizeof(PlanReply), false};
    case Type::kProcessAdd:
    case Type::kProcessGone:
      return {sizeof(ProcessRequest), false};
    case Type::kProcessReply:
      return {sizeof(ProcessReply), false};
    case Type::kStatsRequest:
      return {sizeof(StatsRequest), false};
    case Type::kStatsReply:
      return {sizeof(StatsReply), true};
    case Type::kEvent:
      return {sizeof(Event), false};
    case Type::kMeasureRequest:
      return {sizeof(MeasureRequest), false};
    case Type::kMeasureReply:
      return {sizeof(MeasureReply), false};
    case Type::kSpansRequest:
      return {sizeof(SpansRequest), false};
    case Type::kConstantsRequest:
      return {sizeof(ConstantsRequest), false};
    case Type::kConstantsReply:
      return {sizeof(ConstantsReply), false};
    case Type::kLogRequest:
      return {sizeof(LogRequest), false};
    case Type::kLogReply:
      return {sizeof(LogReply), true};
  }
  return {0, false};
}

// Whether it ends; what of it could not be shown is replaced.
template <size_t N>
bool takeText(char (&text)[N]) {
  auto *end = static_cast<char *>(std::memchr(text, 0, N));
  if (!end) return false;
  std::replace_if(
      text, end, [](char c) { return !isPrintable(c); }, '?');
  return true;
}

// The fixed part of a packet whose header is right and of this type.
template <class T>
Result<T> decodeFixed(std::span<const std::byte> packet, Type type) {
  const auto header = decodeHeader(packet);
  if (!header) return header.error();
  if (header->type != type)
    return broken("a message of type " + std::to_string(static_cast<unsigned>(header->type)) +
                  " where another was due");
  T out;
  std::memcpy(&out, packet.data(), sizeof(out));
  return out;
}

template <class T>
Result<T> decodeReply(std::span<const std::byte> packet, Type type) {
  auto out = decodeFixed<T>(packet, type);
  if (out && !takeText(out->status.sentence)) return broken("a sentence does not end");
  return out;
}

template <class T>
void append(std::vector<std::byte> &packet, const T &value) {
  const auto *from = reinterpret_cast<const std::byte *>(&value);
  packet.insert(packet.end(), from, from + sizeof(value));
}

template <class T>
std::vector<T> take(std::span<const std::byte> packet, size_t offset, size_t count) {
  std::vector<T> out(count);
  if (count) std::memcpy(out.data(), packet.data() + offset, count * sizeof(T));
  return out;
}

}  // namespace

std::string socketPath(const std::string &run_dir, const std::string &uuid) {
  return run_dir + "/exec-" + uuid + ".sock";
}

std::string calibrateSocketPath(const std::string &run_dir, const std::string &uuid) {
  return run_dir + "/calibrate-" + uuid + ".sock";
}

Header makeHeader(Type type, uint32_t bytes, uint32_t serial) {
  return {kMagic, kVersion, type, bytes, serial};
}

void setText(std::span<char> out, std::string_view text) {
  size_t n = std::min(text.size(), out.size() - 1);
  // Where bytes that continue a character are cut off, its beginning is too.
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  while (n && n < text.size() && continues(text[n])) n--;
  std::copy_n(text.begin(), n, out.begin());
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(n), out.end(), '\0');
}

Status makeStatus(const Error *error, uint32_t tenant_id) {
  Status status{};
  status.tenant_id = tenant_id;
  if (!error) return status;
  status.error = error->err;
  setText(status.sentence, error->sentence);
  return status;
}

std::vector<std::byte> encode(Plan plan) {
  std::vector<std::byte> packet;
  plan.head.tenant_count = static_cast<uint32_t>(plan.tenants.size());
  plan.head.header = makeHeader(
      Type::kPlanRequest,
      static_cast<uint32_t>(sizeof(plan.head) + plan.tenants.size() * sizeof(PlanTenant)),
      plan.head.header.serial);
  append(packet, plan.head);
  for (const PlanTenant &tenant : plan.tenants) append(packet, tenant);
  return packet;
}

std::vector<std::byte> encode(Stats stats) {
  std::vector<std::byte> packet;
  stats.head.tenant_count = static_cast<uint32_t>(stats.tenants.size());
  stats.head.object_count = static_cast<uint32_t>(stats.objects.size());
  const size_t bytes = sizeof(stats.head) + stats.tenants.size() * sizeof(TenantStats) +
                       stats.objects.size() * sizeof(ObjectStats);
  stats.head.header =
      makeHeader(Type::kStatsReply, static_cast<uint32_t>(bytes), stats.head.header.serial);
  append(packet, stats.head);
  for (const TenantStats &tenant : stats.tenants) append(packet, tenant);
  for (const ObjectStats &object : stats.objects) append(packet, object);
  return packet;
}

std::vector<std::byte> encode(Log log) {
  std::vector<std::byte> packet;
  log.head.entry_count = static_cast<uint32_t>(log.entries.size());
  const size_t bytes = sizeof(log.head) + log.entries.size() * sizeof(LogEntry);
  log.head.header =
      makeHeader(Type::kLogReply, static_cast<uint32_t>(bytes), log.head.header.serial);
  packet.reserve(bytes);
  append(packet, log.head);
  for (const LogEntry &entry : log.entries) append(packet, entry);
  return packet;
}

Result<Header> decodeHeader(std::span<const std::byte> packet) {
  Header header;
  if (packet.size() < sizeof(header)) return broken("a packet shorter than a header");
  std::memcpy(&header, packet.data(), sizeof(header));
  if (header.magic != kMagic) return broken("a packet of something else");
  if (header.version != kVersion)
    return broken("version " + std::to_string(header.version) + " of the protocol, this is " +
                  std::to_string(kVersion));
  const Size size = sizeOf(header.type);
  if (!size.fixed)
    return broken("unknown message type " + std::to_string(static_cast<unsigned>(header.type)));
  if (header.bytes != packet.size() || packet.size() > kMaxPacket)
    return broken("a packet of " + std::to_string(packet.size()) + " bytes says it has " +
                  std::to_string(header.bytes));
  if (packet.size() < size.fixed || (!size.more && packet.size() != size.fixed))
    return broken("a message of the wrong size");
  return header;
}

Result<HelloRequest> decodeHelloRequest(std::span<const std::byte> packet) {
  return decodeFixed<HelloRequest>(packet, Type::kHelloRequest);
}

Result<HelloReply> decodeHelloReply(std::span<const std::byte> packet) {
  auto out = decodeReply<HelloReply>(packet, Type::kHelloReply);
  if (out && !(takeText(out->uuid) && takeText(out->name) && takeText(out->driver) &&
               takeText(out->profile)))
    return broken("a name does not end");
  return out;
}

Result<Plan> decodePlan(std::span<const std::byte> packet) {
  const auto head = decodeFixed<PlanRequest>(packet, Type::kPlanRequest);
  if (!head) return head.error();
  if (head->tenant_count > kMaxTenants ||
      packet.size() != sizeof(PlanRequest) + head->tenant_count * sizeof(PlanTenant))
    return broken("a plan whose number of tenants does not fit its size");
  if (head->reserved || (head->flags & ~kPlanDryRun)) return broken("unknown flags of a plan");
  Plan plan{*head, take<PlanTenant>(packet, sizeof(PlanRequest), head->tenant_count)};
  for (const PlanTenant &tenant : plan.tenants)
    if (tenant.reserved) return broken("unknown flags of a tenant");
  return plan;
}

Result<PlanReply> decodePlanReply(std::span<const std::byte> packet) {
  return decodeReply<PlanReply>(packet, Type::kPlanReply);
}

Result<ProcessRequest> decodeProcess(std::span<const std::byte> packet) {
  const auto header = decodeHeader(packet);
  if (!header) return header.error();
  const Type type = header->type == Type::kProcessGone ? Type::kProcessGone : Type::kProcessAdd;
  auto out = decodeFixed<ProcessRequest>(packet, type);
  if (out && out->pid <= 0) return broken("a pid that is none");
  return out;
}

Result<ProcessReply> decodeProcessReply(std::span<const std::byte> packet) {
  return decodeReply<ProcessReply>(packet, Type::kProcessReply);
}

Result<StatsRequest> decodeStatsRequest(std::span<const std::byte> packet) {
  return decodeFixed<StatsRequest>(packet, Type::kStatsRequest);
}

Result<Stats> decodeStats(std::span<const std::byte> packet) {
  const auto head = decodeReply<StatsReply>(packet, Type::kStatsReply);
  if (!head) return head.error();
  const size_t tenants = head->tenant_count, objects = head->object_count;
  if (tenants > kMaxTenants || objects > kMaxObjects ||
      packet.size() !=
          sizeof(StatsReply) + tenants * sizeof(TenantStats) + objects * sizeof(ObjectStats))
    return broken("counters whose numbers do not fit their size");
  return Stats{
      *head, take<TenantStats>(packet, sizeof(StatsReply), tenants),
      take<ObjectStats>(packet, sizeof(StatsReply) + tenants * sizeof(TenantStats), objects)};
}

Result<LogRequest> decodeLogRequest(std::span<const std::byte> packet) {
  return decodeFixed<LogRequest>(packet, Type::kLogRequest);
}

Result<Log> decodeLog(std::span<const std::byte> packet) {
  const auto head = decodeReply<LogReply>(packet, Type::kLogReply);
  if (!head) return head.error();
  if (head->entry_count > kMaxLogEntries ||
      packet.size() != sizeof(LogReply) + head->entry_count * sizeof(LogEntry))
    return broken("a log whose number of entries does not fit its size");
  return Log{*head, take<LogEntry>(packet, sizeof(LogReply), head->entry_count)};
}

Result<Event> decodeEvent(std::span<const std::byte> packet) {
  auto out = decodeFixed<Event>(packet, Type::kEvent);
  if (out && !takeText(out->sentence)) return broken("a sentence does not end");
  return out;
}

Result<MeasureRequest> decodeMeasureRequest(std::span<const std::byte> packet) {
  auto out = decodeFixed<MeasureRequest>(packet, Type::kMeasureRequest);
  if (!out) return out;
  if (!out->process_count || out->process_count > kMeasuredMax || (out->flags & ~kMeasureForce))
    return broken("a measurement of so many processes, or unknown flags of it");
  for (uint32_t i = 0; i < out->process_count; i++)
    if (out->pids[i] <= 0) return broken("a pid that is none");
  return out;
}

Result<MeasureReply> decodeMeasureReply(std::span<const std::byte> packet) {
  return decodeReply<MeasureReply>(packet, Type::kMeasureReply);
}

Result<SpansRequest> decodeSpansRequest(std::span<const std::byte> packet) {
  return decodeFixed<SpansRequest>(packet, Type::kSpansRequest);
}

Result<ConstantsRequest> decodeConstantsRequest(std::span<const std::byte> packet) {
  return decodeFixed<ConstantsRequest>(packet, Type::kConstantsRequest);
}

Result<ConstantsReply> decodeConstantsReply(std::span<const std::byte> packet) {
  return decodeReply<ConstantsReply>(packet, Type::kConstantsReply);
}

}  // namespace qgpu::exec
