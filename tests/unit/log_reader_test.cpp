// SPDX-License-Identifier: GPL-2.0
// Whoever follows the logs while those who keep them come and go.
#include "log_reader.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "fakes/fake_kernel.hpp"
#include "fakes/temp_folder.hpp"
#include "snapshot_json.hpp"

namespace qgpu::ctl {
namespace log_reader_test {

using Json = nlohmann::json;

LogRecord recordOf(uint64_t since_ns, uint64_t serial, bool ongoing = false) {
  LogRecord record;
  record.since_ns = since_ns;
  record.serial = serial;
  record.from_ns = 1000 * serial;
  record.to_ns = record.from_ns + 1000;
  record.seen = QGPU_SEEN_TENANT;
  record.tenant_id = 2;
  record.ongoing = ongoing;
  if (!ongoing) record.end = QGPU_END_SLICE;
  return record;
}

// A qgpud that answers `status` and `log`.
class FakeDaemon {
 public:
  explicit FakeDaemon(std::string path) : path_(std::move(path)), stop_fd_(eventfd(0, 0)) {}
  ~FakeDaemon() {
    stop();
    close(stop_fd_);
  }

  void start() {
    unlink(path_.c_str());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof(address)), 0);
    ASSERT_EQ(listen(listener, 8), 0);
    thread_ = std::thread([this, listener] { serve(listener); });
  }

  void stop() {
    if (!thread_.joinable()) return;
    eventfd_write(stop_fd_, 1);
    thread_.join();
    eventfd_t count;
    eventfd_read(stop_fd_, &count);
  }

  // What it knows.
  void set(const std::string &name, std::vector<LogRecord> records, const char *method = "rm") {
    const std::lock_guard guard(mutex_);
    records_ = std::move(records);
    status_ = {{"cards",
                {{{"index", 0},
                  {"uuid", "GPU-0"},
                  {"method", method},
                  {"tenants", {{{"id", 2}, {"name", name}}}}}}}};
  }

 private:
  void serve(int listener) {
    std::vector<pollfd> fds = {{stop_fd_, POLLIN, 0}, {listener, POLLIN, 0}};
    while (poll(fds.data(), fds.size(), -1) > 0 && !fds[0].revents) {
      for (size_t i = 2; i < fds.size(); ++i)
        if (fds[i].revents && !answer(fds[i].fd)) {
          close(fds[i].fd);
          fds.erase(fds.begin() + static_cast<ptrdiff_t>(i--));
        }
      if (fds[1].revents) fds.push_back({accept(listener, nullptr, nullptr), POLLIN, 0});
    }
    for (size_t i = 1; i < fds.size(); ++i) close(fds[i].fd);
  }

  // Questions are short: each comes whole.
  bool answer(int fd) {
    char line[4096];
    const ssize_t got = recv(fd, line, sizeof(line), 0);
    if (got <= 0) return false;
    const Json question = Json::parse(line, line + got);
    const std::lock_guard guard(mutex_);
    const std::string text =
        (question.at("verb") == "log" ? log(question.at("from")) : status_).dump() + "\n";
    return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }

  Json log(uint64_t from) const {
    Json records = Json::array();
    for (const LogRecord &record : records_)
      if (record.serial >= from) records.push_back(toJson(record));
    return {{"next", records_.back().serial},
            {"since_ns", records_.back().since_ns},
            {"records", records}};
  }

  std::string path_;
  int stop_fd_;
  std::thread thread_;
  std::mutex mutex_;
  Json status_;
  std::vector<LogRecord> records_;
};

class Follow : public ::testing::Test {
 protected:
  LogReader opened() {
    auto reader = LogReader::open(
        {folder / "socket",
         [this]() -> Result<std::unique_ptr<netlink::Wire>> {
           return std::unique_ptr<netlink::Wire>(std::make_unique<fakes::FakeWire>(kernel));
         },
         [this](const std::string &line) { said.push_back(line); }},
        "");
    EXPECT_TRUE(reader) << reader.error().text();
    return std::move(*reader);
  }
  void keep(std::vector<LogRecord> records) {
    kernel.log.clear();
    for (const LogRecord &record : records) kernel.log.push_back({0, record});
  }

  fakes::TempFolder folder;
  fakes::FakeKernel kernel;
  FakeDaemon daemon{folder / "socket"};
  std::vector<std::string> said;
};

TEST_F(Follow, AnotherExecutorsLogIsReadFromItsBeginning) {
  daemon.set("web", {recordOf(1, 7), recordOf(1, 8), recordOf(1, 9, true)});
  daemon.start();
  LogReader reader = opened();
  const auto former = reader.next();
  ASSERT_TRUE(former) << former.error().text();
  ASSERT_EQ(former->size(), 2u);
  EXPECT_EQ(reader.ongoing().size(), 1u);
  EXPECT_TRUE(reader.follow().empty());
  daemon.set("batch", {recordOf(2, 0), recordOf(2, 1, true)});
  const auto fresh = reader.follow();
  ASSERT_EQ(fresh.size(), 1u);
  EXPECT_EQ(fresh[0].record.serial, 0u);
  EXPECT_EQ(said, std::vector<std::string>{"the log of card 0 began anew"});
  // The id is the same; whose it was is not.
  EXPECT_EQ(reader.names().of(former->at(0), 2), "web");
  EXPECT_EQ(reader.names().of(fresh[0], 2), "batch");
  // Also where the other is as long by now.
  daemon.set("batch", {recordOf(3, 0), recordOf(3, 1), recordOf(3, 2, true)});
  EXPECT_EQ(reader.follow().size(), 2u);
  EXPECT_EQ(said.size(), 2u);
  EXPECT_EQ(reader.lost(), 0u);
}

TEST_F(Follow, GoesOnWhenQgpudIsBack) {
  daemon.set("web", {recordOf(1, 0), recordOf(1, 1, true)});
  daemon.start();
  LogReader reader = opened();
  EXPECT_EQ(reader.next()->size(), 1u);
  daemon.stop();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(reader.follow().empty());
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("the log of card 0: qgpud"), std::string::npos) << said[0];
  EXPECT_TRUE(said[0].ends_with("; waiting for it")) << said[0];
  daemon.set("web", {recordOf(1, 0), recordOf(1, 1), recordOf(1, 2, true)});
  daemon.start();
  const auto fresh = reader.follow();
  ASSERT_EQ(fresh.size(), 1u);
  EXPECT_EQ(fresh[0].record.serial, 1u);
  EXPECT_EQ(said.size(), 1u);
  EXPECT_FALSE(reader.names().of(fresh[0], 2).empty());
  daemon.stop();
  EXPECT_FALSE(reader.next());  // who does not follow is told
}

TEST_F(Follow, GoesOnWhenTheModuleIsBack) {
  kernel.addCard("GPU-0");
  daemon.set("web", {recordOf(1, 0)}, "images");
  daemon.start();
  keep({recordOf(1, 40), recordOf(1, 41, true)});
  LogReader reader = opened();
  EXPECT_EQ(reader.next()->size(), 1u);
  kernel.unload();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(reader.follow().empty());
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(said[0].starts_with("the module's log: ")) << said[0];
  kernel.load();
  keep({recordOf(2, 0), recordOf(2, 1), recordOf(2, 2, true)});
  EXPECT_EQ(reader.follow().size(), 2u);
  EXPECT_EQ(said.back(), "the log of card 0 began anew");
  EXPECT_EQ(reader.lost(), 0u);
}

}  // namespace log_reader_test
}  // namespace qgpu::ctl
