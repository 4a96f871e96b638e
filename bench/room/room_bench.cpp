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

double memory_of(Store& store) {
  const auto info = store.run({"INFO", "memory"}).get().as_text();
  constexpr std::string_view field = "used_memory:";
  return std::stod(info.substr(info.find(field) + field.size()));
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
  Row draw{.figure = "positions of a draw among 1,000,000", .unit = "1/s"};
  const std::string seed(32, 's');
  for (int round = 0; round < options.rounds; ++round) {
    draw.values.push_back(rate(options.each, [&] {
      const auto place = static_cast<std::int64_t>(random_below(many)) + 1;
      return static_cast<std::size_t>(room::drawn_position(seed, many, place) > 0);
    }));
    crowd.peer_values.push_back(redis_few.questions(options.each, threads));
    crowd.values.push_back(redis_many.questions(options.each, threads));
    one.peer_values.push_back(redis_few.questions(options.each, 1));
    one.values.push_back(redis_many.questions(options.each, 1));
    local.peer_values.push_back(embedded_few.questions(options.each, 1));
    local.values.push_back(embedded_many.questions(options.each, 1));
  }
  Report report{"room", options};
  for (auto* const figure : {&crowd, &one, &local, &bytes, &draw}) report.add(std::move(*figure));
  report.print();
}
