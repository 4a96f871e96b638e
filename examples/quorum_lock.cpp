/// Leads while a majority of independent servers says so.
///
///   quorum_lock [URL URL URL ...]     default: three in memory
#include <fmt/format.h>

#include <span>

#include "sluice/lock.hpp"
#include "sluice/open.hpp"

using namespace std::chrono_literals;

int main(int count, char** words) try {
  std::vector<std::unique_ptr<sluice::Store>> stores;
  for (const char* url : std::span{words, static_cast<std::size_t>(count)}.subspan(1))
    stores.push_back(sluice::open(url));
  while (stores.size() < 3) stores.push_back(sluice::open("embedded:"));

  std::vector<sluice::Store*> nodes;
  for (const auto& store : stores) nodes.push_back(store.get());
  sluice::QuorumLock lock{nodes, "leader", {.lease = 10s}};

  auto held = lock.try_acquire(5s).get();
  if (!held) {
    fmt::print("another instance leads\n");
    return 0;
  }
  for (int beat = 1; held->valid() && beat <= 3; ++beat)
    fmt::print("beat {} under token {}\n", beat, held->token().value);
  fmt::print("{}\n", to_string(held->release().get().kind));
  return 0;
} catch (const sluice::Error& failure) {
  fmt::print(stderr, "{}\n", failure.what());  // which servers failed, and how
  return 1;
}
