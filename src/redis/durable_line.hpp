/// Batches whose writes have to be on replicas: those that end with the same WAIT share a
/// connection of their own, since WAIT speaks of the writes of one connection, and holds it up.
///
/// What comes while one WAIT is under way goes into the next: many batches, one WAIT, and none
/// where no caller waits for a reply. They are executed in the order of the calls, so that what
/// takes a request back comes after the request, also when that was given up unanswered.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
    SteadyTime deadline;
    CallOptions options;
    int slot = Operation::no_slot;  ///< of an item; a node that has lost it loses the others, too
  };
  struct Answer {
    std::vector<Value> replies;
    Outcome outcome;
  };

  DurableLine(const Wait& wait, std::shared_ptr<Link> link);

  const std::shared_ptr<Link>& link() const noexcept { return link_; }
  /// By the deadline of the call, whatever others wait for; the line goes on with what was sent.
  /// `client` has `self`.
  static Task<Answer> run(std::shared_ptr<Client> client, std::shared_ptr<DurableLine> self,
                          Call call);

 private:
  static constexpr std::size_t most_at_once = 256;

  enum class Stage : std::uint8_t { waits, sent, left };
  struct Caller {
    Caller(Driver* driver, Call made) : call(std::move(made)), done(driver) {}
    /// Unless it has passed to another stage before. The one that it is in.
    Stage pass_to(Stage next) noexcept {
      auto before = Stage::waits;
      return stage.compare_exchange_strong(before, next) ? next : before;
    }

    const Call call;
    std::atomic<Stage> stage{Stage::waits};
    SteadyTime ends{};  ///< once it is sent: what it travels in
    Answer answer;
    std::exception_ptr failure;
    Completion done;
  };
  using CallerPtr = std::shared_ptr<Caller>;

  static Task<void> attend(std::shared_ptr<Client> client, std::shared_ptr<DurableLine> self,
                           CallerPtr caller);
  Task<std::vector<Answer>> send(std::vector<CallerPtr> callers);

  const Wait wait_;
  const std::shared_ptr<Link> link_;
  Combiner<CallerPtr, Answer> calls_;
};

}  // namespace sluice::redis
