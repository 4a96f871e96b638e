/// The proxy beside nutcracker and beside the floor (the least that a proxy can do), in front of
/// the same two redis-servers, under the load of redis-benchmark with 50 connections. What counts
/// is the processor time of the proxy for a request, as the scheduler counts it, and its ratio
/// within one round.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <map>
#include <thread>

#include "proxy/subjects.hpp"
#include "support/plain_client.hpp"
#include "support/redis_benchmark.hpp"
#include "support/report.hpp"

namespace {

using namespace sluice;
using namespace sluice::bench;
using namespace std::chrono_literals;

struct Load {
  std::string name;
  int pipeline;
  int bytes;
  double floor_goal;       // of our CPU time, against the floor; 0: none
  double nutcracker_goal;  // against nutcracker
};

const Load loads[] = {
    {"P1, 32 bytes", 1, 32, 1.10, 0.90},
    {"P16, 32 bytes", 16, 32, 1.25, 0.50},
    {"P64, 32 bytes", 64, 32, 1.5, 0.22},
    {"P64, 1 KiB", 64, 1024, 0, 0.30},
};

struct Measured {
  std::vector<double> cpu, rate, p99;
};

/// Requests that take a subject about as long as a measurement should.
int count_of(const Load& load, std::chrono::milliseconds each) {
  const int per_second = load.pipeline == 1 ? 50'000 : load.pipeline == 16 ? 300'000 : 500'000;
  return static_cast<int>(per_second * std::chrono::duration<double>(each).count());
}

void measure(const Subject& subject, const Load& load, const std::string& command, int count,
             Measured& measured) {
  const auto before = subject.cpu_us();
  const auto figures = bench::load(subject.port, {"-c", "50", "-n", std::to_string(count), "-r",
                                                  "100000", "-P", std::to_string(load.pipeline),
                                                  "-d", std::to_string(load.bytes), "-t", command});
  measured.cpu.push_back((subject.cpu_us() - before) / count);
  measured.rate.push_back(figures.per_second);
  measured.p99.push_back(figures.p99_ms);
}

void compare(Report& report, const std::vector<Subject*>& subjects, const Load& load,
             const Options& options) {
  std::map<std::string, Measured> by_name;
  const int count = count_of(load, options.each);
  for (Subject* subject : subjects) {
    Measured warming;
    measure(*subject, load, "set", count / 4, warming);  // values of this size are there
  }
  for (int round = 0; round < options.rounds; ++round)
    for (Subject* subject : subjects) measure(*subject, load, "get", count, by_name[subject->name]);
  auto& ours = by_name["sluice"];
  report.add({.figure = fmt::format("GET {}: CPU of the proxy for a request", load.name),
              .unit = "us",
              .values = ours.cpu,
              .peer = "nutcracker",
              .peer_values = by_name["nutcracker"].cpu,
              .goal = load.nutcracker_goal,
              .at_most = true});
  Row floor{.figure = fmt::format("GET {}: the same", load.name),
            .unit = "us",
            .values = ours.cpu,
            .peer = "the floor",
            .peer_values = by_name["floor"].cpu,
            .goal = std::nullopt,
            .at_most = true};
  if (load.floor_goal > 0) floor.goal = load.floor_goal;
  report.add(floor);
  if (load.pipeline == 16)
    report.add({.figure = fmt::format("GET {}: p99", load.name),
                .unit = "ms",
                .values = ours.p99,
                .peer = "nutcracker",
                .peer_values = by_name["nutcracker"].p99,
                .goal = 1.0,
                .at_most = true});
  if (load.pipeline == 64 && load.bytes == 32)
    report.add({.figure = fmt::format("GET {}: requests, whole machine", load.name),
                .unit = "1/s",
                .values = ours.rate,
                .peer = "nutcracker",
                .peer_values = by_name["nutcracker"].rate,
                .goal = 2.5});
}

struct IdleMemory {
  double before_burst, after_burst;  ///< bytes a connection
};

/// Of a proxy that has just been started: before a burst of all its clients, and ten seconds after
/// it.
IdleMemory weigh_idle_clients(const Subject& subject) {
  constexpr int connections = 1000;
  { test::PlainClient{subject.port}.command({"SET", "key", std::string(1024, 'x')}); }
  const double before = subject.memory();
  std::vector<test::PlainClient> clients;
  for (int i = 0; i < connections; ++i) clients.emplace_back(subject.port);
  clients.back().command({"PING"});  // all before it have been accepted
  const double idle = (subject.memory() - before) / connections;
  for (auto& client : clients)
    for (int i = 0; i < 16; ++i) client.send("*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
  for (auto& client : clients)
    for (int i = 0; i < 16; ++i) static_cast<void>(client.read());
  std::this_thread::sleep_for(10s);
  return {idle, (subject.memory() - before) / connections};
}

void weigh_idle_clients(Report& report, Subjects& subjects, const Options& options) {
  Row idle{.figure = "memory of an idle client connection",
           .unit = "bytes",
           .values = {},
           .peer = {},
           .peer_values = {},
           .goal = 512,
           .at_most = true};
  Row after = idle;
  after.figure = "the same 10 s after 1000 clients have asked 16 KiB each";
  for (int round = 0; round < options.rounds; ++round) {
    const auto memory = weigh_idle_clients(subjects.sluice());
    idle.values.push_back(memory.before_burst);
    after.values.push_back(memory.after_burst);
  }
  report.add(std::move(idle));
  report.add(std::move(after));
}

void compare_workers(Report& report, Subjects& subjects, const Options& options) {
  const Subject one = subjects.sluice(1), two = subjects.sluice(2);
  Measured of_one, of_two;
  const Load load{"P1", 1, 32, 0, 0};
  for (int round = 0; round < options.rounds; ++round) {
    measure(one, load, "get", count_of(load, options.each), of_one);
    measure(two, load, "get", count_of(load, options.each), of_two);
  }
  report.add({.figure = "GET P1, two workers: requests, whole machine",
              .unit = "1/s",
              .values = of_two.rate,
              .peer = "one worker",
              .peer_values = of_one.rate,
              .goal = std::nullopt});
}

void compare_cluster(Report& report, Subjects& subjects, const Options& options) {
  const Subject cluster = subjects.sluice_before_cluster(), plain = subjects.sluice_before_three();
  Measured of_cluster, of_plain, warming;
  const Load load{"P16, 32 bytes", 16, 32, 0, 0};
  for (const auto* const subject : {&cluster, &plain})
    measure(*subject, load, "set", count_of(load, options.each) / 4, warming);
  for (int round = 0; round < options.rounds; ++round) {
    measure(plain, load, "get", count_of(load, options.each), of_plain);
    measure(cluster, load, "get", count_of(load, options.each), of_cluster);
  }
  report.add({.figure = "GET P16, 32 bytes, before a cluster: CPU of the proxy for a request",
              .unit = "us",
              .values = of_cluster.cpu,
              .peer = "before three plain servers",
              .peer_values = of_plain.cpu,
              .goal = 1.1,
              .at_most = true});
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = parse_options(argc, argv);
  Report report{"proxy", options};
  Subjects subjects{std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../.."};
  if (options.wants("loads")) {
    auto ours = subjects.sluice();
    auto nutcracker = subjects.nutcracker();
    auto floor = subjects.floor();
    for (const auto& load : loads) compare(report, {&ours, &nutcracker, &floor}, load, options);
  }
  if (options.wants("idle")) weigh_idle_clients(report, subjects, options);
  if (options.wants("workers")) compare_workers(report, subjects, options);
  if (options.wants("cluster")) compare_cluster(report, subjects, options);
  report.print();
}
