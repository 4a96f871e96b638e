/// Batches whose writes have to be on replicas: those that end with the same WAIT share a
/// connection of their own, since WAIT speaks of the writes of one connection, and holds it up.
///
/// What comes while one WAIT is under way goes into the next: many batches, one WAIT. They are
/// executed in the order of the calls, so that what takes a request back comes after the request,
/// also when that was given up unanswered.
#pragma once

#include <memory>
#include <string>

#include "redis/link.hpp"
#include "store/combiner.hpp"

namespace sluice::redis {

class Client;

/// How an exchange with a server has ended.
struct Outcome {
  bool was_sent = false;  ///< on an earlier connection, too, and may have taken effect there
  bool returned = false;  ///< no reply: another node has the slot now
};

/// Threads: any.
class DurableLine {
 public:
  struct Wait {
    std::string replicas;
    std::chrono::milliseconds within;
    friend auto operator<=>(const Wait&, const Wait&) = default;
  };
  struct Call {
    Batch batch;  ///< with the WAIT at its end
    CallOptions options;
    int slot = Operation::no_slot;  ///< of an item; a node that has lost it loses the others, too
  };
  struct Answer {
    std::vector<Value> replies;
    Outcome outcome;
  };

  /// `client` has this object.
  DurableLine(Client& client, const Wait& wait, std::shared_ptr<Link> link);

  const std::shared_ptr<Link>& link() const noexcept { return link_; }
  /// The caller keeps the client alive meanwhile.
  Task<Answer> run(Call call) { return calls_.call(std::move(call)); }

 private:
  static constexpr std::size_t most_at_once = 256;

  Task<std::vector<Answer>> send(std::vector<Call> calls);

  Client& client_;
  const Wait wait_;
  const std::shared_ptr<Link> link_;
  Combiner<Call, Answer> calls_;
};

}  // namespace sluice::redis
