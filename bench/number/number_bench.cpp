/// Business numbers: 64 threads on one series against redis-benchmark's INCR with as many
/// connections.
#include <fmt/format.h>

#include <stdexcept>

#include "sluice/number.hpp"
#include "sluice/open.hpp"
#include "support/redis_benchmark.hpp"
#include "support/redis_server.hpp"
#include "support/report.hpp"

namespace {

using namespace sluice;
using namespace sluice::bench;

constexpr int threads = 64;

double draw(Store& store, std::chrono::milliseconds each, int crew) {
  Series series{store, "bench", {.zone = "Asia/Shanghai", .digits = 12}};
  return rate(each, crew, [&](int) {
    if (!series.next().get()) throw std::runtime_error{"the series is full"};
    return 1;
  });
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const test::RedisServer server;
  const auto redis = open(server.url());
  const auto memory = open("embedded:");
  Row many{.figure = "Series::next, 64 threads, redis",
           .unit = "1/s",
           .peer = "redis-benchmark INCR -c 64",
           .goal = 2.5};
  Row one{.figure = "Series::next, one thread, redis", .unit = "1/s"};
  Row local{.figure = "Series::next, one thread, embedded", .unit = "1/s"};
  Row crowd{.figure = "Series::next, 64 threads, embedded", .unit = "1/s"};
  for (int round = 0; round < options.rounds; ++round) {
    many.peer_values.push_back(
        redis_benchmark(server.port(), {"-c", "64", "-n", "80000", "-t", "incr"}));
    many.values.push_back(draw(*redis, options.each, threads));
    one.values.push_back(draw(*redis, options.each, 1));
    local.values.push_back(draw(*memory, options.each, 1));
    crowd.values.push_back(draw(*memory, options.each, threads));
  }
  Report report{"number", options};
  for (auto* const row : {&many, &one, &local, &crowd}) report.add(std::move(*row));
  report.print();
}
