// SPDX-License-Identifier: GPL-2.0
// The metrics' text against the ledger and docs/metrics.md, and the endpoint over a real socket.
#include "exposition.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "clock.hpp"
#include "daemon.hpp"
#include "fakes/fake_clock.hpp"
#include "fakes/fake_kernel.hpp"
#include "fakes/temp_folder.hpp"
#include "kernel_card.hpp"
#include "ledger.hpp"
#include "loop.hpp"
#include "metrics_endpoint.hpp"
#include "snapshot_json.hpp"
#include "verbs.hpp"

namespace qgpu {
namespace exposition_test {

struct Scene {
  Scene(uint32_t card_count, uint32_t tenant_count) {
    config.tenants.resize(tenant_count);
    for (uint32_t i = 0; i < tenant_count; ++i) {
      config.tenants[i].name = "tenant-" + std::to_string(i);
      config.tenants[i].cgroups = {{"/qgpu/tenant-" + std::to_string(i), false, 1}};
    }
    for (uint32_t index = 0; index < card_count; ++index) addCard(index);
    ledger.update(samples, kSecondNs);
  }

  void addCard(uint32_t index) {
    CardSnapshot card;
    card.info.index = index;
    card.info.uuid = "GPU-" + std::to_string(index);
    Sample sample;
    sample.card_index = index;
    sample.since_ns = 1'000'000'000;
    sample.time_ns = 11'000'000'007;
    sample.switch_ns = 123'456'789;
    sample.idle_ns = 1'000'000'001;
    samples.push_back(sample);
    sample.tenant_id = QGPU_TENANT_NOBODY;
    sample.run_ns = 77;
    samples.push_back(sample);
    for (uint32_t i = 0; i < config.tenants.size(); ++i) {
      TenantStatus tenant;
      tenant.id = i + 2;
      tenant.name = config.tenants[i].name;
      tenant.asked.guarantee_ppm = 12'500;
      card.tenants.push_back(tenant);
      sample.tenant_id = tenant.id;
      sample.run_ns = 10'000'003 + i;
      sample.waits = sample.tails = Histogram{{1, 2, 4}, 300'000};
      sample.waits->bins.back() = 8;
      samples.push_back(sample);
    }
    cards.push_back(card);
  }

  ExpositionSource source() const {
    return {"1.2", true, 0, 0, false, kSecondNs, &cards, &ledger, &refusals, &config, &paths};
  }
  std::string text(ExpositionFormat format = ExpositionFormat::kPrometheusText) const {
    return exposition(source(), format);
  }

  ConfigIr config;
  std::vector<CardSnapshot> cards;
  std::vector<Sample> samples;
  Ledger ledger;
  std::map<std::string, Error> refusals;
  CgroupPaths paths;
};

// The value of a series as an integer of its smallest unit.
uint64_t valueOf(const std::string &text, const std::string &series, int decimals = 9) {
  const size_t at = text.find("\n" + series + " ");
  EXPECT_NE(at, std::string::npos) << series;
  if (at == std::string::npos) return UINT64_MAX;
  std::string value = text.substr(at + series.size() + 2);
  value.resize(value.find('\n'));
  const size_t point = value.find('.');
  EXPECT_EQ(value.size() - point - 1, static_cast<size_t>(decimals)) << value;
  return std::stoull(value.erase(point, 1));
}

TEST(Exposition, EqualsTheLedgerAndTheJsonToTheNanosecond) {
  const Scene scene(2, 3);
  const std::string text = scene.text();
  const auto json = toJson(scene.cards[1], nullptr, &scene.ledger);
  for (int i = 0; i < 3; ++i) {
    const std::string name = "tenant-" + std::to_string(i);
    const uint64_t run_ns =
        valueOf(text, "qgpu_tenant_run_seconds_total{gpu=\"1\",uuid=\"GPU-1\",tenant=\"" + name +
                          "\",cgroup=\"/qgpu/" + name + "\"}");
    EXPECT_EQ(run_ns, json["tenants"][i]["counters"]["run_ns"]);
    EXPECT_EQ(run_ns, 10'000'003u + i);
  }
  EXPECT_EQ(valueOf(text,
                    "qgpu_tenant_guarantee_ratio{gpu=\"0\",uuid=\"GPU-0\",tenant=\"tenant-0\","
                    "cgroup=\"/qgpu/tenant-0\"}",
                    6),
            12'500u);
}

TEST(Exposition, PartsOfTheCardsTimeAddUpToWhatElapsed) {
  const Scene scene(1, 3);
  const std::string text = scene.text(), card = "{gpu=\"0\",uuid=\"GPU-0\"";
  uint64_t sum_ns = 0;
  for (const char *state : {"tenants", "nobody", "switching", "idle", "unaccounted"})
    sum_ns += valueOf(text, "qgpu_card_time_seconds_total" + card + ",state=\"" + state + "\"}");
  EXPECT_EQ(sum_ns, valueOf(text, "qgpu_card_elapsed_seconds_total" + card + "}"));
  EXPECT_EQ(sum_ns, 10'000'000'007u);
  const auto counters = toJson(scene.cards[0], nullptr, &scene.ledger)["counters"];
  EXPECT_EQ(counters["tenants_ns"].get<uint64_t>() + counters["nobody_ns"].get<uint64_t>() +
                counters["switch_ns"].get<uint64_t>() + counters["idle_ns"].get<uint64_t>() +
                counters["unaccounted_ns"].get<uint64_t>(),
            counters["elapsed_ns"]);
}

// Its run time goes to nobody in the ledger; of the series neither falls.
TEST(Exposition, NoPartOfTheCardsTimeFallsWhenATenantIsRemoved) {
  Scene scene(1, 3);
  const auto part = [&](const char *state) {
    return valueOf(scene.text(),
                   std::string("qgpu_card_time_seconds_total{gpu=\"0\",uuid=\"GPU-0\","
                               "state=\"") +
                       state + "\"}");
  };
  const uint64_t tenants_ns = part("tenants"), nobody_ns = part("nobody");
  const uint64_t ran_ns = scene.samples.back().run_ns;
  scene.samples.pop_back();
  scene.cards[0].tenants.pop_back();
  scene.samples[0].removed_ns = ran_ns;
  scene.samples[1].run_ns += ran_ns;
  scene.ledger.update(scene.samples, kSecondNs);
  EXPECT_EQ(part("tenants"), tenants_ns);
  EXPECT_EQ(part("nobody"), nobody_ns);
}

TEST(Exposition, HistogramsAreCumulativeAndEndWithAll) {
  const Scene scene(1, 1);
  const std::string text = scene.text(),
                    of = "{gpu=\"0\",uuid=\"GPU-0\",tenant=\"tenant-0\",cgroup=\"/qgpu/tenant-0\"",
                    name = "qgpu_tenant_wait_duration_seconds";
  for (const auto &[le, count] : {std::pair{"0.000131072", "3"}, std::pair{"0.000524288", "7"},
                                  std::pair{"0.536870912", "7"}, std::pair{"+Inf", "15"}})
    EXPECT_NE(text.find(name + "_bucket" + of + ",le=\"" + le + "\"} " + count + "\n"),
              std::string::npos)
        << le << text;
  EXPECT_NE(text.find(name + "_count" + of + "} 15\n"), std::string::npos);
  EXPECT_NE(text.find(name + "_sum" + of + "} 0.000300000\n"), std::string::npos);
}

TEST(Exposition, TenantThatIsGoneHasNoSeries) {
  Scene scene(1, 2);
  EXPECT_NE(scene.text().find("tenant=\"tenant-1\""), std::string::npos);
  scene.cards[0].tenants.pop_back();
  EXPECT_EQ(scene.text().find("tenant=\"tenant-1\""), std::string::npos);
}

TEST(Exposition, CardThatTellsNoCountersLosesThoseAlone) {
  Scene scene(2, 1);
  std::erase_if(scene.samples, [](const Sample &sample) { return sample.card_index == 0; });
  scene.ledger.update(scene.samples, 10 * kSecondNs);
  ExpositionSource source = scene.source();
  source.now_ns = 10 * kSecondNs;
  const std::string text = exposition(source, ExpositionFormat::kPrometheusText);
  EXPECT_EQ(text.find("run_seconds_total{gpu=\"0\""), std::string::npos);
  EXPECT_NE(text.find("run_seconds_total{gpu=\"1\""), std::string::npos);
  EXPECT_NE(text.find("qgpu_card_counted{gpu=\"0\",uuid=\"GPU-0\"} 0\n"), std::string::npos);
  EXPECT_NE(text.find("qgpu_tenant_weight{gpu=\"0\""), std::string::npos);
}

TEST(Exposition, NamesThePodOfACgroup) {
  const std::string id(64, 'a'), uid = "0b1c2d3e-0000-1111-2222-333344445555";
  for (const std::string &path :
       {"/kubepods/burstable/pod" + uid + "/" + id,
        "/kubepods.slice/kubepods-pod" + uid + ".slice/cri-o-" + id + ".scope"}) {
    EXPECT_EQ(podOfCgroup(path).pod_uid, uid) << path;
    EXPECT_EQ(podOfCgroup(path).container_id, id) << path;
  }
  EXPECT_EQ(podOfCgroup("/kubepods-pod0b1c2d3e_0000_1111_2222_333344445555.slice").pod_uid, uid);
  for (const char *path : {"/qgpu/web", "/podman/x", "/qgpu/pod-racer", ""})
    EXPECT_EQ(podOfCgroup(path).pod_uid, "") << path;
}

TEST(Exposition, HostileNamesBreakNoLine) {
  Scene scene(1, 1);
  scene.paths["tenant-0"] = {"/a\"b\\c\nd\xff"};
  EXPECT_NE(scene.text().find("cgroup=\"/a\\\"b\\\\c?d?\",pod_uid"), std::string::npos);
}

// Names, in order, of the table in the page.
std::vector<std::string> documented() {
  std::ifstream page(QGPU_SOURCE_DIR "/docs/metrics.md");
  std::vector<std::string> names;
  const std::regex row(R"(^\| `(qgpu_[a-z_]+)` \| (counter|gauge|info|histogram) \|.*)");
  std::smatch match;
  for (std::string line; std::getline(page, line);)
    if (std::regex_match(line, match, row)) names.push_back(match[1].str() + " " + match[2].str());
  return names;
}

TEST(Exposition, DocumentsEveryFamilyAndNoOther) {
  std::vector<std::string> families;
  for (const MetricFamily &family : metricFamilies())
    families.push_back(family.name + " " + family.type);
  EXPECT_EQ(families, documented());
}

TEST(Exposition, ShowsNoFamilyThatItDoesNotList) {
  Scene scene(1, 1);
  scene.cards[0].info.executor = ExecutorInfo{};
  std::set<std::string> listed, shown;
  for (const MetricFamily &family : metricFamilies()) listed.insert(family.name);
  std::istringstream lines(scene.text());
  for (std::string line; std::getline(lines, line);)
    if (line.front() != '#') {
      std::string name = line.substr(0, line.find_first_of("{ "));
      for (const char *suffix : {"_bucket", "_sum", "_count"})
        if (name.ends_with(suffix)) name.resize(name.size() - strlen(suffix));
      shown.insert(name);
    }
  EXPECT_TRUE(std::includes(listed.begin(), listed.end(), shown.begin(), shown.end()));
}

TEST(Exposition, SixtyFourTenantsOnEightCardsTakeLittleTime) {
  const Scene scene(8, 64);
  double best_ms = 1e9;
  size_t bytes = 0;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    bytes = scene.text().size();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    best_ms = std::min(best_ms, took.count());
  }
  std::printf("64 tenants x 8 cards: %zu bytes in %.2f ms\n", bytes, best_ms);
  EXPECT_LT(best_ms, 200);  // unoptimised and under a sanitizer; 10 ms is the aim of a release
}

// What qgpud does for one scrape and for one look of top: all cards read in the kernel's messages,
// which the fake kernel makes meanwhile, and the answer.
TEST(Exposition, ReadingSixtyFourTenantsOnEightCardsTakesLittleTime) {
  fakes::TempFolder folder, tree;
  fakes::FakeKernel kernel;
  fakes::FakeClock clock;
  KernelCard card(std::make_unique<fakes::FakeWire>(kernel),
                  std::make_unique<fakes::FakeWire>(kernel));
  CgroupTree cgroups(tree.path());
  StateFile state_file(folder / "state.json");
  Daemon daemon(card, cgroups, state_file, clock);
  std::string text = "[[card]]\nmatch = \"all\"\n";
  for (int i = 0; i < 63; ++i) text += "[tenant.t" + std::to_string(i) + "]\n";
  for (int i = 0; i < 8; ++i) kernel.addCard("GPU-" + std::to_string(i));
  daemon.start(parseConfig(text, "f").ir);
  for (const auto &[index, snapshot] : kernel.cards) {
    Sample sample;
    sample.card_index = index;
    kernel.samples.push_back(sample);
    sample.waits = sample.tails = Histogram{};
    for (const TenantStatus &tenant : snapshot.tenants) {
      sample.tenant_id = tenant.id;
      kernel.samples.push_back(sample);
    }
  }
  double scrape_ms = 1e9, status_ms = 1e9;
  size_t scraped = 0, told = 0;
  const auto took = [](auto what) {  // of a core, whoever else runs
    const std::clock_t begin = std::clock();
    what();
    return static_cast<double>(std::clock() - begin) * 1e3 / CLOCKS_PER_SEC;
  };
  for (int i = 0; i < 5; ++i) {
    clock.advance(kSecondNs);
    scrape_ms = std::min(
        scrape_ms, took([&] {
          daemon.refresh();
          scraped = exposition(expositionOf(daemon, "1"), ExpositionFormat::kOpenMetrics).size();
        }));
    clock.advance(kSecondNs);
    status_ms = std::min(status_ms, took([&] {
                           daemon.refresh();
                           told = lineOf(statusJson(daemon)).size();
                         }));
  }
  std::printf(
      "64 tenants x 8 cards: a scrape of %zu bytes in %.2f ms, a status of %zu in %.2f ms\n",
      scraped, scrape_ms, told, status_ms);
  EXPECT_GT(scraped, 1'000'000u);
  EXPECT_LT(scrape_ms, 500);  // unoptimised and under a sanitizer; 10 ms is the aim of a release
  EXPECT_LT(status_ms, 1000);
}

TEST(Exposition, PromtoolFindsNoFault) {
  if (std::system("command -v promtool >/dev/null") != 0) GTEST_SKIP() << "there is no promtool";
  Scene scene(2, 2);
  scene.cards[0].info.executor = ExecutorInfo{};
  scene.paths["tenant-0"] = {"/qgpu/tenant-0"};
  fakes::TempFolder folder;
  std::ofstream(folder / "metrics") << scene.text();
  EXPECT_EQ(std::system(("promtool check metrics <" + (folder / "metrics")).c_str()), 0);
  EXPECT_EQ(std::system("promtool check rules " QGPU_SOURCE_DIR
                        "/examples/prometheus/qgpu-alerts.yml >/dev/null"),
            0);
}

TEST(MetricsEndpoint, TellsWhatIsNoAddress) {
  for (const char *address : {"127.0.0.1:9401", "[::1]:1", "0.0.0.0:0"})
    EXPECT_EQ(listenAddressMistake(address), nullptr) << address;
  for (const char *address : {"", "9401", ":9401", "localhost:1", "127.0.0.1:", "127.0.0.1:70000",
                              "127.0.0.1:1x", "::1:9401", "[::1]"})
    EXPECT_NE(listenAddressMistake(address), nullptr) << address;
}

class Endpoint : public ::testing::Test {
 protected:
  Endpoint() {
    auto listening =
        MetricsEndpoint::listen("127.0.0.1:0", loop, clock, [this](ExpositionFormat f) {
          ++scrapes;
          return scene.text(f);
        });
    EXPECT_TRUE(listening) << listening.error().text();
    endpoint = std::move(*listening);
  }

  // -1: nobody listens there.
  static int connected(uint16_t port, int room = 0, uint32_t from = INADDR_LOOPBACK) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (room) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(from);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)), 0);
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)) == 0) return fd;
    close(fd);
    return -1;
  }

  std::string ask(const std::string &request) { return askAt(endpoint->port(), request); }

  // The whole answer to a request, the loop being served meanwhile; empty: nobody listens there.
  std::string askAt(uint16_t port, const std::string &request) {
    const int fd = connected(port);
    if (fd < 0) return "";
    EXPECT_EQ(send(fd, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
    return answerAt(fd);
  }

  std::string answerAt(int fd) {
    std::string answer;
    char chunk[65536];
    for (;;) {
      loop.poll();
      endpoint->tick();
      const ssize_t got = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN)) break;
      if (got > 0) answer.append(chunk, static_cast<size_t>(got));
    }
    close(fd);
    return answer;
  }

  static std::string request(const std::string &first, const std::string &accept = "*/*") {
    return first + " HTTP/1.1\r\nHost: x\r\nAccept: " + accept + "\r\nConnection: close\r\n\r\n";
  }

  static constexpr const char *kScrape = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
  // An answer to it is more than sockets take that nobody reads.
  static Scene largeScene() { return Scene(8, 512); }

  // A connection that sends this and then nothing, and takes little.
  int slowly(const std::string &text) {
    const int fd = connected(endpoint->port(), 4096);
    EXPECT_EQ(send(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    serve();
    return fd;
  }

  // Until nothing is left to do: of this machine, all has arrived when it was sent.
  void serve() {
    for (int i = 0; i < 100; ++i) {
      loop.poll();
      endpoint->tick();
    }
  }

  // Behind whatever was sent comes the end.
  static bool isClosed(int fd) {
    char chunk[65536];
    const timeval patience{10, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    ssize_t got = 1;
    while (got > 0) got = recv(fd, chunk, sizeof(chunk), 0);
    return got == 0 || errno == ECONNRESET;
  }

  static bool isOpen(int fd) {
    char byte;
    const ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return got == 1 || (got < 0 && errno == EAGAIN);
  }

  fakes::FakeClock clock;
  Loop loop;
  Scene scene{1, 1};
  int scrapes = 0;
  std::unique_ptr<MetricsEndpoint> endpoint;
};

TEST_F(Endpoint, AnswersAScrapeInTheFormatThatIsAsked) {
  const std::string plain = ask(request("GET /metrics"));
  EXPECT_TRUE(plain.starts_with("HTTP/1.1 200 OK\r\n")) << plain.substr(0, 200);
  EXPECT_NE(plain.find("text/plain; version=0.0.4"), std::string::npos);
  EXPECT_TRUE(plain.ends_with(scene.text()));
  const std::string open =
      ask(request("GET /metrics", "application/openmetrics-text;version=1.0.0"));
  EXPECT_NE(open.find("application/openmetrics-text; version=1.0.0"), std::string::npos);
  EXPECT_TRUE(open.ends_with("# EOF\n"));
}

TEST_F(Endpoint, AnswersNothingElse) {
  EXPECT_TRUE(ask(request("GET /")).starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(ask("POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: "
                  "3\r\n\r\nabc")
                  .starts_with("HTTP/1.1 405"));
  EXPECT_TRUE(ask("nonsense\r\n\r\n").starts_with("HTTP/1.1 400") || scrapes == 0);
  EXPECT_EQ(scrapes, 0);
}

// At whatever they stand still: nothing sent, half a head, one answered, an answer that is not
// read.
TEST_F(Endpoint, SlowConnectionsKeepNobodyOut) {
  constexpr int kSlow = 20, kKept = 16;
  for (const char *sent : {"", "GET /metrics HT", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", kScrape}) {
    if (sent == kScrape) scene = largeScene();
    std::vector<int> slow;
    for (int i = 0; i < kSlow; ++i) {
      slow.push_back(slowly(sent));
      clock.advance(kMillisecondNs);
      EXPECT_TRUE(ask(request("GET /")).starts_with("HTTP/1.1 404")) << sent << i;
    }
    // Those that have stood longest give way.
    for (int i = 0; i < kSlow - kKept; ++i) EXPECT_TRUE(isClosed(slow[i])) << sent << i;
    EXPECT_TRUE(isOpen(slow.back()));
    for (int fd : slow) close(fd);
    serve();
  }
}

// Fifteen that do not read their answers stand there, and one more comes behind each scrape.
TEST_F(Endpoint, WhoAsksAtOnceDoesNotGiveWayToWhoStandsThere) {
  scene = largeScene();
  std::vector<int> silent;
  for (int i = 0; i < 15; ++i) silent.push_back(slowly(kScrape));
  clock.advance(kMillisecondNs);
  const std::string text = request("GET /");
  const int scraper = connected(endpoint->port());
  EXPECT_EQ(send(scraper, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  silent.push_back(connected(endpoint->port()));
  EXPECT_TRUE(answerAt(scraper).starts_with("HTTP/1.1 404"));
  for (int fd : silent) close(fd);
}

// Who has most of the places gives way, however slow another is.
TEST_F(Endpoint, AGreedyHostTakesPlacesOfItsOwnAlone) {
  const int other = connected(endpoint->port(), 0, INADDR_LOOPBACK + 1);
  serve();
  std::vector<int> greedy;
  for (int i = 0; i < 40; ++i) {
    clock.advance(kMillisecondNs);
    greedy.push_back(slowly(""));
  }
  const std::string text = request("GET /");
  EXPECT_EQ(send(other, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  EXPECT_TRUE(answerAt(other).starts_with("HTTP/1.1 404"));
  for (int fd : greedy) close(fd);
}

// The clock alone moves: nothing is slept.
TEST_F(Endpoint, WhoIsSlowIsClosedAtItsDeadline) {
  scene = largeScene();
  const int head = slowly("GET /metrics HT"), answer = slowly(kScrape);
  const uint64_t begun_ns = clock.nowNs();
  EXPECT_LE(endpoint->deadlineNs(), begun_ns + 2 * kSecondNs);
  clock.advance(2 * kSecondNs - 1);
  serve();
  EXPECT_TRUE(isOpen(head));
  // A byte now and then is not a request.
  send(head, "T", 1, 0);
  clock.advance(1);
  serve();
  EXPECT_TRUE(isClosed(head));
  EXPECT_TRUE(isOpen(answer));
  EXPECT_LE(endpoint->deadlineNs(), begun_ns + 5 * kSecondNs);
  clock.advance(3 * kSecondNs);
  serve();
  EXPECT_TRUE(isClosed(answer));
  EXPECT_TRUE(ask(request("GET /metrics")).starts_with("HTTP/1.1 200"));
  close(head);
  close(answer);
}

// A Prometheus of this machine, scraping the endpoint every second.
class Prometheus {
 public:
  Prometheus(uint16_t port, uint16_t target) {
    std::ofstream(folder_ / "prometheus.yml")
        << "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
           "scrape_configs: [{job_name: qgpu, static_configs: [{targets: ['127.0.0.1:"
        << target << "']}]}]\n";
    pid_ = fork();
    if (pid_ != 0) return;
    const std::string config = "--config.file=" + (folder_ / "prometheus.yml"),
                      data = "--storage.tsdb.path=" + (folder_ / "data"),
                      address = "--web.listen-address=127.0.0.1:" + std::to_string(port);
    execlp("prometheus", "prometheus", config.c_str(), data.c_str(), address.c_str(),
           "--log.level=error", nullptr);
    _exit(127);
  }
  ~Prometheus() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  fakes::TempFolder folder_;
  pid_t pid_;
};

uint16_t freePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  bind(fd, reinterpret_cast<sockaddr *>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr *>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

TEST_F(Endpoint, PrometheusReadsWhatIsCounted) {
  if (std::system("command -v prometheus >/dev/null") != 0)
    GTEST_SKIP() << "there is no prometheus";
  const uint16_t port = freePort();
  const Prometheus prometheus(port, endpoint->port());
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::string answer;
  while (answer.find("\"0.010000003\"") == std::string::npos &&
         std::chrono::steady_clock::now() < until)
    answer = askAt(port, request("GET /api/v1/query?query=qgpu_tenant_run_seconds_total"));
  EXPECT_NE(answer.find("\"0.010000003\""), std::string::npos) << answer;
  EXPECT_NE(answer.find("\"cgroup\":\"/qgpu/tenant-0\""), std::string::npos) << answer;
}

TEST_F(Endpoint, PortThatIsTakenIsRefused) {
  auto second = MetricsEndpoint::listen("127.0.0.1:" + std::to_string(endpoint->port()), loop,
                                        clock, [](ExpositionFormat) { return std::string(); });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().err, EADDRINUSE) << second.error().text();
}

}  // namespace exposition_test
}  // namespace qgpu
