// SPDX-License-Identifier: GPL-2.0
#include "stderr_sink.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string>
#include <string_view>

#include "printable.hpp"
#include "unique_fd.hpp"

namespace qgpu {

namespace {

class StderrSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit StderrSink(int fd) : fd_(fd) {
    struct stat status {};
    if (fstat(fd, &status) != 0) return;
    is_socket_ = S_ISSOCK(status.st_mode);
    // A file never makes anybody wait for a reader, and opened anew it would have a place of its
    // own.
    if (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode)) return;
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    own_ = UniqueFd(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (own_.get() >= 0) fd_ = own_.get();
    is_polled_ = own_.get() < 0;
  }

 private:
  void sink_it_(const spdlog::details::log_msg &message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    flush_();
    const std::string_view text(line.data(), line.size() - 1);
    if (!rest_.empty() || left_out_ || !put(harmless(text) + "\n")) left_out_++;
  }

  void flush_() override {
    if (!putRest() || !left_out_) return;
    if (put("qgpud: " + std::to_string(left_out_) +
            " lines of the log were left out: nobody read them\n"))
      left_out_ = 0;
  }

  // What is left of a line that was taken in part comes before all else. True: nothing is.
  bool putRest() {
    if (rest_.empty()) return true;
    const ssize_t taken = take(rest_);
    if (taken > 0) rest_.erase(0, static_cast<size_t>(taken));
    return rest_.empty();
  }

  // False: nothing of it was taken.
  bool put(const std::string &text) {
    const ssize_t taken = take(text);
    if (taken > 0) rest_ = text.substr(static_cast<size_t>(taken));
    return taken > 0;
  }

  // How much of it was, at once; 0 or less: nothing.
  ssize_t take(const std::string &text) {
    if (is_socket_) return send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    pollfd ready{fd_, POLLOUT, 0};
    if (is_polled_ && (poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT))) return -1;
    // Where it is polled a pipe has room for so much.
    return write(fd_, text.data(),
                 std::min<size_t>(text.size(), is_polled_ ? PIPE_BUF : SSIZE_MAX));
  }

  int fd_;
  UniqueFd own_;
  bool is_socket_ = false, is_polled_ = false;
  std::string rest_;
  uint64_t left_out_ = 0;
};

}  // namespace

std::shared_ptr<spdlog::sinks::sink> stderrSink(int fd) { return std::make_shared<StderrSink>(fd); }

}  // namespace qgpu
