/// What a hold is of: one synchronizer by one name, as it stands on the server.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.hpp"
#include "sluice/held.hpp"
#include "sluice/store.hpp"
#include "store/reply_error.hpp"

namespace sluice::lock {

struct Hold;
class Watchdog;

/// Whose request, and which. All attempts of one verb are copies of one request. Its id names the
/// hold that comes of it, and no other hold ever.
///
/// One piece of memory: a process may have a hundred thousand holds.
class Identity {
 public:
  Identity() noexcept = default;
  Identity(std::string_view owner, std::string_view request, std::string_view holder);
  Identity(const Identity& other) : Identity(other.owner(), other.request(), other.holder()) {}
  Identity(Identity&&) noexcept = default;
  Identity& operator=(const Identity& other) { return *this = Identity{other}; }
  Identity& operator=(Identity&&) noexcept = default;
  ~Identity() = default;

  /// The same party by another request.
  Identity with_request(std::string_view request) const { return {owner(), request, holder()}; }

  std::string_view owner() const noexcept { return part(0); }
  std::string_view request() const noexcept { return part(1); }
  std::string_view holder() const noexcept { return part(2); }  ///< for people; see holder_text()

 private:
  using Ends = std::array<std::uint32_t, 4>;  // where each part begins, and where the last one ends
  std::string_view part(std::size_t which) const noexcept;

  std::unique_ptr<char[]> bytes_;  // Ends, then the parts
};

/// The words of one renewal script. Every hold adds as many as the others.
struct Renewal {
  std::vector<std::string> keys;
  std::vector<std::string> args;
};

/// Asks for the end of what one request has left behind. Reply: as Resource::ask_end.
using GiveUp = std::function<Task<Value>()>;
/// A GiveUp that runs this script. It keeps nothing alive but the words. `durability`: of the
/// request, as both then go by one connection, and the end comes after what it ends.
GiveUp script_call(Store& store, const Script& script, Words keys, Words args,
                   const Durability& durability);
/// Runs it to end a hold. One that nobody waits for goes by the connection of the next acquire, and
/// so before it.
Task<Value> run_end(Store& store, const Script& script, Words keys, Words args,
                    const Durability& durability, CallOptions options);

/// Threads: any. Nothing is decided here but how to ask.
class Resource {
 public:
  Resource(std::shared_ptr<Watchdog> watchdog, std::string key)
      : watchdog_(std::move(watchdog)), key_(std::move(key)) {}
  virtual ~Resource() = default;
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;

  /// False in a child of the process that made this.
  bool is_of_this_process() const noexcept { return forks_ == fork_count(); }
  /// Throws Error (closed) in such a child.
  void check_process() const {
    if (!is_of_this_process()) throw closed_by_fork();
  }

  Store& store() const noexcept;
  Watchdog& watchdog() const noexcept { return *watchdog_; }
  const std::string& key() const noexcept { return key_; }

  /// Prolongs up to `holds_a_renewal` holds. Reply, for each hold: 1 prolonged, 0 gone, nil: the
  /// server cannot tell now.
  virtual const Script& renewal() const noexcept = 0;
  virtual void add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const = 0;
  static constexpr std::size_t holds_a_renewal = 100;

  /// Ends the hold of that request. Harmless when repeated, but a copy is answered 0 where the
  /// first ended the hold. Reply: 1 ended, 0 gone.
  virtual Task<Value> ask_end(const Identity& who, CallOptions options) = 0;
  /// The same for a request of unknown outcome: ends whatever it may have left behind, also a place
  /// in a queue. It can be called as long as the Store lives, also when this Resource is gone.
  /// Empty: such a request is taken back otherwise.
  virtual GiveUp give_up(const Identity&) const { return {}; }
  /// The request by which it stood in the server's queue.
  virtual std::string queued_as(const Identity& who) const { return std::string{who.request()}; }
  /// Tells the server how many entries the hold has from now on, and prolongs it. Repeatable.
  /// Reply: 1 done, 0 gone.
  virtual Task<Value> ask_recount(const Hold& hold, std::uint32_t entries) = 0;

  /// What a hold of it promises when a server is lost: how many replicas know of it, and of each
  /// renewal that valid() counts.
  virtual Durability durability() const noexcept { return {}; }

  /// A certain hold is over, and the server does not know it yet. True: another waiter of this
  /// process goes on with it. False: the hold has ended().
  virtual bool pass_on(const std::shared_ptr<Hold>&) { return false; }
  /// A hold was lost.
  virtual void ended(const Hold&) {}

 private:
  const std::shared_ptr<Watchdog> watchdog_;
  const std::string key_;
  const unsigned forks_ = fork_count();
};

}  // namespace sluice::lock
