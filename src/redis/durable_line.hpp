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
  };

  /// `client` has this object.
  DurableLine(Client& client, const Wait& wait, std::shared_ptr<Link> link);

  const std::shared_ptr<Link>& link() const noexcept { return link_; }
  /// The caller keeps the client alive meanwhile.
  Task<std::vector<Value>> run(Call call) { return calls_.call(std::move(call)); }

 private:
  using Replies = std::vector<std::vector<Value>>;
  static constexpr std::size_t most_at_once = 256;

  Task<Replies> send(std::vector<Call> calls);

  Client& client_;
  const Wait wait_;
  const std::shared_ptr<Link> link_;
  Combiner<Call, std::vector<Value>> calls_;
};

}  // namespace sluice::redis
