// SPDX-License-Identifier: GPL-2.0
#include "calibration_server.hpp"

#include <unistd.h>

#include <cerrno>

namespace qgpu::exec {
namespace {

template <class T>
std::span<const std::byte> bytesOf(const T &message) {
  return std::as_bytes(std::span(&message, 1));
}

void closeAll(const std::vector<int> &fds) {
  for (const int fd : fds) close(fd);
}

}  // namespace

CalibrationServer::CalibrationServer(const std::string &path, Executor &executor)
    : executor_(executor) {
  const auto fd = listenAt(path);
  if (!fd) return;
  listen_fd_.reset(*fd);
  file_ = SocketFile(path);
}

CalibrationServer::~CalibrationServer() { drop(); }

void CalibrationServer::drop() {
  executor_.endMeasuring();
  fd_.reset();
}

std::vector<pollfd> CalibrationServer::polls() const {
  std::vector<pollfd> out;
  if (listen_fd_) out.push_back({listen_fd_.get(), POLLIN, 0});
  if (fd_) out.push_back({fd_.get(), POLLIN, 0});
  return out;
}

void CalibrationServer::handle(const std::vector<pollfd> &ready) {
  for (const pollfd &p : ready)
    if (p.revents && fd_ && p.fd == fd_.get()) read();
  for (const pollfd &p : ready) {
    if (!p.revents || !listen_fd_ || p.fd != listen_fd_.get()) continue;
    UniqueFd fresh(acceptFrom(listen_fd_.get()));
    if (!fd_) fd_ = std::move(fresh);
  }
}

void CalibrationServer::read() {
  const Packet packet = receivePacket(fd_.get());
  if (packet.state == Packet::kNone) return;
  if (packet.state == Packet::kWhole)
    answer(packet);
  else
    closeAll(packet.fds), drop();
}

// What cannot be understood ends the connection.
void CalibrationServer::answer(const Packet &packet) {
  if (const auto request = decodeMeasureRequest(packet.bytes);
      request && packet.fds.size() == request->process_count) {
    serial_ = request->header.serial;
    const auto begun = executor_.beginMeasuring(*request, packet.fds);
    if (!begun) reply(Type::kMeasureReply, &begun.error());
    return;
  }
  closeAll(packet.fds);
  if (const auto spans = decodeSpansRequest(packet.bytes)) {
    serial_ = spans->header.serial;
    if (executor_.measuring()) return executor_.askSpans(*spans);
    const Error error{ENOENT, "nothing was measured on this connection", {}};
    return reply(Type::kMeasureReply, &error);
  }
  const auto request = decodeConstantsRequest(packet.bytes);
  if (!request) return drop();
  serial_ = request->header.serial;
  const auto set = executor_.setConstants(request->constants);
  reply(Type::kConstantsReply, set ? nullptr : &set.error());
}

void CalibrationServer::reply(Type type, const Error *error, const Measured &measured) {
  MeasureReply out{};
  const size_t bytes = type == Type::kMeasureReply ? sizeof(MeasureReply) : sizeof(ConstantsReply);
  out.header = makeHeader(type, static_cast<uint32_t>(bytes), serial_);
  out.status = makeStatus(error);
  out.measured = measured;
  if (!sendPacket(fd_.get(), bytesOf(out).first(bytes))) drop();
}

void CalibrationServer::sendResult() {
  const auto result = executor_.measured();
  if (!result || !fd_) return;
  if (*result)
    reply(Type::kMeasureReply, nullptr, **result);
  else
    reply(Type::kMeasureReply, &result->error());
}

}  // namespace qgpu::exec
