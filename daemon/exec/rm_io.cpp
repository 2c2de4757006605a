// SPDX-License-Identifier: GPL-2.0
// The real driver and the real /proc.
#include "rm_io.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "rm_abi.hpp"
#include "rm_call.hpp"

namespace qgpu::exec {
namespace {

// A tenant may open as many as it likes; a look at them costs a microsecond each.
constexpr size_t kDescriptorsMax = 16'384;

Error failed(int err, const std::string &what, const std::string &item) {
  return {err, what + ": " + std::strerror(err), item};
}

// What another process has is not to be looked at: says what is missing for that.
Error forbidden(int err, const std::string &what, const std::string &item) {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3]{};
  Error out = failed(err, what, item);
  if (err != EACCES && err != EPERM) return out;
  if (syscall(SYS_capget, &head, caps) == 0 && !(caps[0].effective & 1u << CAP_SYS_PTRACE))
    out.sentence += " (qgpu-exec lacks CAP_SYS_PTRACE)";
  return out;
}

bool isControl(const struct stat &s) {
  return S_ISCHR(s.st_mode) && s.st_rdev == makedev(rm::kMajor, rm::kMinorControl);
}

// 0 if it is the control node, a positive errno if not or if it cannot be seen. What the tenant
// has open may be on a server that does not answer: only what is known already is asked for.
int isControlAt(int folder, const char *name) {
  struct statx s;
  if (statx(folder, name, AT_STATX_DONT_SYNC, STATX_TYPE, &s) != 0) return errno;
  const bool is = S_ISCHR(s.stx_mode) && s.stx_rdev_major == rm::kMajor &&
                  s.stx_rdev_minor == rm::kMinorControl;
  return is ? 0 : ENODEV;
}

}  // namespace

Result<int> DeviceIo::open(const std::string &path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return failed(errno, "cannot open " + path, path);
  return fd;
}

void DeviceIo::close(int fd) { ::close(fd); }

int DeviceIo::ioctl(int fd, unsigned long request, void *argument) {
  int err = 0;
  if (pulse_) pulse_->beat();
  do {
    err = ::ioctl(fd, request, argument) >= 0 ? 0 : errno;
  } while (err == EINTR || err == EAGAIN);
  if (pulse_) pulse_->beat();
  return err;
}

Result<void *> DeviceIo::map(int fd, size_t bytes, bool writable) {
  void *at = mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return failed(errno, "cannot map the driver's memory", {});
  return at;
}

void DeviceIo::unmap(void *address, size_t bytes) { munmap(address, bytes); }

bool DeviceIo::isControlNode(int fd) {
  struct stat s;
  return fstat(fd, &s) == 0 && isControl(s);
}

Result<std::vector<int>> DeviceIo::controlDescriptors(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  DIR *dir = opendir(folder.c_str());
  if (!dir) return forbidden(errno, "its descriptors cannot be looked at", std::to_string(pid));
  std::vector<int> out;
  int refused = 0;
  size_t looked = 0;
  const dirent *entry = nullptr;
  while (looked < kDescriptorsMax && (entry = readdir(dir))) {
    looked++;
    const int err = isControlAt(dirfd(dir), entry->d_name);
    // The listing may be had where what is in it may not.
    if (err == EACCES || err == EPERM) refused = err;
    if (!err) out.push_back(std::atoi(entry->d_name));
  }
  closedir(dir);
  if (entry && out.empty())
    return Error{EMFILE, "it has more descriptors than are looked at", std::to_string(pid)};
  if (refused && out.empty())
    return forbidden(refused, "its descriptors cannot be looked at", std::to_string(pid));
  std::sort(out.begin(), out.end());
  return out;
}

// A kernel that cannot compare files, or may not, says an error: then the number is believed.
bool DeviceIo::holdsControl(pid_t pid, int fd, int duplicate) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  return isControlAt(AT_FDCWD, path.c_str()) == 0 &&
         syscall(SYS_kcmp, getpid(), pid, KCMP_FILE, duplicate, fd) <= 0;
}

Result<int> DeviceIo::duplicate(int pidfd, int fd) {
  const long copy = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
  if (copy < 0) return forbidden(errno, "its descriptor cannot be duplicated", {});
  return static_cast<int>(copy);
}

uint64_t DeviceIo::nowNs() { return monotonicNs(); }

bool DeviceIo::ended(int pidfd) {
  pollfd p{.fd = pidfd, .events = POLLIN, .revents = 0};
  return poll(&p, 1, 0) > 0;
}

}  // namespace qgpu::exec
