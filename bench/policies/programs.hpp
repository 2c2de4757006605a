// SPDX-License-Identifier: GPL-2.0
//
// programs.hpp - what tenants do with the card: queue deep, launch and wait, come in bursts, serve
// requests.
#ifndef QGPU_BENCH_POLICIES_PROGRAMS_HPP
#define QGPU_BENCH_POLICIES_PROGRAMS_HPP

#include <memory>
#include <vector>

#include "policies/machine.hpp"
#include "policies/trace.hpp"

namespace qgpu::bench {

// Always @depth kernels in flight.
MakeProgram queued(const fakes::Kernel &kernel, unsigned depth = 4);

// Launch one, wait for it, let the host think for @gap_ns, again.
MakeProgram launchAndWait(const fakes::Kernel &kernel, uint64_t gap_ns);

// @count kernels at once; when they are done, a pause, exponentially distributed.
MakeProgram bursts(const fakes::Kernel &kernel, unsigned count, uint64_t mean_pause_ns);

// How a request becomes work on the card.
struct Serving {
  double speed_up = 1;  // arrivals come so many times faster than in the trace
  uint64_t prefill_ns_per_token = 20'000;
  uint64_t decode_ns = 1'000'000;  // each generated token is one kernel
  uint64_t host_gap_ns = 20'000;   // from one step's end to the next one's launch
};

// One request at a time, in order of arrival: a prefill, then decode steps, each launched when
// the last is done. The trace begins anew when it is over.
MakeProgram serve(std::shared_ptr<const std::vector<Request>> trace, const Serving &serving);

}  // namespace qgpu::bench

#endif
