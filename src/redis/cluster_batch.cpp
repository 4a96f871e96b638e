#include "redis/cluster_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>

#include "redis/calls.hpp"
#include "redis/cluster_way.hpp"
#include "resp/reply_parser.hpp"
#include "sluice/when_all.hpp"
#include "store/reply_error.hpp"
#include "store/waiter.hpp"

namespace sluice::redis {
namespace {

/// One item on its way.
struct Traveller {
  std::size_t item;
  Way way;
  int repeats = 0;
  bool was_sent = false;
};

/// What one node is sent in one round.
struct Part {
  NodePtr node;
  Request request{Request::Kind::batch};
  Batch batch{};                                                 // the same, for a DurableLine
  std::vector<std::pair<Traveller*, std::size_t>> travellers{};  // and which reply is its own
  std::vector<Value> replies{};
  std::optional<Operation> operation{};
  std::exception_ptr failure{};
};

void add(Part& part, Traveller& traveller, const Batch::Item& item) {
  static constexpr std::string_view asking[] = {"ASKING"};
  if (traveller.way.next().asks) {
    part.request.add(asking);
    part.batch.add(Words{asking});
  }
  part.travellers.emplace_back(&traveller, part.request.commands());
  add_item(part.request, item);
  part.batch.add(item);
}

void submit(Part& part, bool is_first, SteadyTime deadline, const CallOptions& options) {
  // The thread that waits reads the replies of the first, and the reactor's those of the others.
  std::optional<Waiter::Scope> nobody;
  if (!is_first) nobody.emplace(nullptr);
  Link& link = part.node->client->link();
  part.replies.resize(part.request.commands());
  part.operation.emplace(part.request, part.replies, deadline, options, &link,
                         part.travellers.front().first->way.slot());
  link.submit(*part.operation);
}

std::string text_of(const Error& error) {
  const bool is_unreached = error.effect() == Effect::none;
  return fmt::format("{}{}", is_unreached ? resp::unreached : resp::unanswered, error.message());
}

class Round {
 public:
  Round(const Batch& batch, std::list<Traveller>& travellers, std::vector<Value>& replies)
      : batch_(batch), travellers_(travellers), replies_(replies) {}

  std::list<Part>& parts() noexcept { return parts_; }

  void gather() {
    for (auto& traveller : travellers_) {
      const auto& node = traveller.way.next().node;
      if (!node) {
        traveller.way.found_nobody();
        continue;
      }
      auto part = std::ranges::find(parts_, node, &Part::node);
      if (part == parts_.end()) {
        parts_.emplace_back().node = node;
        part = std::prev(parts_.end());
      }
      add(*part, traveller, batch_.items()[traveller.item]);
    }
  }

  /// Those that have arrived leave the list.
  void take(Part& part) {
    const auto now = system_clock().steady();
    for (auto& [traveller, place] : part.travellers) {
      if (part.operation) {
        traveller->was_sent |= part.operation->was_sent;
        if (part.operation->returned) {
          traveller->way.returned(now);
          continue;
        }
      }
      if (part.failure) {
        arrive(*traveller, failed(part.failure));
        continue;
      }
      Value& reply = part.replies[place];
      const auto& item = batch_.items()[traveller->item];
      if (reply.is_error() && is_refusal(reply.as_text())) {
        traveller->way.refused(*part.node, reply.as_text());
        continue;
      }
      const bool again =
          item.script && is_forgotten_script(reply) && ++traveller->repeats <= most_script_repeats;
      if (!again) arrive(*traveller, std::move(reply));
    }
  }

  void arrive(Traveller& traveller, Value reply) {
    replies_[traveller.item] = std::move(reply);
    std::erase_if(travellers_, [&](const Traveller& one) { return &one == &traveller; });
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
  std::list<Traveller>& travellers_;
  std::vector<Value>& replies_;
  std::list<Part> parts_;
};

std::string name_of(const Batch::Item& item) {
  const std::vector<std::string_view> words{item.words.begin(), item.words.end()};
  if (!item.script) return name_of_command(words);
  return name_of_call(item.script->name, item.key_count > 0 ? words.front() : std::string_view{});
}

/// The least of what the nodes say.
void add_copies(std::optional<std::int64_t>& copies, const Value& reply) {
  if (reply.type() != Value::Type::integer) return;
  copies = std::min(copies.value_or(reply.as_integer()), reply.as_integer());
}

Task<void> pass_fences(Cluster& cluster, const std::list<Traveller>& travellers) {
  std::vector<NodePtr> passed;
  for (const auto& traveller : travellers) {
    const Course course = traveller.way.next();
    if (!course.before || std::ranges::find(passed, course.before) != passed.end()) continue;
    passed.push_back(course.before);
    co_await pass_fence(cluster, course, traveller.way.slot(), system_clock().steady());
  }
}

Task<void> call_durably_at(Part& part, DurableLine::Wait wait, CallOptions options) {
  auto calling = call_durably(part.node->client, wait, std::move(part.batch), options);
  try {
    part.replies = co_await calling;
  } catch (...) {
    part.failure = std::current_exception();
  }
}

/// With all nodes at the same time. `wait`: the item behind the last.
Task<void> exchange(Round& round, std::optional<DurableLine::Wait> wait, const Batch::Item& last,
                    SteadyTime deadline, CallOptions options) {
  if (wait) {
    std::vector<Task<void>> calls;
    for (auto& part : round.parts()) {
      part.batch.add(last);
      calls.push_back(call_durably_at(part, *wait, options));
    }
    auto all = when_all(std::move(calls));
    co_await all;
    co_return;
  }
  for (auto& part : round.parts()) submit(part, &part == &round.parts().front(), deadline, options);
  for (auto& part : round.parts()) {
    co_await part.operation->done;
    part.failure = part.operation->failure;
  }
}

/// What has become of a batch.
struct Tally {
  std::exception_ptr failure{};  ///< the last
  std::size_t failed = 0;
  std::optional<std::int64_t> copies{};
};

/// Waits for what was refused. What has no time for another round arrives.
Task<void> pause(Cluster& cluster, Round& round, std::list<Traveller>& travellers,
                 const Batch& batch, SteadyTime deadline, Tally& tally) {
  const auto waiting =
      std::ranges::find_if(travellers, [](const auto& one) { return one.way.must_pause(); });
  if (waiting == travellers.end()) co_return;
  const auto until = Clock::add(system_clock().steady(), waiting->way.pause());
  if (until < deadline) co_await sleep_until(system_clock(), until);
  if (cluster.is_closed()) throw closed(cluster, waiting->was_sent);
  const auto now = system_clock().steady();
  for (auto one = travellers.begin(); one != travellers.end();) {
    Traveller& traveller = *one++;
    if (!traveller.way.must_pause()) continue;
    if (until < deadline) {
      traveller.way.paused(now);
      continue;
    }
    const Error late =
        overdue(cluster, traveller.way, name_of(batch.items()[traveller.item]), traveller.was_sent);
    tally.failure = std::make_exception_ptr(late);
    ++tally.failed;
    round.arrive(traveller, Value::error(text_of(late)));
  }
}

}  // namespace

Task<std::vector<Value>> call_batch(ClusterPtr cluster, Batch batch, std::vector<int> slots,
                                    std::optional<DurableLine::Wait> wait, CallOptions options) {
  const auto begin = system_clock().steady();
  const auto deadline =
      deadline_of(cluster->options(), options, wait ? wait->within : std::chrono::milliseconds{0});
  std::vector<Value> replies(batch.size());
  std::list<Traveller> travellers;
  for (std::size_t i = 0; i < slots.size(); ++i)
    travellers.push_back({.item = i, .way = Way{*cluster, slots[i], begin}});
  Tally tally;
  while (!travellers.empty()) {
    co_await pass_fences(*cluster, travellers);
    Round round{batch, travellers, replies};
    round.gather();
    co_await exchange(round, wait, batch.items().back(), deadline, options);
    for (auto& part : round.parts()) {
      if (part.failure) {
        tally.failure = part.failure;
        tally.failed += part.travellers.size();
        cluster->doubt();
      } else if (wait) {
        add_copies(tally.copies, part.replies.back());
      }
      round.take(part);
    }
    co_await pause(*cluster, round, travellers, batch, deadline, tally);
  }
  if (tally.failed == slots.size() && tally.failure) std::rethrow_exception(tally.failure);
  if (wait) replies.back() = Value::integer(tally.copies.value_or(0));
  co_return replies;
}

}  // namespace sluice::redis
