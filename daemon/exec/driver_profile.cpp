// SPDX-License-Identifier: GPL-2.0
// The layouts' boundaries. Nothing is assumed of releases that were not read.
#include "driver_profile.hpp"

#include <cctype>
#include <cerrno>
#include <cstdio>

namespace qgpu::exec {
namespace {

constexpr unsigned kOldest = 515, kNewest = 595;
constexpr DriverVersion kAllocWithSize{535, 43, 2};
constexpr DriverVersion kLongMemoryParams{545, 23, 6};

}  // namespace

std::string DriverVersion::text() const {
  char out[48];
  std::snprintf(out, sizeof(out), "%u.%02u.%02u", branch, minor, patch);
  return out;
}

Result<DriverVersion> parseDriverVersion(std::string_view text) {
  for (size_t at = 0; at < text.size(); at++) {
    if (!std::isdigit(static_cast<unsigned char>(text[at]))) continue;
    if (at && (std::isalnum(static_cast<unsigned char>(text[at - 1])) || text[at - 1] == '.'))
      continue;
    DriverVersion v;
    const std::string rest(text.substr(at, 32));
    const int fields = std::sscanf(rest.c_str(), "%3u.%3u.%3u", &v.branch, &v.minor, &v.patch);
    if (fields >= 2 && v.branch >= 100) return v;
  }
  return Error{EINVAL, "no driver version in what the driver says of itself", std::string(text)};
}

Result<DriverProfile> driverProfile(const DriverVersion &version, DriverChoice choice) {
  const bool known = version.branch >= kOldest && version.branch <= kNewest;
  if (!known && choice == DriverChoice::kExact)
    return Error{ENOTSUP,
                 "driver " + version.text() + " is outside 515 to 595, whose interface is known;" +
                     " --force-driver tries the nearest",
                 version.text()};
  DriverProfile profile;
  profile.alloc_has_size = version >= kAllocWithSize;
  profile.memory_params_bytes = version >= kLongMemoryParams ? 128 : 120;
  profile.name = !profile.alloc_has_size              ? "515-530"
                 : profile.memory_params_bytes == 120 ? "535"
                                                      : "545-595";
  if (!known) profile.name += " (forced)";
  return profile;
}

}  // namespace qgpu::exec
