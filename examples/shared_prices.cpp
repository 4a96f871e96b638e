/// Many tills read a price list that one office writes; it announces what it wrote before others
/// may change it.
///   shared_prices [URL]     default: embedded:
#include <fmt/format.h>

#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "sluice/lock.hpp"
#include "sluice/open.hpp"

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  sluice::SharedMutex prices{*store, "prices"};

  // A till: beside other tills, never beside the office.
  const auto read_price = [&] {
    const std::shared_lock reading{prices};
    return store->run({"GET", "price:tea"}).get().as_text();
  };

  // The office: alone while it writes; then it reads what it wrote, beside the tills.
  const auto raise_price = [&](std::string_view price) {
    const sluice::Owner office;
    auto writing = prices.acquire(office).get();
    store->run({"SET", "price:tea", price}).get();
    const auto reading = prices.acquire_shared(office).get();
    writing.release().get();  // all that wait to read come in; nobody has written in between
    fmt::print("tea is {} now\n", store->run({"GET", "price:tea"}).get().as_text());
  };

  raise_price("3.20");
  std::vector<std::jthread> tills;
  for (int till = 0; till < 4; ++till) {
    tills.emplace_back([&] {
      const auto price = read_price();
      if (price != "3.20" && price != "3.40") fmt::print(stderr, "a price of {}?\n", price);
    });
  }
  raise_price("3.40");
}
