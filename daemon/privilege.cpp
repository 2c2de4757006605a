// SPDX-License-Identifier: GPL-2.0
// Capabilities by the two system calls themselves; the only file that knows them.
#include "privilege.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace qgpu {

Result<void> keepNetAdminOnly() {
  auto fail = [](const char *what) {
    return Error{errno, std::string("cannot ") + what + ": " + strerror(errno), ""};
  };
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail("forbid new privileges");
  for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; ++cap)
    if (cap != CAP_NET_ADMIN && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0 && errno != EPERM)
      return fail("drop a capability from the bounding set");
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);

  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return fail("read the capabilities");
  static_assert(CAP_NET_ADMIN < 32);
  uint32_t kept = data[0].permitted & (1u << CAP_NET_ADMIN);
  data[0] = {kept, kept, 0};
  data[1] = {0, 0, 0};
  if (syscall(SYS_capset, &header, data) != 0) return fail("drop capabilities");
  return {};
}

}  // namespace qgpu
