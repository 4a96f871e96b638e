/// Waiting rooms: questions of those who wait, with a million of them against a thousand, and what
/// a waiter costs in memory.
#include <fmt/format.h>

#include <atomic>
#include <stdexcept>

#include "base/random.hpp"
#include "room/draw.hpp"
#include "sluice/open.hpp"
#include "sluice/waiting_room.hpp"
#include "support/redis_server.hpp"
#include "support/report.hpp"

namespace {

using namespace sluice;
using namespace sluice::bench;
using namespace std::chrono_literals;

constexpr int few = 1'000;
constexpr int many = 1'000'000;
constexpr int askers = 1'000;  // spread over the queue
constexpr int threads = 64;

std::string visitor(int number) { return fmt::format("customer-{:08}", number); }

/// A room in which as many wait, and the tickets of some.
class Queue {
 public:
  Queue(Store& store, const std::string& name, int waiting)
      : room_(WaitingRoom::create(store, TokenKeys{{{"k1", std::string(32, 'k')}}},
                                  {.name = name, .inside = 1, .hold = 24h})
                  .get()) {
    room_.enter("first").get();
    std::atomic<int> next{0};
    tickets_.resize(askers);
    rate(1ms, threads, [&](int) {
      for (int number = next++; number < waiting; number = next++) {
        auto entry = room_.enter(visitor(number)).get();
        if (number % (waiting / askers) == 0)
          tickets_[static_cast<std::size_t>(number / (waiting / askers))] =
              std::pair{visitor(number), std::move(entry.ticket)};
      }
      return 1;
    });
    if (room_.status().get().waiting != waiting) throw std::runtime_error{"they do not all wait"};
  }

  double questions(std::chrono::milliseconds each, int crew) {
    return rate(each, crew, [&](int) {
      const auto& [name, ticket] = tickets_[random_below(askers)];
      if (room_.state(ticket, name).get()->state != PlaceState::waiting)
        throw std::runtime_error{"somebody does not wait"};
      return 1;
    });
  }

 private:
  WaitingRoom room_;
  std::vector<std::pair<std::string, std::string>> tickets_;
};

/// The number behind the first `field` of a section of INFO.
double info_of(Store& store, std::string_view section, std::string_view field) {
  const auto info = store.run({"INFO", section}).get().as_text();
  return std::stod(info.substr(info.find(field) + field.size()));
}

double memory_of(Store& store) { return info_of(store, "memory", "used_memory:"); }

/// Microseconds that the server has spent on a question.
double server_time(Store& store, Queue& queue, std::chrono::milliseconds each) {
  store.run({"CONFIG", "RESETSTAT"}).get();
  queue.questions(each, threads);
  const auto info = store.run({"INFO", "commandstats"}).get().as_text();
  const auto script = info.find("cmdstat_evalsha:");
  constexpr std::string_view field = "usec_per_call=";
  return std::stod(info.substr(info.find(field, script) + field.size()));
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const test::RedisServer server;
  const auto redis = open(server.url());
  const auto memory = open("embedded:");
  Queue redis_few{*redis, "few", few};
  const double before = memory_of(*redis);
  Queue redis_many{*redis, "many", many};
  Row bytes{.figure = "memory of a waiter, redis, ids of 17 bytes",
            .unit = "bytes",
            .values = {(memory_of(*redis) - before) / many}};
  Queue embedded_few{*memory, "few", few};
  Queue embedded_many{*memory, "many", many};
  const auto row = [](std::string figure) {
    return Row{.figure = std::move(figure),
               .unit = "1/s",
               .peer = "the same with 1,000 waiting",
               .goal = 0.5};
  };
  auto crowd = row("questions, 1,000,000 waiting, 64 threads, redis");
  auto one = row("the same, one thread, redis");
  auto local = row("the same, one thread, embedded");
  Row server_us{.figure = "time of the server for a question, 1,000,000 waiting",
                .unit = "us",
                .peer = "the same with 1,000 waiting",
                .goal = 2,
                .at_most = true};
  Row draw{.figure = "positions of a draw among 1,000,000", .unit = "1/s"};
  const std::string seed(32, 's');
  for (int round = 0; round < options.rounds; ++round) {
    draw.values.push_back(rate(options.each, [&] {
      const auto place = static_cast<std::int64_t>(random_below(many)) + 1;
      return static_cast<std::size_t>(room::drawn_position(seed, many, place) > 0);
    }));
    server_us.peer_values.push_back(server_time(*redis, redis_few, options.each));
    server_us.values.push_back(server_time(*redis, redis_many, options.each));
    crowd.peer_values.push_back(redis_few.questions(options.each, threads));
    crowd.values.push_back(redis_many.questions(options.each, threads));
    one.peer_values.push_back(redis_few.questions(options.each, 1));
    one.values.push_back(redis_many.questions(options.each, 1));
    local.peer_values.push_back(embedded_few.questions(options.each, 1));
    local.values.push_back(embedded_many.questions(options.each, 1));
  }
  Report report{"room", options};
  for (auto* const figure : {&crowd, &one, &local, &bytes, &draw, &server_us})
    report.add(std::move(*figure));
  report.print();
}
