/// The wait in a queue on the server until the hold is given: all synchronizers wait by this.
///
///     ask ──> granted
///      └────> refused, and in the queue ──> a grant in the inbox: granted
///               ^                     ├───> a call to look, or it is time to look (see Inbox),
///               └─────── ask ─────────┘     or a message of a foreign holder
///                                     └───> the time is over, or `wanted` says no
///
/// A grant that comes by message began at a time of the server's clock. The last reply ties that
/// clock to ours: the server gave it after we had sent the request (Inbox::time_of_server). Since
/// then the two may have run at speeds as different as the margin allows.
#pragma once

#include <functional>
#include <optional>

#include "lock/hold/hold.hpp"
#include "lock/wait/acquire_reply.hpp"
#include "lock/wait/inbox.hpp"
#include "lock/wait/waiting.hpp"

namespace sluice::lock {

class QueuedWait {
 public:
  /// Asks for the hold, and for a place in the queue if it is refused. Repeated calls are copies of
  /// one request: that of the subscription. `came`: AcquireReply::came of the first refusal, for
  /// the old place in the queue where the ticket was lost; 0: there was none.
  using Ask = std::function<Task<AcquireReply>(std::uint64_t came)>;

  /// `terms`: of a hold that a request is granted. `asks_again`: each grant that comes by message
  /// is confirmed by another request; else only that of which a good part may be over. The box must
  /// outlive the QueuedWait.
  QueuedWait(Inbox::Subscription& box, const Terms& terms, bool asks_again, Ask ask)
      : box_(box), terms_(terms), asks_again_(asks_again), ask_(std::move(ask)) {}

  /// A reply that came already, to a request sent at `sent`.
  void heard(const AcquireReply& answer, SteadyTime sent);

  /// Until granted, or `until` (steady), or `wanted` says no, which is asked after each
  /// InboxMessage::recheck. Empty: not granted; the caller gives up the place in the queue. Throws
  /// what asking throws, an outage only at `until`; the place may be there all the same.
  Task<std::optional<Grant>> stand(SteadyTime until, std::function<bool()> wanted);
  /// Whether the last grant came by message: for less than a lease, and to be confirmed soon.
  bool was_handed_over() const noexcept { return handed_over_; }

 private:
  struct Heard {
    AcquireReply answer;
    SteadyTime sent;
  };
  class Asking;
  Task<bool> ask(Patience& patience, SteadyTime until, const std::function<bool()>& wanted);
  Task<bool> listen_to_foreigners(SteadyTime until);
  Grant grant_of(const InboxMessage& call) const;
  std::optional<Grant> take_grant(const InboxMessage& call, SteadyTime now) const;
  SteadyTime next_look(SteadyTime now) const;

  Inbox::Subscription& box_;
  const Terms terms_;
  const bool asks_again_;
  const Ask ask_;
  std::optional<Heard> heard_;
  std::uint64_t came_ = 0;
  ListenerBesideStrangers foreigners_;
  std::string foreign_channel_;  // that they are heard on
  bool refused_ = false;         // at least once: what is granted since was perhaps not heard
  bool handed_over_ = false;
};

}  // namespace sluice::lock
