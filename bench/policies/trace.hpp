// SPDX-License-Identifier: GPL-2.0
//
// trace.hpp - arrival times of requests to a language model, from a CSV file with the columns
// TIMESTAMP (YYYY-MM-DD hh:mm:ss.fraction), ContextTokens and GeneratedTokens, in any order.
#ifndef QGPU_BENCH_POLICIES_TRACE_HPP
#define QGPU_BENCH_POLICIES_TRACE_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace qgpu::bench {

struct Request {
  uint64_t at_ns;  // since the first one
  uint32_t context_tokens, generated_tokens;
};

// Throws std::runtime_error with file and line where it is not such a file.
std::vector<Request> readTrace(const std::string &path);

}  // namespace qgpu::bench

#endif
