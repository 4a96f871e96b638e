/// A sale: admissions beside redis-benchmark with the same script, group commit on disk, and orders
/// into SQLite.
#include <fmt/format.h>

#include <atomic>
#include <stdexcept>

#include "number/period.hpp"
#include "sale/admit.lua.hpp"
#include "sale/definition.hpp"
#include "sluice/metrics.hpp"
#include "sluice/open.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/when_all.hpp"
#include "support/plain_client.hpp"
#include "support/redis_benchmark.hpp"
#include "support/redis_server.hpp"
#include "support/report.hpp"
#include "support/temp_dir.hpp"

namespace {

using namespace sluice;
using namespace sluice::bench;
using Steady = std::chrono::steady_clock;

constexpr int crowd = 256;

SaleDefinition goods(const std::string& name) {
  return {.name = name,
          .stock = 1'000'000'000,
          .limit = 1,
          .number_type = name.substr(0, 16),
          .zone = "Asia/Shanghai",
          .digits = 12};
}

/// Every purchase by a buyer of his own, so that every one is admitted.
Task<void> buy_until(Sale& sale, std::uint64_t first, std::uint64_t step, Steady::time_point end,
                     std::atomic<std::uint64_t>& done) {
  for (auto buyer = first; Steady::now() < end; buyer += step) {
    auto asked = sale.buy(BuyerId{fmt::format("{:012}", buyer)}, RequestId{"r"});
    const auto answer = co_await asked;
    if (answer.outcome != SaleOutcome::admitted) throw std::runtime_error{"not admitted"};
    done.fetch_add(1, std::memory_order_relaxed);
  }
}

std::uint64_t next_buyer = 0;

/// Admissions a second by so many buyers at once, all on this thread.
double admissions(Sale& sale, int buyers, std::chrono::milliseconds each) {
  std::atomic<std::uint64_t> done{0};
  const auto start = Steady::now();
  std::vector<Task<void>> crew;
  for (int i = 0; i < buyers; ++i)
    crew.push_back(buy_until(sale, next_buyer + static_cast<std::uint64_t>(i),
                             static_cast<std::uint64_t>(buyers), start + each, done));
  when_all(std::move(crew)).get();
  next_buyer += 100'000'000;
  return static_cast<double>(done) / std::chrono::duration<double>(Steady::now() - start).count();
}

/// redis-benchmark's, one request a call.
class Peer {
 public:
  Peer(Store& store, int port) : port_(port), sale_(Sale::create(store, goods("peer")).get()) {
    test::PlainClient{static_cast<std::uint16_t>(port)}.command(
        {"SCRIPT", "LOAD", scripts::sale_admit.text});
  }
  double admissions() const {
    const sale::SaleKeys keys{"peer"};
    const auto days = Calendar{"Asia/Shanghai"}.around(system_clock().wall());
    std::vector<std::string> words{"-c",
                                   "64",
                                   "-P",
                                   "16",
                                   "-n",
                                   "200000",
                                   "-r",
                                   "1000000000",
                                   "EVALSHA",
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
    return redis_benchmark(port_, words);
  }

 private:
  int port_;
  Sale sale_;
};

/// Orders a second from the stream into SQLite, on disk when they are counted.
double persist(Store& store, const std::string& name, std::uint64_t count) {
  Sale sale = Sale::create(store, goods(name)).get();
  for (std::uint64_t bought = 0; bought < count;) {
    std::vector<Task<Admission>> calls;
    for (int i = 0; i < 512; ++i)
      calls.push_back(sale.buy(BuyerId{fmt::format("{:012}", bought++)}, RequestId{"r"}));
    when_all(std::move(calls)).get();
  }
  const test::TempDir folder;
  const auto orders = open_order_store("sqlite:" + (folder / "orders.db").string());
  OrderWorker worker{store, sale, *orders};
  const auto start = Steady::now();
  worker.drain();
  const double span = std::chrono::duration<double>(Steady::now() - start).count();
  return static_cast<double>(worker.progress().inserted) / span;
}

/// Buys `orders` orders, with a buyer of 13 bytes and a request of 36 each, so many a buyer.
void buy_all(Sale& sale, std::int64_t orders, std::int64_t each) {
  for (std::int64_t bought = 0; bought < orders;) {
    std::vector<Task<Admission>> calls;
    for (int i = 0; i < 512 && bought < orders; ++i, ++bought)
      calls.push_back(sale.buy(BuyerId{fmt::format("{:013}", bought / each)},
                               RequestId{fmt::format("{:036}", bought)}));
    for (const auto& answer : when_all(std::move(calls)).get())
      if (answer.outcome != SaleOutcome::admitted) throw std::runtime_error{"not admitted"};
  }
}

/// Bytes of Redis an order, once the workers have it.
double bytes_an_order(int port, Store& store, std::int64_t each) {
  constexpr std::int64_t count = 100'000;
  test::PlainClient side{static_cast<std::uint16_t>(port)};
  const auto used = [&] {
    const auto info = side.command({"INFO", "memory"}).as_text();
    constexpr std::string_view field = "used_memory:";
    return std::stod(info.substr(info.find(field) + field.size()));
  };
  side.command({"FLUSHALL", "SYNC"});
  auto definition = goods("memory");
  definition.limit = each == 1 ? 1 : 0;
  definition.digits = 9;
  definition.stock = count;
  Sale sale = Sale::create(store, definition).get();
  const auto before = used();
  buy_all(sale, count, each);
  const auto orders = open_order_store("sqlite::memory:");
  OrderWorker{store, sale, *orders}.drain();
  return (used() - before) / static_cast<double>(count);
}

/// The longest that an archive of so many orders held up the server, ms.
double longest_step(int port, Store& store, std::int64_t count) {
  test::PlainClient side{static_cast<std::uint16_t>(port)};
  side.command({"FLUSHALL", "SYNC"});
  auto definition = goods("archived");
  definition.digits = 9;
  definition.stock = count;
  Sale sale = Sale::create(store, definition).get();
  buy_all(sale, count, 1);
  const auto orders = open_order_store("sqlite::memory:");
  OrderWorker{store, sale, *orders}.drain();
  side.command({"CONFIG", "SET", "slowlog-max-len", "1000"});
  side.command({"CONFIG", "SET", "slowlog-log-slower-than", "500"});
  side.command({"SLOWLOG", "RESET"});
  sale.archive(*orders);
  double longest = 0.5;
  const auto slow = side.command({"SLOWLOG", "GET", "1000"});
  for (const auto& entry : slow.as_items())
    longest = std::max(longest, static_cast<double>(entry.as_items().at(2).as_integer()) / 1000);
  return longest;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const test::RedisServer server;
  const auto redis = open(server.url());
  const auto memory = open("embedded:");
  const test::TempDir folder;
  const auto disk = open("embedded:" + (folder / "store").string());
  Sale on_redis = Sale::create(*redis, goods("bench")).get();
  Sale on_disk = Sale::create(*disk, goods("bench")).get();
  const Peer peer{*redis, server.port()};

  Row remote{.figure = "admissions, 256 concurrent buyers, redis",
             .unit = "1/s",
             .peer = "redis-benchmark EVALSHA of the same script -c 64 -P 16",
             .goal = 1.0};
  Row local{.figure = "admissions, 256 buyers, embedded on disk, always",
            .unit = "1/s",
            .peer = "the same with one buyer",
            .goal = 20};
  Row database{
      .figure = "orders into SQLite through the worker, redis", .unit = "1/s", .goal = 100'000};
  Row embedded{
      .figure = "orders into SQLite through the worker, embedded", .unit = "1/s", .goal = 100'000};
  Row single{.figure = "memory of an order, redis", .unit = "bytes", .goal = 200, .at_most = true};
  Row many{.figure = "memory of an order of a buyer with 100, redis",
           .unit = "bytes",
           .goal = 200,
           .at_most = true};
  Row archived{.figure = "longest step in an archive of 1,000,000 orders, redis",
               .unit = "ms",
               .goal = 5,
               .at_most = true};
  if (options.wants("end")) {
    const test::RedisServer quiet;
    const auto store = open(quiet.url());
    single.values.push_back(bytes_an_order(quiet.port(), *store, 1));
    many.values.push_back(bytes_an_order(quiet.port(), *store, 100));
    archived.values.push_back(longest_step(quiet.port(), *store, 1'000'000));
  }
  for (int round = 0; options.only != "end" && round < options.rounds; ++round) {
    remote.peer_values.push_back(peer.admissions());
    remote.values.push_back(admissions(on_redis, crowd, options.each));
    local.peer_values.push_back(admissions(on_disk, 1, options.each));
    local.values.push_back(admissions(on_disk, crowd, options.each));
    database.values.push_back(persist(*redis, fmt::format("persist-{}", round), 100'000));
    embedded.values.push_back(persist(*memory, fmt::format("persist-{}", round), 100'000));
  }
  Report report{"sale", options};
  for (auto* const row : {&remote, &local, &database, &embedded, &single, &many, &archived})
    if (!row->values.empty()) report.add(std::move(*row));
  report.print();
}
