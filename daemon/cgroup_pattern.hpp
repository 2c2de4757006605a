// SPDX-License-Identifier: GPL-2.0
// What a file may say of a tenant's cgroups: a path below the cgroup2 mount, or a pattern of some.
#pragma once

#include <string>

namespace qgpu {

// Why it is none, to stand after its text; empty: it is one.
std::string cgroupPatternMistake(const std::string &text);

bool isGlob(const std::string &text);

}  // namespace qgpu
