// SPDX-License-Identifier: GPL-2.0
// qgpuctl events: as they come, from the daemon or, when it is dead, from the kernel.
#include <poll.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "connection.hpp"
#include "kernel_card.hpp"
#include "screen.hpp"
#include "snapshot_json.hpp"
#include "verb.hpp"

namespace qgpu::ctl {

namespace {

void print(const Json &event, bool json) {
  std::printf("%s\n", json ? lineOf(event).c_str() : eventText(event).c_str());
  std::fflush(stdout);
}

// A connection that hears events from now on.
Result<Connection> subscribe(const std::string &socket) {
  auto connection = Connection::open(socket);
  if (!connection) return connection;
  if (auto subscribed = connection->ask({{"verb", "events"}}); !subscribed)
    return subscribed.error();
  return connection;
}

Error follow(Connection &connection, bool json) {
  for (;;) {
    auto event = connection.next();
    if (event)
      print(*event, json);
    else if (event.error().err != ETIMEDOUT)
      return event.error();
  }
}

Error followKernel(bool json) {
  auto card = KernelCard::open();
  if (!card) return card.error();
  if (auto seen = (*card)->inventory(); !seen)
    return seen.error().err == ENODEV ? Error{ENOTCONN, seen.error().sentence, ""} : seen.error();
  for (;;) {
    pollfd wait{(*card)->eventFd(), POLLIN, 0};
    if (poll(&wait, 1, -1) < 0 && errno != EINTR) return Error{errno, "poll failed", ""};
    EventBatch batch = (*card)->events();
    if (batch.lost) print({{"event", "lost"}}, json);
    for (const CardEvent &event : batch.events) print(toJson(event), json);
    if (batch.driver_changed)
      if (auto seen = (*card)->inventory(); !seen) return seen.error();
  }
}

}  // namespace

void addEvents(CLI::App &app, Context &context) {
  auto *verb = app.add_subcommand("events", "what happens on the cards, until interrupted");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "one JSON object a line");
  verb->footer("example: qgpuctl events --json");
  verb->callback([&context, json] {
    auto connection = subscribe(context.socket);
    if (connection || !isUnreachable(connection.error())) {
      context.exit_code = complain(connection ? follow(*connection, *json) : connection.error());
      return;
    }
    std::fprintf(stderr, "qgpuctl: %s: read from the kernel directly\n",
                 connection.error().sentence.c_str());
    context.exit_code = complain(followKernel(*json));
  });
}

}  // namespace qgpu::ctl
