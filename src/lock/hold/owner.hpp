/// Who holds or waits: owners and their holds, ids, and what people are shown.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lock/hold/hold.hpp"
#include "sluice/held.hpp"
#include "sluice/lock_info.hpp"
#include "sluice/store.hpp"

namespace sluice::lock {

/// `<uuid>:<number>`, never twice.
std::string new_owner_id();
/// Names one request to acquire among those of all processes and times.
std::string new_request_id();

struct OwnerState {
  OwnerId id;
  std::mutex mutex;
  std::unordered_multimap<std::size_t, std::weak_ptr<Hold>> holds;  // by a hash of the lock's name
  std::size_t full = 16;  // when those that are over are forgotten

  /// The hold of this lock that is in force; null: none.
  std::shared_ptr<Hold> find(const Watchdog& watchdog, const Resource& resource) {
    return find(watchdog, resource.key(), resource.renewal());
  }
  /// `renewal` tells the kinds of holds of one key apart.
  std::shared_ptr<Hold> find(const Watchdog& watchdog, const std::string& key,
                             const Script& renewal);
  void add(const std::shared_ptr<Hold>& hold);

  /// One acquire. Those of one owner for one lock go one after another: the next may enter the hold
  /// that the first gets.
  struct Turn {
    const Store* store;
    std::string key;
    bool may_wait;
    Completion begins{};

    bool is_of(const Turn& other) const { return store == other.store && key == other.key; }
  };
  std::list<std::shared_ptr<Turn>> turns;  // under mutex; the first of each lock has begun
};

/// The owner that is this thread. It lives as long as the thread, and longer than all thread_local
/// and static objects of the main thread.
const std::shared_ptr<OwnerState>& this_thread_owner();

/// A new request, of a new owner if `owner` is null; see holder_text() for `label`.
Identity new_identity(const OwnerState* owner, std::string_view label);

/// The synchronizers' way to the private parts of Held and Owner.
struct Internals {
  static Held held(std::shared_ptr<Hold> hold) noexcept { return Held{std::move(hold)}; }
  static const std::shared_ptr<OwnerState>& state(const Owner& owner) noexcept {
    return owner.state_;
  }
};

/// "HOST PID ACTOR LABEL", for people. ACTOR is the kernel's id of the calling thread as t<number>,
/// or "-" for an Owner, which is no thread; then "<PID:ACTOR" for each ancestor that waits for this
/// process (see `ancestors_variable`). `label` may hold any bytes.
std::string holder_text(bool is_owner, std::string_view label);
/// The inverse of holder_text. A text of another form becomes the label.
HolderData holder_data(std::string_view text);

/// `label`, or the name of this program if it is empty.
std::string label_or_program(std::string label);

}  // namespace sluice::lock
