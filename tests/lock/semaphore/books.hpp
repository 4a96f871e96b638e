/// What there is and who has it.
#pragma once

#include <string>

#include "sluice/store.hpp"

namespace sluice {

/// The permits of a Semaphore as they stand in the store, without asking it.
struct Books {
  std::int64_t free = 0;
  std::int64_t held = 0;

  std::int64_t total() const { return free + held; }
};

/// At one moment, whoever else is at it.
inline Books books_of(Store& store, const std::string& name) {
  const Value seen =
      store
          .run({"EVAL",
                "return {redis.call('GET', KEYS[1]) or '0', redis.call('ZRANGE', KEYS[2], 0, -1)}",
                "2", name, "sluice_semaphore_holds:{" + name + "}"})
          .get();
  Books books{.free = std::stoll(seen.as_items().at(0).as_text())};
  const Value& holds = seen.as_items().at(1);
  for (const Value& member : holds.as_items()) {
    const std::string& text = member.as_text();
    books.held += std::stoll(text.substr(text.find(' ') + 1));
  }
  return books;
}

}  // namespace sluice
