/// Semaphores on the embedded engine and virtual time, and their books.
#pragma once

#include "lock/semaphore/guest.hpp"
#include "lock/virtual_lock.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/semaphore.hpp"

namespace sluice {

using test::Guest;

/// The permits of a Semaphore as they stand in the store, without asking it.
struct Books {
  std::int64_t free = 0;
  std::int64_t held = 0;

  std::int64_t total() const { return free + held; }
};

inline Books books_of(Store& store, const std::string& name) {
  Books books;
  const Value free = store.run({"GET", name}).get();
  if (!free.is_null()) books.free = std::stoll(free.as_text());
  const Value holds =
      store.run({"ZRANGE", "sluice_semaphore_holds:{" + name + "}", "0", "-1"}).get();
  for (const Value& member : holds.as_items()) {
    const std::string& text = member.as_text();
    books.held += std::stoll(text.substr(text.find(' ') + 1));
  }
  return books;
}

class VirtualSemaphore : public VirtualLock {
 protected:
  Books books() { return books_of(*store_, "desks"); }
  std::int64_t number(std::string_view verb, std::string_view key) {
    return store_->run({verb, key}).get().as_integer();
  }
};

}  // namespace sluice
