// SPDX-License-Identifier: GPL-2.0
// Log lines to stderr that never make anybody wait: what a pipe, a socket or a terminal does not
// take at once is left out and counted, and the next line that is taken comes behind how many were.
#pragma once

#include <spdlog/sinks/sink.h>

#include <memory>

namespace qgpu {

// fd: stays the caller's; it is written to, or a non-blocking one to the same pipe or terminal, so
// that whoever shares it is left as he is. Whoever flushes is told what was left out, too.
std::shared_ptr<spdlog::sinks::sink> stderrSink(int fd);

}  // namespace qgpu
