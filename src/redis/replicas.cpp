#include "redis/replicas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/random.hpp"
#include "redis/calls.hpp"
#include "sluice/log.hpp"
#include "sluice/metrics.hpp"

namespace sluice::redis {
namespace {

using topology::Endpoint;
using topology::FreshnessQuestion;

/// A replica has this part of a call's time, and no more than it may be behind; the rest is the
/// master's.
constexpr int part_of_time = 4;

}  // namespace

Replicas::Replicas(std::shared_ptr<Client> master, OptionsTo options_to)
    : master_(std::move(master)),
      options_to_(std::move(options_to)),
      reactor_(master_->reactor()),
      freshness_({.max_lag = *master_->options().replica_max_lag,
                  .preferred = static_cast<std::size_t>(random_below(topology::most_followed))}) {}

void Replicas::follow(const std::optional<Endpoint>& master, std::vector<Endpoint> replicas) {
  const std::lock_guard lock{mutex_};
  if (closed_) return;
  std::erase_if(replicas, [&](const Endpoint& one) { return one == master; });
  std::ranges::sort(replicas);
  if (master == master_endpoint_ && replicas == followed_) return;
  if (master != master_endpoint_) {
    freshness_.forget_all();
    master_endpoint_ = master;
  }
  followed_ = std::move(replicas);
  freshness_.follow(followed_);
  std::erase_if(places_, [&](const auto& one) {
    if (std::ranges::binary_search(followed_, one.first)) return false;
    left_.push_back(one.second.line);
    return true;
  });
  has_news_ = true;
  reactor_.wake();
}

std::optional<Replicas::Choice> Replicas::pick(SteadyTime as_of) {
  const auto now = system_clock().steady();
  const std::lock_guard lock{mutex_};
  if (closed_) return std::nullopt;
  if (!freshness_.is_wanted(now)) {
    has_news_ = true;
    reactor_.wake();
  }
  const auto* const replica = freshness_.pick(now, as_of);
  if (!replica) return std::nullopt;
  const auto& place = places_.at(*replica);
  return Choice{*replica, place.line, place.connection};
}

void Replicas::failed(const Choice& choice) {
  const std::lock_guard lock{mutex_};
  freshness_.forget(choice.replica);
}

Task<std::optional<Value>> Replicas::read(std::shared_ptr<Replicas> self, const Request& request,
                                          CallOptions options) {
  const auto choice = self ? self->pick(options.no_older_than) : std::nullopt;
  if (!choice) co_return std::nullopt;
  const auto& server = self->master_->options();
  const auto now = system_clock().steady();
  const auto part = (deadline_of(server, options) - now) / part_of_time;
  const auto patience = std::min<std::chrono::nanoseconds>(part, *server.replica_max_lag);
  Link& link = choice->line->link;
  Value reply;
  Operation operation{request, {&reply, 1}, Clock::add(now, patience), options, &link};
  operation.only_by = choice->connection;
  link.submit(operation);
  co_await operation.done;
  if (operation.failure) self->failed(*choice);
  // A refusal may be of a replica alone, and the master says the others in the same words.
  if (operation.failure || reply.is_error()) co_return std::nullopt;
  count(metrics().redis_replica_reads);
  co_return std::move(reply);
}

void Replicas::close() {
  std::vector<LinePtr> left;
  {
    const std::lock_guard lock{mutex_};
    closed_ = true;
    leave_all();
    left.swap(left_);
  }
  for (const auto& line : left) {
    line->link.close();
    reactor_.remove(line->link);
  }
  reactor_.remove(*this);
}

void Replicas::leave_all() {
  for (const auto& [replica, place] : places_) left_.push_back(place.line);
  places_.clear();
}

SteadyTime Replicas::on_tick(SteadyTime now) {
  std::vector<std::pair<LinePtr, FreshnessQuestion>> questions;
  std::vector<LinePtr> left;
  {
    const std::lock_guard lock{mutex_};
    if (closed_) return SteadyTime::max();
    // Every event of the Store ticks all its sources.
    if (!has_news_ && now < next_tick_) return next_tick_;
    has_news_ = false;
    for (auto& question : freshness_.act(now)) {
      const auto place = question.replica ? places_.find(*question.replica) : places_.end();
      auto line = place == places_.end() ? nullptr : place->second.line;
      questions.emplace_back(std::move(line), std::move(question));
    }
    left.swap(left_);
    next_tick_ = freshness_.wakes();
  }
  for (const auto& line : left) {
    line->link.close();
    reactor_.remove(line->link);
  }
  for (auto& [line, question] : questions) {
    if (question.replica && !line) line = add_line(*question.replica);
    spawn(ask(shared_from_this(), std::move(line), std::move(question)));
  }
  const std::lock_guard lock{mutex_};
  return next_tick_;
}

/// By the reactor's thread.
Replicas::LinePtr Replicas::add_line(const Endpoint& replica) {
  // Without the lock: the cluster, which calls follow() under its own, is asked.
  auto line = std::make_shared<Line>(options_to_(replica), reactor_, Link::Kind::lent);
  const std::lock_guard lock{mutex_};
  if (closed_) {
    line->link.close();
    return line;
  }
  reactor_.add(std::shared_ptr<Link>{line, &line->link});
  if (std::ranges::binary_search(followed_, replica))
    places_[replica] = {.line = line};
  else
    left_.push_back(line);
  return line;
}

/// `line`: null: of the master.
Task<void> Replicas::ask(std::shared_ptr<Replicas> self, LinePtr line, FreshnessQuestion question) {
  static constexpr std::string_view words[] = {"INFO", "replication"};
  Request request;
  request.add(words);
  Value reply;
  Link& link = line ? line->link : self->master_->link();
  Operation operation{request, {&reply, 1}, question.deadline, {.repeatable = true}, &link};
  operation.once = true;
  link.submit(operation);
  co_await operation.done;
  self->take(question, operation, reply);
}

void Replicas::take(const FreshnessQuestion& question, const Operation& operation,
                    const Value& reply) {
  const auto now = system_clock().steady();
  const std::lock_guard lock{mutex_};
  if (closed_) return;
  if (operation.failure) return freshness_.failed(question.id);
  if (question.replica) {
    const auto place = places_.find(*question.replica);
    if (place == places_.end()) return freshness_.failed(question.id);
    // What it has said by another connection, another server has said.
    if (std::exchange(place->second.connection, operation.went_by) != operation.went_by)
      freshness_.forget(*question.replica);
  }
  try {
    freshness_.answered(now, question.id, reply);
  } catch (const Error& error) {
    if (!std::exchange(is_told_, true))
      log(LogLevel::warning, fmt::format("{}: replicas are not read from: {}",
                                         describe(master_->options()), error.message()));
  }
}

}  // namespace sluice::redis
