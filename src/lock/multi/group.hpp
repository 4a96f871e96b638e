/// Names of one Store that one script takes, each with the wire of a Mutex.
///
///     ask ──> all are held
///      └────> refused: wait in the queue of the first name that is held ──> handed over ──> ask
///                                                                      └──> `until`: give up
///
/// The first question takes all names or none. If a later question is refused again, it keeps the
/// names before the one that is held by another, and hands over the names after it. So each name is
/// waited for at most once more, in their order, in its queue. The question is asked again every
/// third of a lease, which prolongs what is kept.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "lock/hold/hold.hpp"
#include "lock/mutex/wire.hpp"
#include "lock/wait/inbox.hpp"
#include "lock/wait/queued_wait.hpp"

namespace sluice::lock {

using Holds = std::vector<std::shared_ptr<Hold>>;

/// One of the names, for the watchdog.
using Member = MutexWire;

/// Threads: any.
class Group : public std::enable_shared_from_this<Group> {
 public:
  /// Throws Error (bad_argument) for a name that is empty or too long.
  Group(Store& store, const std::vector<std::string>& names, const MutexTerms& terms);

  /// Waits until `until`; without it, asks once. The holds in the order of the names; empty:
  /// refused. Throws Error; what may have come about all the same is taken back in the background.
  Task<Holds> enter(Identity who, std::optional<SteadyTime> until, std::stop_token stop);
  /// Ends all holds of one request, with one script. False: at least one was lost before.
  Task<bool> leave(Holds holds, CallOptions options = {});
  /// The same in the background: sent at once, the reply not waited for. Never throws.
  void leave_in_background(Holds holds) noexcept;

 private:
  Task<Holds> enter_once(Identity who, std::optional<SteadyTime> until, std::stop_token stop);
  struct Reply {
    std::vector<FencingToken> tokens;  ///< of all names; empty: refused
    AcquireReply refusal;
  };
  Task<Reply> ask(Identity who, std::string inbox, bool keeps);
  Reply reply_of(const Value& value) const;
  Task<Holds> ask_or_wait(const Identity& who, std::optional<SteadyTime> until,
                          std::stop_token stop);
  Task<Holds> wait_in_queue(Inbox::Subscription& inbox, const Identity& who, SteadyTime until,
                            std::stop_token stop);
  Holds begin_all(const Identity& who, const std::vector<FencingToken>& tokens, SteadyTime sent,
                  bool queued);
  Task<Value> ask_end(Identity who, CallOptions options, std::string inbox);
  Task<void> leave_and_report(Holds holds);
  std::vector<std::string> words_of_end(const Identity& who, const std::string& inbox) const;
  GiveUp giving_up(const Identity& who) const;
  void give_up(const Identity& who) noexcept;

  Store& store_;
  const MutexTerms terms_;
  const std::shared_ptr<Watchdog> watchdog_;
  const std::shared_ptr<Inboxes> inboxes_;
  const std::shared_ptr<Inbox> inbox_;  // of all the names
  std::vector<std::shared_ptr<Member>> members_;
  std::vector<Names> names_;            // of each of them
  std::vector<std::string_view> keys_;  // of the scripts: four for each name
};

}  // namespace sluice::lock
