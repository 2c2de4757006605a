// SPDX-License-Identifier: GPL-2.0
#include "measuring.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "exec/packet_socket.hpp"

namespace qgpu::ctl {
namespace {

// Beyond the time that a measurement takes; the executor may be in the middle of a control.
constexpr uint64_t kPatienceNs = 40'000'000'000;

// In the child. Dies with its parent.
[[noreturn]] void runChild(std::vector<std::string> arguments, const std::string &uuid, int out,
                           pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  dup2(out, STDOUT_FILENO);
  setenv("CUDA_VISIBLE_DEVICES", uuid.c_str(), 1);
  std::vector<char *> argv;
  for (std::string &argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  std::fprintf(stderr, "%s: %s\n", argv[0], std::strerror(errno));
  _exit(127);
}

template <class T>
std::span<const std::byte> bytesOf(const T &message) {
  return std::as_bytes(std::span(&message, 1));
}

Error errorOf(const exec::Status &status) { return {status.error, status.sentence, {}}; }

}  // namespace

uint64_t monotonicNowNs() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

Result<std::unique_ptr<LoadChild>> LoadChild::start(const std::string &program,
                                                    std::vector<std::string> arguments,
                                                    const std::string &uuid) {
  std::unique_ptr<LoadChild> child(new LoadChild);
  child->out_.reset(memfd_create("qgpu-load", MFD_CLOEXEC));
  if (!child->out_) return Error{errno, std::strerror(errno), "memfd_create"};
  arguments.insert(arguments.begin(), program);
  const pid_t parent = getpid();
  child->pid_ = fork();
  if (child->pid_ < 0) return Error{errno, std::strerror(errno), "fork"};
  if (child->pid_ == 0) runChild(std::move(arguments), uuid, child->out_.get(), parent);
  child->pidfd_.reset(static_cast<int>(syscall(SYS_pidfd_open, child->pid_, 0)));
  if (!child->pidfd_) return Error{errno, std::strerror(errno), "pidfd_open"};
  return child;
}

LoadChild::~LoadChild() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string LoadChild::output() const {
  std::string text;
  char part[4096];
  for (ssize_t n; (n = pread(out_.get(), part, sizeof(part), static_cast<off_t>(text.size()))) > 0;)
    text.append(part, static_cast<size_t>(n));
  return text;
}

Result<nlohmann::json> LoadChild::wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Error{ECHILD, "qgpu-load could not make load (what it said is above)", {}};
  auto json = nlohmann::json::parse(output(), nullptr, false);
  if (json.is_discarded() || !json.is_object())
    return Error{EBADMSG, "what qgpu-load printed cannot be understood", {}};
  return json;
}

Result<Measurer> Measurer::open(const std::string &path) {
  auto fd = exec::connectTo(path);
  if (!fd) return fd.error();
  return Measurer(UniqueFd(*fd));
}

Result<std::vector<std::byte>> Measurer::exchange(std::span<const std::byte> packet,
                                                  const std::vector<int> &fds, uint64_t until_ns) {
  const Error gone{
      ECONNRESET, "the executor ended the connection (is another calibration on?)", {}};
  if (!exec::sendPacket(fd_.get(), packet, fds)) return gone;
  for (;;) {
    const uint64_t now_ns = monotonicNowNs();
    if (now_ns >= until_ns) return Error{ETIMEDOUT, "the executor does not answer", {}};
    pollfd wait{fd_.get(), POLLIN, 0};
    poll(&wait, 1, static_cast<int>((until_ns - now_ns) / 1'000'000 + 1));
    exec::Packet answer = exec::receivePacket(fd_.get());
    for (const int fd : answer.fds) close(fd);
    if (answer.state == exec::Packet::kEnded) return gone;
    if (answer.state == exec::Packet::kWhole) return std::move(answer.bytes);
  }
}

Result<exec::Measured> Measurer::measure(exec::MeasureRequest request,
                                         const std::vector<int> &pidfds) {
  request.header = exec::makeHeader(exec::Type::kMeasureRequest, sizeof(request), 1);
  return measuredOf(exchange(bytesOf(request), pidfds, request.until_ns + kPatienceNs));
}

Result<exec::Measured> Measurer::measuredOf(const Result<std::vector<std::byte>> &answer) {
  if (!answer) return answer.error();
  const auto reply = exec::decodeMeasureReply(*answer);
  if (!reply) return reply.error();
  if (reply->status.error) return errorOf(reply->status);
  return reply->measured;
}

Result<exec::Measured> Measurer::spans(exec::SpansRequest request) {
  request.header = exec::makeHeader(exec::Type::kSpansRequest, sizeof(request), 3);
  return measuredOf(exchange(bytesOf(request), {}, monotonicNowNs() + kPatienceNs));
}

Result<void> Measurer::store(const exec::CardConstants &constants) {
  exec::ConstantsRequest request{};
  request.header = exec::makeHeader(exec::Type::kConstantsRequest, sizeof(request), 2);
  request.constants = constants;
  const auto answer = exchange(bytesOf(request), {}, monotonicNowNs() + kPatienceNs);
  if (!answer) return answer.error();
  const auto reply = exec::decodeConstantsReply(*answer);
  if (!reply) return reply.error();
  if (reply->status.error) return errorOf(reply->status);
  return {};
}

}  // namespace qgpu::ctl
