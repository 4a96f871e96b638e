/// What a hold is of: one synchronizer by one name, as it stands on the server.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/store.hpp"

namespace sluice::lock {

struct Hold;

/// Whose, and by what request: all attempts of one verb are copies of one request, which names the
/// hold that comes of it, and no other ever.
struct Identity {
  std::string owner;
  std::string request;
  std::string holder;  ///< for people; see holder_text()
};

/// The words of one renewal script. Every hold adds as many as the others.
struct Renewal {
  std::vector<std::string> keys;
  std::vector<std::string> args;
};

/// Asks for the end of what one request has left behind. Reply: as Resource::ask_end.
using GiveUp = std::function<Task<Value>()>;

/// Threads: any. Nothing is decided here but how to ask.
class Resource {
 public:
  Resource(Store& store, std::string key) : store_(store), key_(std::move(key)) {}
  virtual ~Resource() = default;
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;

  Store& store() const noexcept { return store_; }
  const std::string& key() const noexcept { return key_; }

  /// Prolongs up to `holds_a_renewal` holds. Reply: for each hold 1 prolonged, 0 gone, nil nobody
  /// can tell now.
  virtual const Script& renewal() const noexcept = 0;
  virtual void add_to(Renewal& renewal, const Hold& hold, std::uint32_t entries) const = 0;
  static constexpr std::size_t holds_a_renewal = 100;

  /// Ends the hold of that request. Harmless when repeated, but a copy is answered 0 where the
  /// first ended the hold. Reply: 1 ended, 0 gone.
  virtual Task<Value> ask_end(const Identity& who, CallOptions options) = 0;
  /// The same for a request whose outcome is not known: asks for the end of whatever it may have
  /// left behind, a place in a queue too. It may be asked again as long as there is the Store, when
  /// this is gone too. Empty: such a request is taken back otherwise.
  virtual GiveUp give_up(const Identity&) const { return {}; }
  /// Says how many entries there are from now on, and prolongs. Repeatable. Reply: 1 done, 0 gone.
  virtual Task<Value> ask_recount(const Hold& hold, std::uint32_t entries) = 0;

  /// A certain hold is over and its server has not been told. True: somebody here goes on with it.
  virtual bool pass_on(const std::shared_ptr<Hold>&) { return false; }
  /// A hold is over: released, or lost.
  virtual void ended(const Hold&) {}

 private:
  Store& store_;
  const std::string key_;
};

}  // namespace sluice::lock
