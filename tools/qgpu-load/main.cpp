// SPDX-License-Identifier: GPL-2.0
// qgpu-load: exit status 0 measured, 1 the driver refused, 2 wrong usage.
#include <sys/prctl.h>

#include <atomic>
#include <csignal>
#include <exception>
#include <iostream>

#include "cuda_load.hpp"
#include "load.hpp"
#include "report.hpp"

namespace {

std::atomic<bool> stop_asked = false;

void onSignal(int) { stop_asked = true; }

}  // namespace

int main(int argc, char **argv) {
  qgpu::Options options;
  if (const auto status = qgpu::parseOptions(argc, argv, options)) return *status;
  // Asked to stop early, it still says what it measured.
  std::signal(SIGINT, onSignal);
  std::signal(SIGTERM, onSignal);
  // Wake up when asked to, not up to 50 us later.
  prctl(PR_SET_TIMERSLACK, 1);
  try {
    if (options.cuda) {
      qgpu::CudaMeasured measured = qgpu::runCudaLoad(options, stop_asked);
      qgpu::reportCuda(options, measured, std::cout);
      return 0;
    }
    qgpu::Tenant tenant(options.card, options.tsgs, options.depth);
    qgpu::Measured measured = qgpu::runLoad(options, tenant, stop_asked);
    qgpu::report(options, measured, std::cout);
  } catch (const std::exception &error) {
    std::cerr << "qgpu-load: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
