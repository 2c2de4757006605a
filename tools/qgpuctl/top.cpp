// SPDX-License-Identifier: GPL-2.0
// qgpuctl top: the terminal. What is on it is top_view.cpp's.
#include <curses.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "connection.hpp"
#include "top_view.hpp"
#include "verb.hpp"

// Macros of curses that are words of ours.
#undef timeout
#undef border

namespace qgpu::ctl {

namespace {

constexpr size_t kPlainWidth = 120;
using Steady = std::chrono::steady_clock;

// Statuses over one connection, opened anew when it breaks; pids of the module's cards from the
// kernel.
class Feed {
 public:
  explicit Feed(std::string socket) : socket_(std::move(socket)) {}

  Result<Json> status() {
    if (!connection_) {
      auto opened = Connection::open(socket_);
      if (!opened) return opened.error();
      connection_.emplace(std::move(*opened));
    }
    auto status = connection_->ask({{"verb", "status"}});
    if (!status) connection_.reset();
    return status;
  }

  TopPids pids(const Json &status) {
    TopPids pids;
    for (const Json &card : status.at("cards"))
      for (const Json &tenant : card.at("tenants"))
        if (auto known = tenant.find("pids"); known != tenant.end())
          pids[card.at("index")][tenant.at("name")] = known->get<std::vector<uint32_t>>();
    addOfModule(status, pids);
    return pids;
  }

 private:
  void addOfModule(const Json &status, TopPids &pids) {
    if (!client_) {
      auto wire = netlink::openWire(netlink::WireKind::kRequests);
      if (!wire) return;
      client_.emplace(std::move(*wire));
    }
    auto tsgs = client_->tsgs();
    if (!tsgs) return;
    std::map<std::pair<uint32_t, uint32_t>, std::string> names;
    for (const Json &card : status.at("cards"))
      for (const Json &tenant : card.at("tenants"))
        if (card.at("method") != "rm")
          names[{card.at("index"), tenant.at("id")}] = tenant.at("name");
    for (const netlink::TsgOfCard &found : *tsgs) {
      auto name = names.find({found.card_index, found.tsg.tenant_id});
      if (name == names.end() || found.tsg.pid == 0) continue;
      auto &list = pids[found.card_index][name->second];
      if (std::find(list.begin(), list.end(), found.tsg.pid) == list.end())
        list.push_back(found.tsg.pid);
    }
  }

  std::string socket_;
  std::optional<Connection> connection_;
  std::optional<netlink::Client> client_;
};

// The terminal is as it was when this goes, whatever happens.
class Terminal {
 public:
  Terminal() {
    setlocale(LC_CTYPE, "");
    initscr();
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    // Blue and yellow are told apart by everybody; NO_COLOR: see no-color.org.
    const char *no_color = getenv("NO_COLOR");
    has_color_ = !(no_color && *no_color) && has_colors();
    if (!has_color_) return;
    start_color();
    use_default_colors();
    init_pair(1, COLOR_BLUE, -1);
    init_pair(2, COLOR_YELLOW, -1);
  }
  ~Terminal() { endwin(); }
  Terminal(const Terminal &) = delete;
  Terminal &operator=(const Terminal &) = delete;

  void show(TopView &view) {
    erase();
    int row = 0;
    for (const TopLine &line : view.draw(static_cast<size_t>(COLS), static_cast<size_t>(LINES))) {
      move(row++, 0);
      for (const TopSpan &span : line) {
        attrset(attributeOf(span.style));
        addstr(span.text.c_str());
      }
    }
    refresh();
  }

 private:
  attr_t attributeOf(TopStyle style) const {
    switch (style) {
      case TopStyle::kPlain:
        return A_NORMAL;
      case TopStyle::kTitle:
        return A_BOLD;
      case TopStyle::kHead:
        return A_REVERSE;
      case TopStyle::kGot:
        return has_color_ ? static_cast<attr_t>(COLOR_PAIR(1)) : A_NORMAL;
      case TopStyle::kTrouble:
        return A_BOLD | (has_color_ ? static_cast<attr_t>(COLOR_PAIR(2)) : A_NORMAL);
      case TopStyle::kFaint:
        return A_DIM;
    }
    return A_NORMAL;
  }

  bool has_color_ = false;
};

void refill(TopView &view, Feed &feed) {
  auto status = feed.status();
  if (status) {
    TopPids pids = feed.pids(*status);
    view.update(std::move(*status), std::move(pids));
  } else {
    view.setTrouble(status.error().text());
  }
}

// All keys that were pressed; false: it is to end.
bool takeKeys(TopView &view) {
  for (int key; (key = getch()) != ERR;) {
    switch (key) {
      case KEY_UP:
        view.press(TopKey::kUp);
        break;
      case KEY_DOWN:
        view.press(TopKey::kDown);
        break;
      case KEY_PPAGE:
        view.press(TopKey::kPageUp);
        break;
      case KEY_NPAGE:
        view.press(TopKey::kPageDown);
        break;
      case KEY_RESIZE:
        break;  // COLS and LINES are new
      default:
        if (key < 128 && !view.press(static_cast<char>(key))) return false;
    }
  }
  return true;
}

volatile sig_atomic_t g_ended;
void onEnd(int) { g_ended = 1; }

int onTerminal(Feed &feed, std::chrono::milliseconds interval) {
  for (int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, onEnd);
  TopView view;
  Terminal terminal;
  Steady::time_point next = Steady::now();
  while (!g_ended) {
    if (Steady::now() >= next) {
      refill(view, feed);
      next = Steady::now() + interval;
    }
    terminal.show(view);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Steady::now());
    pollfd wait{STDIN_FILENO, POLLIN, 0};
    if (poll(&wait, 1, std::max(0, static_cast<int>(left.count()))) > 0 &&
        (wait.revents & (POLLHUP | POLLERR)))
      return kExitOk;
    if (!takeKeys(view)) return kExitOk;
  }
  return kExitOk;
}

int plainly(Feed &feed) {
  auto status = feed.status();
  if (!status) return complain(status.error());
  TopView view;
  view.update(*status, feed.pids(*status));
  for (const TopLine &line : view.drawAll(kPlainWidth))
    std::printf("%s\n", plainText(line).c_str());
  return kExitOk;
}

}  // namespace

void addTop(CLI::App &app, Context &context) {
  struct Options {
    double interval_s = 1;
    bool once = false;
  };
  auto *verb = app.add_subcommand("top", "who gets what, live, and who waits");
  auto options = std::make_shared<Options>();
  verb->add_option("--interval", options->interval_s, "seconds between two looks")
      ->check(CLI::Range(0.2, 3600.0))
      ->capture_default_str();
  verb->add_flag("--once", options->once, "print it once, as when the output is no terminal");
  verb->footer(
      "example: qgpuctl top\n"
      "entitled: what the plan gives it now. got, and # in the bar: of the time delivered to\n"
      "tenants; | is what it is entitled to. of time: of the clock's time. waiting: of the "
      "clock's\n"
      "time it had work and was not on the engine. All of the interval that the card's line\n"
      "names. longest: single wait since counting began, the one that is on with it.\n"
      "STARVED: it had work all the time and got less than nine tenths of what it is entitled to,\n"
      "or nothing because nothing is left to it; qgpuctl explain TENANT says why.\n"
      "h shows the keys; NO_COLOR=1 in the environment: no colours");
  verb->callback([&context, options] {
    Feed feed(context.socket);
    const char *terminal = getenv("TERM");
    const bool is_terminal = isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && terminal && *terminal;
    context.exit_code =
        options->once || !is_terminal
            ? plainly(feed)
            : onTerminal(feed,
                         std::chrono::milliseconds(static_cast<int>(options->interval_s * 1000)));
  });
}

}  // namespace qgpu::ctl
