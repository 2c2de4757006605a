// SPDX-License-Identifier: GPL-2.0
#include "rm_call.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "rm_abi.hpp"

namespace qgpu::exec {
namespace {

const char *nameOf(uint32_t status) {
  switch (status) {
    case 0x0f:
      return "the card is lost";
    case 0x1a:
      return "out of resources";
    case rm::kInsufficientPermissions:
      return "not permitted";
    case 0x1f:
    case 0x3a:
    case 0x3b:
      return "wrong parameters";
    case 0x22:
      return "no such class";
    case rm::kInvalidClient:
      return "no such client";
    case rm::kInvalidObjectHandle:
    case rm::kObjectNotFound:
      return "no such object";
    case 0x40:
      return "not in this state";
    case 0x56:
      return "not supported";
    case 0x65:
    case 0x66:
      return "timed out";
    default:
      return nullptr;
  }
}

}  // namespace

uint64_t monotonicNs() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

std::string RmOutcome::text(const std::string &what) const {
  if (err) return what + ": " + std::strerror(err);
  char number[16];
  std::snprintf(number, sizeof(number), "0x%x", status);
  const char *name = nameOf(status);
  return what + ": the driver's status " + number + (name ? std::string(" (") + name + ")" : "");
}

Error RmOutcome::error(const std::string &what) const {
  int number = EIO;
  if (err)
    number = err;
  else if (status == rm::kInsufficientPermissions)
    number = EACCES;
  else if (status == rm::kInvalidClient)
    number = ESRCH;
  else if (status == rm::kObjectNotFound || status == rm::kInvalidObjectHandle)
    number = ENOENT;
  return {number, text(what), what};
}

RmOutcome rmControl(RmIo &io, int fd, uint32_t client, uint32_t object, uint32_t cmd, void *params,
                    uint32_t bytes) {
  rm::Control call{};
  call.client = client;
  call.object = object;
  call.cmd = cmd;
  call.params = reinterpret_cast<uint64_t>(params);
  call.params_bytes = bytes;
  const uint64_t begin = io.nowNs();
  RmOutcome out;
  out.err = io.ioctl(fd, rm::request(rm::kNrControl, sizeof(call)), &call);
  out.took_ns = io.nowNs() - begin;
  io.noteTook(out.took_ns);
  out.status = call.status;
  return out;
}

}  // namespace qgpu::exec
