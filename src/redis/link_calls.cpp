// Calls and their ends: taking them, their time, and what becomes of them when the connection is
// lost.
#include <fmt/format.h>

#include "base/fork.hpp"
#include "redis/link.hpp"
#include "sluice/metrics.hpp"

namespace sluice::redis {

namespace {

std::exception_ptr failure(Errc code, const std::string& message, Effect effect) {
  if (effect == Effect::unknown) count(metrics().redis_unknown);
  return std::make_exception_ptr(Error{code, message, effect});
}

}  // namespace

void Link::submit(Operation& operation) {
  const auto deadline = operation.deadline;
  Finished finished;
  bool needs_connection = false;
  if (forks_ !=
      fork_count()) {  // before the lock: a thread that the child does not have may hold it
    finished.fail(
        operation,
        failure(Errc::closed, "this Store was opened before fork(); open another in the child",
                Effect::none));
    return finished.complete_all();
  }
  {
    Lock lock{mutex_};
    if (auto refused = refusal(operation)) {
      finished.fail(operation, std::move(refused));
    } else {
      earliest_ = std::min(earliest_, deadline);
      if (state_ == State::ready) {
        take(operation);
        if (!is_digesting_here()) flush(lock);
      } else {
        pending_.push_back(&operation);
        pending_bytes_ += operation.request.size();
        needs_connection = kind_ == Kind::lent;
      }
    }
  }
  finished.complete_all();
  if (needs_connection) {
    reactor_.wake();
  } else {
    reactor_.wake_before(deadline);
  }
}

std::exception_ptr Link::refusal(const Operation& operation) const {
  if (state_ == State::closed)
    return failure(Errc::closed, fmt::format("the Store of {} is closed", server_), Effect::none);
  if (flight_.size() + pending_.size() >= options_.most_calls ||
      out_.size() + pending_bytes_ + operation.request.size() > options_.most_bytes)
    return failure(
        Errc::connection,
        fmt::format("too many calls wait for {}: {} with {} bytes to send; it is too slow or gone",
                    server_, flight_.size() + pending_.size(), out_.size() + pending_bytes_),
        Effect::none);
  return nullptr;
}

void Link::take(Operation& operation) {
  const auto before = out_.size();
  operation.request.append_to(out_, known_);
  operation.starts_at = appended_;
  operation.answered = 0;
  appended_ += out_.size() - before;
  flight_.push({&operation, operation.request.commands(), operation.request.answered_by()});
  count(metrics().redis_commands, operation.request.commands());
}

void Link::send_pending() {
  for (Operation* const operation : pending_) take(*operation);
  pending_.clear();
  pending_bytes_ = 0;
}

bool Link::may_have_run(const Operation& operation, bool in_flight) const noexcept {
  return operation.was_sent || (in_flight && operation.starts_at < sent_);
}

void Link::expire(SteadyTime now, Finished& finished) {
  if (now < earliest_) return;
  earliest_ = SteadyTime::max();
  for (std::size_t i = 0; i < flight_.size(); ++i) {
    Operation*& operation = flight_[i].operation;
    if (!operation) continue;
    if (now < operation->deadline) {
      earliest_ = std::min(earliest_, operation->deadline);
      continue;
    }
    // Its bytes are on their way, or will be: the reply, if it ever comes, finds its place in the
    // order taken.
    finished.fail(
        *operation,
        failure(Errc::timeout, fmt::format("no reply from {} in time", server_), Effect::unknown));
    operation = nullptr;
    if (silent_until_ == SteadyTime::max()) silent_until_ = now + options_.command_timeout;
  }
  std::erase_if(pending_, [&](Operation* operation) {
    if (now < operation->deadline) {
      earliest_ = std::min(earliest_, operation->deadline);
      return false;
    }
    const std::string why =
        last_failure_ ? last_failure_->message() : "it is still being connected";
    pending_bytes_ -= operation->request.size();
    finished.fail(
        *operation,
        failure(Errc::connection, fmt::format("no connection to {} in time: {}", server_, why),
                may_have_run(*operation, false) ? Effect::unknown : Effect::none));
    return true;
  });
}

/// After a connection was lost: repeats what may be repeated, in its order; the rest learns the
/// truth.
void Link::settle(Finished& finished) {
  std::deque<Operation*> again;
  for (; !flight_.empty(); flight_.pop()) {
    Operation* const operation = flight_.front().operation;
    if (!operation) continue;
    operation->was_sent = may_have_run(*operation, true);
    if (operation->was_sent && !operation->repeatable && !operation->request.only_reads()) {
      finished.fail(*operation,
                    failure(Errc::connection,
                            fmt::format("lost the connection to {} before the reply: {}", server_,
                                        last_failure_ ? last_failure_->message() : "closed"),
                            Effect::unknown));
      continue;
    }
    pending_bytes_ += operation->request.size();
    again.push_back(operation);
  }
  pending_.insert(pending_.begin(), again.begin(), again.end());
  if (last_failure_ && last_failure_->errc() == Errc::authentication) {
    for (Operation* const operation : pending_)
      finished.fail(*operation,
                    failure(Errc::authentication, last_failure_->message(),
                            may_have_run(*operation, false) ? Effect::unknown : Effect::none));
    pending_.clear();
    pending_bytes_ = 0;
  }
}

void Link::close() {
  Finished finished;
  {
    const Lock lock{mutex_};
    if (state_ == State::closed) return;
    state_ = State::closed;
    const auto end = [&](Operation* operation, bool in_flight) {
      if (operation)
        finished.fail(
            *operation,
            failure(Errc::closed, fmt::format("the Store of {} was closed", server_),
                    may_have_run(*operation, in_flight) ? Effect::unknown : Effect::none));
    };
    for (; !flight_.empty(); flight_.pop()) end(flight_.front().operation, true);
    for (Operation* const operation : pending_) end(operation, false);
    pending_.clear();
    if (socket_) socket_->shutdown();
    greeted_.notify_all();
  }
  finished.complete_all();
}

}  // namespace sluice::redis
