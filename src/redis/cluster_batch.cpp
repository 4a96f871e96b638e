#include "redis/cluster_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <map>

#include "redis/calls.hpp"
#include "redis/cluster_way.hpp"
#include "resp/reply_parser.hpp"
#include "resp/server_words.hpp"
#include "sluice/when_all.hpp"
#include "store/reply_error.hpp"
#include "store/waiter.hpp"

namespace sluice::redis {
namespace {

/// One item on its way.
struct RoutedItem {
  std::size_t item;
  Way way;
  int repeats = 0;
  bool was_sent = false;
  bool has_arrived = false;
};

bool has_arrived(const RoutedItem& one) { return one.has_arrived; }

/// What one node is sent in one round.
struct Part {
  NodePtr node;
  Request request{Request::Kind::batch};
  Batch batch{};                                              // the same, for a DurableLine
  std::vector<std::pair<RoutedItem*, std::size_t>> routed{};  // and which reply is its own
  std::vector<Value> replies{};
  std::optional<Operation> operation{};
  Outcome outcome{};
  std::exception_ptr failure{};

  int slot() const noexcept { return routed.front().first->way.slot(); }
};

void add(Part& part, RoutedItem& routed_item, const Batch::Item& item) {
  static constexpr std::string_view asking[] = {"ASKING"};
  if (routed_item.way.next().asks) {
    part.request.add(asking);
    part.batch.add(Words{asking});
  }
  part.routed.emplace_back(&routed_item, part.request.commands());
  add_item(part.request, item);
  part.batch.add(item);
}

void submit(Part& part, bool is_first, SteadyTime deadline, const CallOptions& options) {
  // The thread that waits reads the replies of the first, and the reactor's those of the others.
  std::optional<Waiter::Scope> nobody;
  if (!is_first) nobody.emplace(nullptr);
  Link& link = part.node->client->link();
  part.replies.resize(part.request.commands());
  part.operation.emplace(part.request, part.replies, deadline, options, &link, part.slot());
  part.operation->redirected = part.routed.front().first->way.next().is_redirected;
  link.submit(*part.operation);
}

std::string text_of(const Error& error) {
  const bool is_unreached = error.effect() == Effect::none;
  return fmt::format("{}{}", is_unreached ? resp::unreached : resp::unanswered, error.message());
}

bool runs_foreign_script(const Batch::Item& item) {
  if (item.script) return !item.script->is_of_sluice;
  const std::vector<std::string_view> words{item.words.begin(), item.words.end()};
  return resp::runs_script(resp::find_command(words));
}

class Round {
 public:
  Round(const Batch& batch, std::list<RoutedItem>& routed, std::vector<Value>& replies)
      : batch_(batch), routed_(routed), replies_(replies) {}

  std::list<Part>& parts() noexcept { return parts_; }

  void gather(const auto& may_go) {
    for (auto& routed_item : routed_) {
      if (routed_item.way.must_pause() || !may_go(routed_item)) continue;
      const auto& node = routed_item.way.next().node;
      if (!node) {
        routed_item.way.found_nobody();
        continue;
      }
      auto part = std::ranges::find(parts_, node, &Part::node);
      if (part == parts_.end()) {
        parts_.emplace_back().node = node;
        part = std::prev(parts_.end());
      }
      add(*part, routed_item, batch_.items()[routed_item.item]);
    }
  }

  void take(Part& part) {
    const auto now = system_clock().steady();
    for (auto& [routed_item, place] : part.routed) {
      routed_item->was_sent |= part.outcome.was_sent;
      if (part.outcome.returned) {
        routed_item->way.returned(now);
        continue;
      }
      if (part.failure) {
        arrive(*routed_item, failed(part.failure));
        continue;
      }
      Value& reply = part.replies[place];
      const auto& item = batch_.items()[routed_item->item];
      const bool foreign = runs_foreign_script(item);
      if (reply.is_error() && is_refusal(reply.as_text(), foreign, routed_item->way.slot())) {
        routed_item->way.refused(*part.node, reply.as_text(), foreign);
        continue;
      }
      const bool again = item.script && is_forgotten_script(reply) &&
                         ++routed_item->repeats <= most_script_repeats;
      if (!again) arrive(*routed_item, std::move(reply));
    }
  }

  void arrive(RoutedItem& routed_item, Value reply) {
    replies_[routed_item.item] = std::move(reply);
    routed_item.has_arrived = true;
  }

 private:
  static Value failed(const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const Error& error) {
      return Value::error(text_of(error));
    }
  }

  const Batch& batch_;
  std::list<RoutedItem>& routed_;
  std::vector<Value>& replies_;
  std::list<Part> parts_;
};

std::string name_of(const Batch::Item& item) {
  const std::vector<std::string_view> words{item.words.begin(), item.words.end()};
  if (!item.script) return name_of_command(words);
  return name_of_call(item.script->name, item.key_count > 0 ? words.front() : std::string_view{});
}

/// The least of what the nodes say of what they were sent; a node that counts none says so of all.
void add_copies(std::optional<Value>& copies, Value reply) {
  if (copies && copies->type() != Value::Type::integer) return;
  if (!copies || reply.type() != Value::Type::integer || reply.as_integer() < copies->as_integer())
    copies = std::move(reply);
}

/// By slot; of those alone whose items may have to wait.
using Turns = std::map<int, Turn>;

void take_turns(Cluster& cluster, const std::list<RoutedItem>& routed, Turns& turns) {
  for (const auto& one : routed)
    if (one.way.next().before || cluster.has_gates())
      turns.try_emplace(one.way.slot(), cluster, one.way.slot(), one.way.next());
}

Turn* turn_of(const RoutedItem& routed_item, Turns& turns) {
  const auto turn = turns.find(routed_item.way.slot());
  return turn == turns.end() ? nullptr : &turn->second;
}

bool must_wait(const RoutedItem& routed_item, Turns& turns) {
  const Turn* const turn = turn_of(routed_item, turns);
  return routed_item.way.next().before || (turn && turn->follows());
}

/// The turns come one after another; then each node of before is asked once, all at the same time.
Task<void> pass_fences(Cluster& cluster, std::list<RoutedItem>& routed, Turns& turns,
                       SteadyTime deadline) {
  for (auto& routed_item : routed) {
    Turn* const turn = turn_of(routed_item, turns);
    if (!turn || !turn->follows()) continue;
    auto waiting = turn->wait(deadline);
    co_await waiting;
    routed_item.way.returned(system_clock().steady());
  }
  std::vector<NodePtr> passed;
  std::vector<Task<void>> fences;
  for (auto& routed_item : routed) {
    const Turn* const turn = turn_of(routed_item, turns);
    const Course& course = routed_item.way.next();
    const NodePtr& before = course.before;
    if (!before || (turn && turn->has_passed(course)) ||
        std::ranges::find(passed, before) != passed.end())
      continue;
    passed.push_back(before);
    fences.push_back(pass_fence(cluster, routed_item.way, deadline));
  }
  auto all = when_all(std::move(fences));
  co_await all;
  if (system_clock().steady() < deadline) co_return;
  for (auto& routed_item : routed)
    if (must_wait(routed_item, turns)) routed_item.way.held_up();
}

Task<void> call_durably_at(Part& part, DurableLine::Wait wait, SteadyTime deadline,
                           CallOptions options) {
  DurableLine::Call call{std::move(part.batch), deadline, options, part.slot()};
  auto calling = call_durably(part.node->client, wait, std::move(call));
  try {
    auto answer = co_await calling;
    part.replies = std::move(answer.replies);
    part.outcome = answer.outcome;
  } catch (...) {
    part.failure = std::current_exception();
  }
}

Task<void> look_soon(Cluster& cluster) {
  cluster.look_soon();
  co_return;
}

/// With all nodes at the same time. `wait`: the item behind the last.
Task<void> exchange(Cluster& cluster, Round& round, Turns& turns,
                    std::optional<DurableLine::Wait> wait, const Batch::Item& last,
                    SteadyTime deadline, CallOptions options) {
  if (wait) {
    std::vector<Task<void>> calls;
    for (auto& part : round.parts()) {
      part.batch.add(last);
      calls.push_back(call_durably_at(part, *wait, deadline, options));
    }
    calls.push_back(look_soon(cluster));  // when the others are on their way
    auto all = when_all(std::move(calls));
    co_await all;
    co_return;
  }
  for (auto& part : round.parts()) submit(part, &part == &round.parts().front(), deadline, options);
  for (auto& part : round.parts())
    for (const auto& [routed_item, place] : part.routed)
      if (Turn* const turn = turn_of(*routed_item, turns)) {
        turn->sent(routed_item->way.next().version);
        turns.erase(routed_item->way.slot());
      }
  for (auto& part : round.parts()) {
    co_await InTurn{part.operation->done};
    part.outcome = {.was_sent = part.operation->was_sent, .returned = part.operation->returned};
    part.failure = part.operation->failure;
  }
}

/// What has become of a batch.
struct Tally {
  std::exception_ptr failure{};  ///< the last
  std::size_t failed = 0;
  std::optional<Value> copies{};
};

/// Waits for what was refused. What has no time for another round arrives.
Task<void> pause(Cluster& cluster, Round& round, std::list<RoutedItem>& routed, const Batch& batch,
                 SteadyTime deadline, Tally& tally) {
  const auto waiting =
      std::ranges::find_if(routed, [](const auto& one) { return one.way.must_pause(); });
  if (waiting == routed.end()) co_return;
  const auto until = Clock::add(system_clock().steady(), waiting->way.pause());
  if (until < deadline) co_await sleep_until(system_clock(), until);
  if (cluster.is_closed()) throw closed(cluster, waiting->was_sent);
  const auto now = system_clock().steady();
  for (auto one = routed.begin(); one != routed.end();) {
    RoutedItem& routed_item = *one++;
    if (!routed_item.way.must_pause()) continue;
    if (until < deadline) {
      routed_item.way.paused(now);
      continue;
    }
    const Error late = overdue(cluster, routed_item.way, name_of(batch.items()[routed_item.item]),
                               routed_item.was_sent);
    tally.failure = std::make_exception_ptr(late);
    ++tally.failed;
    round.arrive(routed_item, Value::error(text_of(late)));
  }
}

}  // namespace

Task<std::vector<Value>> call_batch(ClusterPtr cluster, Batch batch, std::vector<int> slots,
                                    std::optional<DurableLine::Wait> wait, CallOptions options) {
  const auto begin = system_clock().steady();
  const auto deadline =
      deadline_of(cluster->options(), options, wait ? wait->within : std::chrono::milliseconds{0});
  std::vector<Value> replies(batch.size());
  std::list<RoutedItem> routed;
  for (std::size_t i = 0; i < slots.size(); ++i)
    routed.push_back({.item = i, .way = Way{*cluster, slots[i], begin}});
  Tally tally;
  Turns turns;  // of none that ends with WAIT: these have a connection of their own
  for (bool is_first = true; !routed.empty(); is_first = false) {
    if (!wait) take_turns(*cluster, routed, turns);
    // What need not pass a fence does not wait for those that must.
    const auto waits = [&](const RoutedItem& one) { return must_wait(one, turns); };
    const bool fenced = !is_first || std::ranges::all_of(routed, waits);
    if (fenced) co_await pass_fences(*cluster, routed, turns, deadline);
    Round round{batch, routed, replies};
    round.gather([&](const RoutedItem& one) { return fenced || !waits(one); });
    co_await exchange(*cluster, round, turns, wait, batch.items().back(), deadline, options);
    if (fenced) turns.clear();  // also of those that must pause
    for (auto& part : round.parts()) {
      if (part.failure) {
        tally.failure = part.failure;
        tally.failed += part.routed.size();
        cluster->doubt();
      } else if (wait && !part.outcome.returned) {
        add_copies(tally.copies, std::move(part.replies.back()));
      }
      round.take(part);
    }
    std::erase_if(routed, has_arrived);
    co_await pause(*cluster, round, routed, batch, deadline, tally);
    std::erase_if(routed, has_arrived);
  }
  if (tally.failed == slots.size() && tally.failure) std::rethrow_exception(tally.failure);
  if (wait) replies.back() = std::move(tally.copies).value_or(Value::integer(0));
  co_return replies;
}

}  // namespace sluice::redis
