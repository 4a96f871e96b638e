/// One question to all nodes at once. It is decided as soon as enough of them have answered; the
/// replies of the other nodes are taken in the background.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sluice/store.hpp"

namespace sluice::lock {

/// Threads: any.
class Vote : public std::enable_shared_from_this<Vote> {
 public:
  /// What one node said.
  struct Reply {
    std::optional<Value> value;    ///< none: it failed
    std::optional<Error> failure;  ///< then
  };
  using Replies = std::vector<std::optional<Reply>>;  ///< of each node; none: not yet
  using Nodes = std::vector<Store*>;
  using Ask = std::function<Task<Value>(Store& node)>;
  using Enough = std::function<bool(const Replies&)>;
  using Late = std::function<void(Store& node, const Reply&)>;

  /// Asks every node now. `enough` is called after each reply, one at a time: whether the missing
  /// replies can change nothing.
  static std::shared_ptr<Vote> start(Nodes nodes, const Ask& ask, Enough enough);
  Vote(Nodes nodes, Enough enough);

  /// The replies when they are enough, or complete, or when `until` (of `clock`) has passed.
  Task<Replies> decision(Clock& clock, SteadyTime until);
  /// The replies so far. Those that come later are given to `late`.
  Replies hand_on(Late late);

 private:
  Task<void> ask_one(std::size_t which, Task<Value> asking);
  void note(std::size_t which, Reply reply);

  const Nodes nodes_;
  const Enough enough_;
  std::mutex mutex_;
  Replies replies_;
  std::size_t heard_ = 0;
  Late late_;
  Completion decided_;
};

/// How many nodes replied what.
struct Tally {
  std::size_t yes = 0;
  std::size_t no = 0;
  std::size_t failed = 0;
  std::size_t pending = 0;

  std::size_t silent() const noexcept { return failed + pending; }
};

Tally tally(const Vote::Replies& replies, const std::function<bool(const Value&)>& is_yes);

/// More than half of `nodes`.
constexpr std::size_t majority_of(std::size_t nodes) noexcept { return nodes / 2 + 1; }

/// Whether `need` nodes have said yes, or cannot any more, because too many said no or failed.
bool is_decided(const Tally& tally, std::size_t need) noexcept;

/// A reply, in a word or two.
using InWords = std::function<std::string_view(const Value&)>;

/// What to throw when too few nodes answered: how many failed, and what is known of each.
Error unreachable(const std::string& what, const Vote::Nodes& nodes, const Vote::Replies& replies,
                  const InWords& in_words, Effect effect);

}  // namespace sluice::lock
