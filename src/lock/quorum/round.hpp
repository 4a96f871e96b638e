/// One question to all nodes at once: it is decided as soon as enough of them have answered, and
/// the others are heard in the background.
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
class Round : public std::enable_shared_from_this<Round> {
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

  /// Asks every node now. `enough` is asked after each reply, one at a time: whether the rest would
  /// change nothing.
  static std::shared_ptr<Round> start(Nodes nodes, const Ask& ask, Enough enough);
  Round(Nodes nodes, Enough enough);

  /// What has been said when it was enough, or all, or `until` (of `clock`) passed.
  Task<Replies> decision(Clock& clock, SteadyTime until);
  /// What has been said so far; whatever comes later is given to `late`.
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

/// What counts of some replies.
struct Tally {
  std::size_t yes = 0;
  std::size_t no = 0;
  std::size_t failed = 0;
  std::size_t pending = 0;

  std::size_t silent() const noexcept { return failed + pending; }
};

Tally tally(const Round::Replies& replies, const std::function<bool(const Value&)>& is_yes);

/// More than half of `nodes`.
constexpr std::size_t majority_of(std::size_t nodes) noexcept { return nodes / 2 + 1; }

/// Whether `need` have said yes, or so many no, or so many failed, that they cannot.
bool is_decided(const Tally& tally, std::size_t need) noexcept;

/// An answer, in a word or two.
using InWords = std::function<std::string_view(const Value&)>;

/// Too few nodes answered: how many of them failed, and what is known of each.
Error unreachable(const std::string& what, const Round::Nodes& nodes, const Round::Replies& replies,
                  const InWords& in_words, Effect effect);

}  // namespace sluice::lock
