// SPDX-License-Identifier: GPL-2.0
// qgpud's command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace qgpu {

struct ProgramOptions {
  std::string file = "/etc/qgpu/qgpud.toml";
  bool check_only = false;
  bool foreground = false;
  std::string man_page;  // where to write the program's own; empty: nowhere
};

void defineProgram(CLI::App &app, ProgramOptions &options);

// Section 8.
std::string programManPage(const CLI::App &app);

}  // namespace qgpu
