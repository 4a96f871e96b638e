/// The engine at a port beside redis-server, in the same rounds: processor time of the server for a
/// request, as the scheduler counts it, and requests a second, under redis-benchmark with 50
/// connections; memory of keys and of connections; how long a log takes to load.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <fstream>
#include <stdexcept>

#include "engine/port_servers.hpp"
#include "lock/mutex/mutex.lua.hpp"
#include "number/period.hpp"
#include "sale/admit.lua.hpp"
#include "sale/definition.hpp"
#include "sluice/open.hpp"
#include "sluice/sale.hpp"
#include "support/redis_benchmark.hpp"
#include "support/report.hpp"

namespace {

using namespace sluice;
using namespace sluice::bench;
using Words = std::vector<std::string>;

struct Goals {
  std::optional<double> cpu = {};  // of ours to redis's
  std::optional<double> rate = {};
};

struct Load {
  std::string name;
  int pipeline;
  Words words;
  Goals goals;
  bool by_socket = false;
};

struct Measured {
  std::vector<double> cpu, rate;
};

/// Requests that take about as long as a measurement should.
int count_of(const Load& load, std::chrono::milliseconds each) {
  const int commands = load.pipeline == 1 ? 50'000 : load.pipeline == 16 ? 300'000 : 600'000;
  const int per_second = load.words[0] == "EVALSHA" ? 60'000 : commands;
  return static_cast<int>(per_second * std::chrono::duration<double>(each).count());
}

void measure(const PortServer& server, const Load& load, int count, Measured& measured) {
  Words words{"-c", "50",        "-n", std::to_string(count),
              "-r", "100000000", "-P", std::to_string(load.pipeline)};
  if (load.by_socket) words.insert(words.end(), {"-s", server.socket()});
  words.insert(words.end(), load.words.begin(), load.words.end());
  const auto before = server.cpu_us();
  measured.rate.push_back(redis_benchmark(server.port(), words));
  measured.cpu.push_back((server.cpu_us() - before) / count);
}

void compare(Report& report, const PortServer& ours, const PortServer& redis, const Load& load,
             const Options& options, const std::string& peer = "redis-server") {
  Measured of_ours, of_redis;
  const int count = count_of(load, options.each);
  for (const auto* const server : {&ours, &redis})
    if (const auto reply = server->client().command(load.words); reply.is_error())
      throw std::runtime_error{load.name + ": " + reply.as_text()};
  for (int round = 0; round < options.rounds; ++round) {
    measure(redis, load, count, of_redis);
    measure(ours, load, count, of_ours);
  }
  report.add({.figure = load.name + ": CPU a request",
              .unit = "us",
              .values = of_ours.cpu,
              .peer = peer,
              .peer_values = of_redis.cpu,
              .goal = load.goals.cpu,
              .at_most = true});
  report.add({.figure = load.name + ": requests",
              .unit = "1/s",
              .values = of_ours.rate,
              .peer = peer,
              .peer_values = of_redis.rate,
              .goal = load.goals.rate});
}

constexpr int pipelines[] = {1, 16, 64};
constexpr std::array<double, 3> cpu_goals = {0.95, 0.85, 0.80}, rate_goals = {1.0, 1.15, 1.25};

void compare_commands(Report& report, const Options& options, bool by_socket) {
  const PortServer ours{Kind::engine}, redis{Kind::redis};
  for (const auto* const server : {&ours, &redis}) server->client().command({"SET", "key", "xxx"});
  const std::string where = by_socket ? ", unix socket" : "";
  for (std::size_t i = 0; i < std::size(pipelines); ++i) {
    const int deep = pipelines[i];
    const Goals goals{cpu_goals[i], rate_goals[i]};
    for (const Words& words : {Words{"GET", "key"}, Words{"SET", "key", "xxx"}})
      compare(report, ours, redis,
              {fmt::format("{} P{}{}", words[0], deep, where), deep, words,
               by_socket ? Goals{} : goals, by_socket},
              options);
  }
}

// --- scripts ---

std::string loaded(const PortServer& server, std::string_view script) {
  const auto reply = server.client().command({"SCRIPT", "LOAD", script});
  return reply.as_text();
}

/// Each request takes a free lock.
Words acquisition() {
  return {"EVALSHA",
          std::string{scripts::lock_mutex_acquire.sha1},
          "4",
          "lock:__rand_int__",
          "redisson_lock_token:{lock:__rand_int__}",
          "queue",
          "looks",
          "owner",
          "30000",
          "request",
          "holder",
          ""};
}

/// Each request is a buyer's first.
Words admission() {
  const sale::SaleKeys keys{"bench"};
  const auto days = Calendar{"Asia/Shanghai"}.around(system_clock().wall());
  Words words{"EVALSHA",
              std::string{scripts::sale_admit.sha1},
              "4",
              keys.sale,
              keys.buyers,
              keys.requests,
              keys.orders,
              std::to_string(days.periods.size()),
              std::to_string(days.end.time_since_epoch().count())};
  for (const auto& day : days.periods) {
    words.push_back(std::to_string(day.start.time_since_epoch().count()));
    words.push_back(day.label);
  }
  words.insert(words.end(), {"__rand_int__", "r", "1"});
  return words;
}

void compare_scripts(Report& report, const Options& options) {
  const PortServer ours{Kind::engine}, redis{Kind::redis};
  std::string get;
  for (const auto* const server : {&ours, &redis}) {
    server->client().command({"SET", "key", "xxx"});
    get = loaded(*server, "return redis.call('GET', KEYS[1])");
    loaded(*server, scripts::lock_mutex_acquire.text);
    loaded(*server, scripts::sale_admit.text);
    const auto store = open(fmt::format("redis://127.0.0.1:{}", server->port()));
    static_cast<void>(Sale::create(*store, {.name = "bench",
                                            .stock = 1'000'000'000,
                                            .limit = 1,
                                            .number_type = "bench",
                                            .zone = "Asia/Shanghai",
                                            .digits = 12})
                          .get());
  }
  for (const Load& load :
       {Load{"EVALSHA of a GET, P16", 16, {"EVALSHA", get, "1", "key"}, {0.75, 1.4}},
        Load{"acquire of a lock, P16", 16, acquisition(), {0.75, 1.5}},
        Load{"admission to a sale, P16", 16, admission(), {0.75, 1.5}}})
    compare(report, ours, redis, load, options);
  for (const auto* const server : {&ours, &redis})
    if (server->client().command({"XLEN", sale::SaleKeys{"bench"}.orders}).as_integer() == 0)
      throw std::runtime_error{"no buyer was admitted"};
}

// --- the log ---

void compare_logs(Report& report, const Options& options) {
  for (const Kind kind : {Kind::engine, Kind::redis}) {
    const PortServer logs{kind, Log::never_synced}, keeps_none{kind};
    for (const int deep : pipelines)
      compare(report, logs, keeps_none,
              {fmt::format("SET P{}, {} with fsync=never", deep,
                           kind == Kind::engine ? "sluice-engine" : "redis-server"),
               deep,
               {"SET", "key", "xxx"},
               kind == Kind::engine ? Goals{.cpu = 1.6} : Goals{}},
              options, "without a log");
  }
}

void write_log(const std::string& path, int sets) {
  std::ofstream file{path, std::ios::binary};
  for (int i = 0; i < sets; ++i)
    file << fmt::format("*3\r\n$3\r\nSET\r\n$16\r\nkey:{:012}\r\n$100\r\n{:0100}\r\n", i, i);
}

/// Milliseconds from the start of the program to its first answer, with a copy of the log; and of
/// the processor.
std::pair<double, double> load_time(Kind kind, const std::string& log) {
  const test::TempDir folder;
  std::filesystem::copy_file(log, folder / "appendonly.aof");
  const auto begin = std::chrono::steady_clock::now();
  const PortServer server{kind, folder.str()};
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  return {took.count(), server.cpu_us() / 1000};
}

void compare_loads(Report& report, const Options& options) {
  constexpr int sets = 2'000'000;
  const test::TempDir folder;
  const std::string log = folder / "log";
  write_log(log, sets);
  Row time{.figure = "load of a log of 2,000,000 SETs of 100 bytes",
           .unit = "ms",
           .peer = "redis-server",
           .goal = 0.6,
           .at_most = true};
  Row cpu{.figure = "the same, CPU", .unit = "ms", .peer = "redis-server"};
  const auto note = [](auto figures, std::vector<double>& times, std::vector<double>& cpus) {
    times.push_back(figures.first);
    cpus.push_back(figures.second);
  };
  for (int round = 0; round < options.rounds; ++round) {
    note(load_time(Kind::redis, log), time.peer_values, cpu.peer_values);
    note(load_time(Kind::engine, log), time.values, cpu.values);
  }
  report.add(std::move(time));
  report.add(std::move(cpu));
}

// --- memory ---

constexpr int keys = 1'000'000, at_a_time = 1000;

struct Stored {
  std::string name;
  std::function<Words(int i)> command;
  double goal;
};

const std::vector<Stored>& kinds_of_keys() {
  const auto key = [](int i) { return fmt::format("key:{:012}", i); };
  static const std::vector<Stored> all{
      {"string of 10 bytes",
       [key](int i) {
         return Words{"SET", key(i), fmt::format("v{:09}", i)};
       },
       0.80},
      {"string of 32 bytes",
       [key](int i) {
         return Words{"SET", key(i), fmt::format("v{:031}", i)};
       },
       0.85},
      {"hash of two fields",
       [key](int i) {
         return Words{"HSET", key(i), "name", fmt::format("n{:09}", i), "price", std::to_string(i)};
       },
       1.1},
      {"member of a set",
       [key](int i) {
         return Words{"SADD", "set", key(i)};
       },
       1.1},
  };
  return all;
}

void fill(const PortServer& server, const Stored& stored) {
  auto client = server.client();
  for (int done = 0; done < keys; done += at_a_time) {
    std::string bytes;
    for (int i = done; i < done + at_a_time; ++i) {
      const auto words = stored.command(i);
      bytes += fmt::format("*{}\r\n", words.size());
      for (const auto& word : words) bytes += fmt::format("${}\r\n{}\r\n", word.size(), word);
    }
    client.send(bytes);
    for (int i = 0; i < at_a_time; ++i) static_cast<void>(client.read());
  }
}

/// As INFO says; 0: it does not.
double used_memory(const PortServer& server) {
  const auto info = server.client().command({"INFO", "memory"});
  const auto& text = info.as_text();
  const auto at = text.find("used_memory:");
  return at == std::string::npos ? 0 : std::atof(text.c_str() + at + 12);
}

struct Weight {
  double resident, used;
};
Weight weigh(Kind kind, const Stored& stored) {
  const PortServer server{kind};
  const Weight before{server.memory(), used_memory(server)};
  fill(server, stored);
  return {(server.memory() - before.resident) / keys, (used_memory(server) - before.used) / keys};
}

void compare_memory(Report& report) {  // it does not vary
  for (const auto& stored : kinds_of_keys()) {
    const auto ours = weigh(Kind::engine, stored), redis = weigh(Kind::redis, stored);
    const auto add = [&](const std::string& what, double value, double peer,
                         std::optional<double> goal) {
      report.add({.figure = fmt::format("{}: {}", stored.name, what),
                  .unit = "bytes",
                  .values = {value},
                  .peer = "redis-server",
                  .peer_values = {peer},
                  .goal = goal,
                  .at_most = true});
    };
    add("resident, to resident", ours.resident, redis.resident, {});
    add("resident, to used_memory", ours.resident, redis.used, stored.goal);
    if (ours.used > 0) add("used_memory, to used_memory", ours.used, redis.used, stored.goal);
  }
}

double idle_connection(Kind kind) {
  constexpr int connections = 10'000;
  const PortServer server{kind};
  const auto before = server.memory();
  std::vector<test::PlainClient> clients;
  for (int i = 0; i < connections; ++i) clients.push_back(server.client());
  for (auto& client : clients) client.command({"PING"});
  return (server.memory() - before) / connections;
}

void compare_idle(Report& report, const Options& options) {
  Row row{.figure = "memory of one of 10,000 idle connections",
          .unit = "bytes",
          .goal = 1536,
          .at_most = true};
  Row redis{.figure = "the same of redis-server", .unit = "bytes"};
  for (int round = 0; round < options.rounds; ++round) {
    row.values.push_back(idle_connection(Kind::engine));
    redis.values.push_back(idle_connection(Kind::redis));
  }
  report.add(std::move(row));
  report.add(std::move(redis));
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = parse_options(argc, argv);
  Report report{"port", options};
  if (options.wants("commands")) compare_commands(report, options, false);
  if (options.wants("socket")) compare_commands(report, options, true);
  if (options.wants("scripts")) compare_scripts(report, options);
  if (options.wants("log")) compare_logs(report, options);
  if (options.wants("load")) compare_loads(report, options);
  if (options.wants("memory")) compare_memory(report);
  if (options.wants("idle")) compare_idle(report, options);
  report.print();
}
