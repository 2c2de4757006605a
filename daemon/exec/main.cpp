// SPDX-License-Identifier: GPL-2.0
// qgpu-exec: controls one NVIDIA card through the stock driver. Exit status 0 stopped in order,
// 2 wrong usage, 3 this card cannot be controlled, 4 another qgpu-exec has it (one sentence says
// why).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "guard.hpp"
#include "worker.hpp"

namespace {

int usage() {
  std::fputs(
      "usage: qgpu-exec --card UUID|MINOR [--run-dir DIR] [--state-dir DIR] [--force-driver]\n"
      "       qgpu-exec --release [--card UUID|MINOR] [--run-dir DIR] [--force-driver]\n"
      "\n"
      "The first controls a card as qgpud tells it over DIR/exec-UUID.sock, until SIGTERM; the "
      "card\n"
      "is then as it was found. What `qgpuctl calibrate` measured is in the state folder\n"
      "(/var/lib/qgpu). The second lets run what a killed one had stopped and puts slices\n"
      "back. --force-driver tries the nearest known interface on a driver outside 515 to 595.\n"
      "\n"
      "One a card: a second is refused. Exit status: 0 stopped in order, 1 release: somebody may\n"
      "still be stopped, 2 usage, 3 this card cannot be controlled, 4 another qgpu-exec has it.\n",
      stderr);
  return 2;
}

}  // namespace

int main(int argc, char **argv) {
  qgpu::exec::WorkerOptions options;
  bool release = false;
  int listen_fd = -1, pulse_fd = -1;
  for (int i = 1; i < argc; i++) {
    const std::string arg = argv[i];
    const char *value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (arg == "--release") {
      release = true;
    } else if (arg == "--force-driver") {
      options.choice = qgpu::exec::DriverChoice::kNearest;
    } else if (!value) {
      return usage();
    } else if (arg == "--card") {
      options.card = argv[++i];
    } else if (arg == "--run-dir") {
      options.run_dir = argv[++i];
    } else if (arg == "--state-dir") {
      options.state_dir = argv[++i];
    } else if (arg == "--worker") {  // from the guard
      listen_fd = std::atoi(argv[++i]);
    } else if (arg == "--pulse") {  // likewise
      pulse_fd = std::atoi(argv[++i]);
    } else if (arg == "--restarts") {
      options.restarts = static_cast<uint32_t>(std::strtoul(argv[++i], nullptr, 10));
    } else {
      return usage();
    }
  }
  if (release) return qgpu::exec::runRelease(options);
  if (options.card.empty()) return usage();
  if (listen_fd >= 0) return qgpu::exec::runWorker(options, listen_fd, pulse_fd);
  return qgpu::exec::runGuard(options);
}
