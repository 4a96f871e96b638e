/// A crowd comes before the doors open; a draw says who is first, and two are inside at a time.
///   waiting_room [URL]     default: embedded:
#include <fmt/format.h>

#include <chrono>
#include <sluice/open.hpp>
#include <sluice/waiting_room.hpp>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  // In a service: TokenKeys::load("/etc/sluice/token_keys").
  const sluice::TokenKeys keys{{{"k1", "32 random bytes, known to nobody"}}};
  auto room =
      sluice::WaitingRoom::create(
          *store, keys,
          {.name = "maotai", .rate = 100, .inside = 2, .opens_at = store->time().get() + 500ms})
          .get();
  fmt::print("the seed of the draw has SHA-256 {}\n", room.draw().get().commitment);

  std::vector<std::pair<std::string, std::string>> crowd;  // who, and the ticket in his cookie
  for (const char* const name : {"ann", "bob", "cid", "dan", "eve"})
    crowd.emplace_back(name, room.enter(name).get().ticket);

  while (!crowd.empty()) {
    for (auto visitor = crowd.begin(); visitor != crowd.end();) {
      const auto& [name, ticket] = *visitor;
      const auto place = room.state(ticket, name).get();  // at each poll of his page
      if (!place) {
        fmt::print("{}: 403, the ticket is {}\n", name, to_string(place.error()));
        return 1;
      }
      const bool is_inside = place->state == sluice::PlaceState::inside;
      if (is_inside) {
        fmt::print("{} buys, as number {} of the draw\n", name, place->position);
        room.leave(ticket, name).get();  // the next one may come
      }
      visitor = is_inside ? crowd.erase(visitor) : visitor + 1;
    }
    std::this_thread::sleep_for(10ms);  // a page waits for place->poll_after
  }

  const auto draw = room.draw().get();
  fmt::print("the seed was {}, as promised: {}\n", draw.seed, draw.keeps_promise());
  room.remove().get();
}
