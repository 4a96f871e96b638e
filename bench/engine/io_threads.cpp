/// Ways to let several threads serve the clients of one engine, side by side: CPU and requests a
/// second by pipeline, medians of rounds in which each way has its turn. The ratios are those to
/// the first row of the round. Prints CSV, which scripts/threads_picture draws.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>

#include "engine/embedded/opened_engine.hpp"
#include "engine/ways.hpp"
#include "port/port.hpp"
#include "support/blocking_peer.hpp"
#include "support/free_port.hpp"
#include "support/process.hpp"
#include "support/process_cost.hpp"
#include "support/redis_benchmark.hpp"
#include "support/redis_server.hpp"
#include "support/report.hpp"

namespace {

using namespace sluice;
using namespace sluice::bench;

constexpr int clients = 50;

struct Pipeline {
  int deep;
  int per_second;  // about what a server does
  int requests = 0;
};
constexpr Pipeline pipelines[] = {{1, 30'000}, {16, 300'000}, {64, 600'000}};

/// The program that serves, in a process of its own.
struct Served {
  int port = 0;
  pid_t pid = 0;
  std::unique_ptr<test::Process> process;
  std::unique_ptr<test::RedisServer> redis;
};

Served serve_by(Way* way, std::size_t threads) {
  auto listener = net::ServerSocket::open({.host = "127.0.0.1", .port = 0, .unix_path = {}}, {});
  Served served{.port = listener.port()};
  served.process = std::make_unique<test::Process>([&] {
    const auto opened = engine::OpenedEngine::open({});
    way(opened->engine(), listener, threads);
    return 0;
  });
  served.pid = served.process->pid();
  return served;
}

Served serve_by_port(std::size_t threads) {
  Served served{.port = test::free_port()};
  served.process = std::make_unique<test::Process>([&] {
    const auto opened = engine::OpenedEngine::open({});
    const net::Endpoint endpoint{
        .host = "127.0.0.1", .port = static_cast<std::uint16_t>(served.port), .unix_path = {}};
    port::Port{*opened, {.listen = {{endpoint}}, .threads = threads}}.wait();
    return 0;
  });
  served.pid = served.process->pid();
  return served;
}

Served serve_by_redis(std::size_t threads) {
  Served served;
  served.redis = std::make_unique<test::RedisServer>(
      std::vector{fmt::format("io-threads {}", threads), std::string{"io-threads-do-reads yes"},
                  std::string{"save ''"}});
  served.port = served.redis->port();
  served.pid = served.redis->pid();
  return served;
}

struct Subject {
  std::string_view name;
  std::size_t threads;  // that read and write
  std::function<Served(std::size_t threads)> start;
};

const std::vector<Subject>& subjects() {
  const auto by = [](Way* way) { return [way](std::size_t n) { return serve_by(way, n); }; };
  static const std::vector<Subject> all{
      {"owned", 1, by(serve_owned)},          {"owned", 2, by(serve_owned)},
      {"barrier", 2, by(serve_by_barrier)},   {"executor", 1, by(serve_by_executor)},
      {"executor", 2, by(serve_by_executor)}, {"sluice-engine", 1, serve_by_port},
      {"sluice-engine", 2, serve_by_port},    {"redis-server", 1, serve_by_redis},
      {"redis-server", 2, serve_by_redis},
  };
  return all;
}

/// A key of redis-benchmark's is there.
void fill(int port) {
  for (int i = 0;; ++i) try {
      return BlockingPeer{port}.command({"SET", "key:__rand_int__", "xxx"});
    } catch (const std::runtime_error&) {
      if (i == 500) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds{10});  // it does not listen yet
    }
}

struct Figures {
  double cpu_us = 0;  // a request
  double per_second = 0;
};

Figures measured(const Subject& subject, const Pipeline& pipeline) {
  const auto served = subject.start(subject.threads);
  fill(served.port);
  const auto before = cpu_us_of(served.pid);
  const auto rate = redis_benchmark(
      served.port, {"-c", fmt::format("{}", clients), "-P", fmt::format("{}", pipeline.deep), "-n",
                    fmt::format("{}", pipeline.requests), "-t", "get"});
  return {(cpu_us_of(served.pid) - before) / pipeline.requests, rate};
}

double median_of(const std::vector<std::vector<Figures>>& rounds, std::size_t subject,
                 const std::function<double(const Figures&, const Figures& base)>& figure) {
  std::vector<double> values;
  for (const auto& round : rounds) values.push_back(figure(round[subject], round[0]));
  return median(std::move(values));
}

void compare(const Pipeline& pipeline, int rounds) {
  std::vector<std::vector<Figures>> all;
  for (int i = 0; i < rounds; ++i) {
    all.emplace_back();
    for (const auto& subject : subjects()) all.back().push_back(measured(subject, pipeline));
  }
  for (std::size_t i = 0; i < subjects().size(); ++i) {
    const auto of = [&](auto&& figure) { return median_of(all, i, figure); };
    fmt::print("{},{},{},{:.3f},{:.0f},{:.2f},{:.2f}\n", subjects()[i].name, subjects()[i].threads,
               pipeline.deep, of([](auto& f, auto&) { return f.cpu_us; }),
               of([](auto& f, auto&) { return f.per_second; }),
               of([](auto& f, auto& base) { return f.cpu_us / base.cpu_us; }),
               of([](auto& f, auto& base) { return f.per_second / base.per_second; }));
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = parse_options(argc, argv);
  fmt::print("way,threads,pipeline,cpu_us,requests_a_second,cpu_ratio,rate_ratio\n");
  for (auto pipeline : pipelines) {
    pipeline.requests = static_cast<int>(pipeline.per_second * options.each.count() / 1000);
    if (options.wants(fmt::format("P{}", pipeline.deep))) compare(pipeline, options.rounds);
  }
}
