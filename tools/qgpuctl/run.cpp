// SPDX-License-Identifier: GPL-2.0
// qgpuctl run --tenant NAME -- CMD: fails closed. The command starts only as a member of a tenant
// whose share the daemon and every card have confirmed.
#include "run.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "verb.hpp"

namespace qgpu::ctl {

namespace {

Result<void> makeFolders(const std::string &root, const std::string &path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    std::string folder = root + path.substr(0, end);
    if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
      return Error{errno, std::string("cannot make the cgroup: ") + strerror(errno), folder};
    if (end == std::string::npos) return {};
  }
}

// A cgroup that is held: what is confirmed and what is joined are the same, whatever becomes of the
// path meanwhile.
class HeldCgroup {
 public:
  explicit HeldCgroup(const std::string &folder)
      : folder_(folder), fd_(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}
  ~HeldCgroup() {
    if (fd_ >= 0) close(fd_);
  }
  HeldCgroup(const HeldCgroup &) = delete;
  HeldCgroup &operator=(const HeldCgroup &) = delete;

  Result<uint64_t> id() const;
  Result<void> enter() const;

 private:
  std::string folder_;
  int fd_;
};

Result<uint64_t> HeldCgroup::id() const {
  struct stat status {};
  if (fd_ < 0 || fstat(fd_, &status) != 0)
    return Error{errno, std::string("cannot look at the cgroup: ") + strerror(errno), folder_};
  return static_cast<uint64_t>(status.st_ino);
}

Result<void> HeldCgroup::enter() const {
  std::string procs = folder_ + "/cgroup.procs";
  int fd = openat(fd_, "cgroup.procs", O_WRONLY | O_CLOEXEC);
  bool joined = fd >= 0 && write(fd, "0", 1) == 1;
  int err = errno;
  if (fd >= 0) close(fd);
  if (joined) return {};
  return Error{err, std::string("cannot join the cgroup: ") + strerror(err), procs};
}

}  // namespace

Result<void> joinTenant(Connection &connection, const std::string &tenant) {
  auto place = connection.ask({{"verb", "place"}, {"tenant", tenant}});
  if (!place) return place.error();
  std::string root = place->value("root", "");
  std::string cgroup = place->value("cgroup", "");
  if (root.empty() || cgroup.empty() || cgroup.front() != '/')
    return Error{EBADMSG, "qgpud did not say where the tenant's cgroup is", tenant};
  if (auto made = makeFolders(root, cgroup); !made) return made.error();
  HeldCgroup held(root + cgroup);
  auto id = held.id();
  if (!id) return id.error();
  connection.setPatience(kChangePatience);
  auto ensured =
      connection.ask({{"verb", "ensure"}, {"tenant", tenant}, {"cgroup", cgroup}, {"id", *id}});
  if (!ensured) return ensured.error();
  return held.enter();
}

namespace {

Result<void> join(const std::string &socket, const std::string &tenant) {
  auto connection = Connection::open(socket);
  if (!connection) return connection.error();
  try {
    return joinTenant(*connection, tenant);
  } catch (const std::exception &error) {
    return Error{EBADMSG, std::string("qgpud's answer cannot be understood: ") + error.what(), ""};
  }
}

}  // namespace

void addRun(CLI::App &app, Context &context) {
  struct Options {
    std::string tenant;
    std::vector<std::string> command;
  };
  auto *verb = app.add_subcommand("run", "start a command as a tenant, or not at all");
  auto options = std::make_shared<Options>();
  verb->add_option("--tenant", options->tenant, "a tenant of the configuration")->required();
  verb->add_option("CMD", options->command, "the command and its arguments, after --")->required();
  verb->footer("example: qgpuctl run --tenant web -- python3 serve.py");
  verb->callback([&context, options] {
    if (auto joined = join(context.socket, options->tenant); !joined) {
      complain(joined.error());
      std::fprintf(stderr, "qgpuctl: not started: its share could not be enforced\n");
      context.exit_code = kExitNotStarted;
      return;
    }
    std::vector<char *> arguments;
    for (std::string &argument : options->command) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    int err = errno;
    std::fprintf(stderr, "qgpuctl: %s: %s\n", arguments[0], strerror(err));
    context.exit_code = err == ENOENT ? kExitNoCommand : kExitNotExecutable;
  });
}

}  // namespace qgpu::ctl
