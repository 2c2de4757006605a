// SPDX-License-Identifier: GPL-2.0
// How much a file may name, counted before any of it is read: what is made of it is as long as the
// product of some of these, and all of the daemon waits for it.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <vector>

#include "config.hpp"

namespace qgpu {

constexpr size_t kConfigCardsMax = 64;      // [[card]], and cards with settings of their own
constexpr size_t kConfigCgroupsMax = 4096;  // paths and patterns of all tenants together

// One for each limit that is passed, with the line where it is.
std::vector<ConfigProblem> sizeProblems(const toml::table &root, const std::string &file);

}  // namespace qgpu
