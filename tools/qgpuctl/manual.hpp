// SPDX-License-Identifier: GPL-2.0
// The command line's own definition as a man page and as completions for shells: what CLI11 parses
// is what these say.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace qgpu::ctl {

// troff for man(7), section 1.
std::string manPage(const CLI::App &app);
std::string bashCompletion(const CLI::App &app);
std::string zshCompletion(const CLI::App &app);
std::string fishCompletion(const CLI::App &app);

}  // namespace qgpu::ctl
