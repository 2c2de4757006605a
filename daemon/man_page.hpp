// SPDX-License-Identifier: GPL-2.0
// Parts of a page for man(7) out of what a program's command line parser knows: what is parsed is
// what the page says.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace qgpu {

// For troff: a point or quote at a line's begin is a request, a hyphen may become a dash.
std::string manEscaped(const std::string &text);

// "name - what", the beginning of a page of this section.
std::string manHead(const std::string &name, int section, const std::string &what);

std::vector<const CLI::Option *> optionsOf(const CLI::App &app);

// Every option that people are shown with its default, but for those named.
std::string manOptions(const CLI::App &app, const std::vector<std::string> &but = {"help"});

// The page of a program without verbs, whose description is a sentence after "name: " and whose
// footer has its exit codes. more: sections that no parser knows, ready-made.
std::string manPageOf(const CLI::App &app, const std::string &name, int section,
                      const std::string &description, const std::string &more);

}  // namespace qgpu
