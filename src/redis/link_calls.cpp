// Calls and their ends: taking them, their time, and what becomes of them when the connection is
// lost.
#include <fmt/format.h>
#include <poll.h>

#include <thread>
#include <utility>

#include "base/process.hpp"
#include "redis/link.hpp"
#include "resp/writer.hpp"
#include "sluice/metrics.hpp"
#include "store/reply_error.hpp"
#include "store/waiter.hpp"

namespace sluice::redis {

namespace {

/// How long a reply that no caller waits for may lie in the socket.
constexpr std::chrono::milliseconds unread_for{10};

/// A connection on which nothing came for so long is looked at before a call is sent. Less costs a
/// system call more often.
constexpr std::chrono::milliseconds quiet_for{1};

std::exception_ptr failure(Errc code, const std::string& message, Effect effect) {
  if (effect == Effect::unknown) count(metrics().redis_unknown);
  return std::make_exception_ptr(Error{code, message, effect});
}

}  // namespace

void Link::submit(Operation& operation) {
  auto soonest = operation.deadline;
  Finished finished;
  bool needs_connection = false;
  const int slot = operation.slot;
  bool waits = false;
  // Before the lock: a thread that the child does not have may hold it.
  if (forks_ != fork_count()) {
    finished.fail(operation, std::make_exception_ptr(closed_by_fork()));
    return finished.complete_all();
  }
  // A thread that submits inside get() awaits next, and then drives this link.
  const Waiter* const waiter = Waiter::current();
  if (waiter && waiter->would_drive(*this) && operation.read_by == ReadBy::anybody)
    operation.read_by = ReadBy::caller;
  {
    Lock lock{mutex_};
    hear_first(lock);
    if (auto refused = refusal(operation)) {
      finished.fail(operation, std::move(refused));
    } else if (operation.only_by != 0 &&
               (state_ != State::ready || connections_ != operation.only_by)) {
      finished.fail(operation, failure(Errc::connection, "that connection was lost", Effect::none));
    } else {
      earliest_ = std::min(earliest_, soonest);
      const bool is_ready = state_ == State::ready;
      if (auto failure = accept(operation)) {
        finished.fail(operation, std::move(failure));
      } else if (is_ready) {
        soonest = std::min(soonest, look_at_);
        if (!is_digesting_here()) {
          flush(lock);
          arm();
        }
      } else {
        needs_connection = kind_ != Kind::shared;
        waits = slot != Operation::no_slot && !operation.redirected;
      }
    }
  }
  finished.complete_all();
  if (needs_connection) {
    reactor_.wake();
  } else {
    reactor_.wake_before(soonest);
  }
  if (waits) hearer_.waits(slot);
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

/// Why there is no memory for it; null: it will be answered.
std::exception_ptr Link::accept(Operation& operation) try {
  if (state_ == State::ready) {
    take(operation);
  } else {
    pending_.push_back(&operation);
    pending_bytes_ += operation.request.size();
  }
  return nullptr;
} catch (...) {
  return std::current_exception();
}

/// If it throws, nothing of the call is on its way.
void Link::take(Operation& operation) {
  const auto bytes = out_.size();
  const auto appended = appended_;
  const auto under_way = flight_.size();
  try {
    append(operation);
  } catch (...) {
    out_.resize(bytes);
    appended_ = appended;
    flight_.keep_first(under_way);
    known_.clear();  // the texts of scripts that were not sent
    throw;
  }
}

void Link::append(Operation& operation) {
  // Redis writes to its clients in the opposite order of the first that each of them gets.
  if (operation.messages_first) ping(operation.read_by);
  if (options_.kind == ServerKind::cluster_node) teach(operation);
  const auto before = out_.size();
  operation.request.append_to(out_, known_);
  operation.runs_at = appended_ + 1;
  operation.answered = 0;
  operation.was_refused = false;
  operation.went_by = connections_;
  appended_ += out_.size() - before;
  if (operation.request.commands() == 1) operation.runs_at = appended_;
  flight_.push({&operation, operation.request.commands(), operation.request.answered_by(),
                operation.read_by});
  if (operation.read_by == ReadBy::next_reader && look_at_ == SteadyTime::max())
    look_at_ = system_clock().steady() + unread_for;
  count(metrics().redis_commands, operation.request.commands());
}

/// A node that has lost the slot of the first call with a script refuses that, with the text: the
/// next one would not be executed in its place. A user who may not do this is taught as elsewhere.
void Link::teach(const Operation& operation) {
  const auto before = out_.size();
  const auto lessons = operation.request.append_lessons(out_, known_);
  if (lessons == 0) return;
  appended_ += out_.size() - before;
  flight_.push({nullptr, lessons, {}, operation.read_by});
  count(metrics().redis_commands, lessons);
}

/// What has come while no call was under way is no reply to the next one: that the server has
/// closed, or what it says to nobody.
void Link::hear_first(Lock& lock) {
  if (state_ != State::ready || kind_ == Kind::listener || !flight_.empty() || reading_ ||
      is_digesting_here() || system_clock().steady() - last_heard_ < quiet_for ||
      !net::is_readable(socket_->descriptor()))
    return;
  reading_ = true;
  lock.unlock();
  digest(socket_->read_some(buffer_));
  stop_reading();
  lock.lock();
}

void Link::ping(ReadBy reader) {
  static const auto bytes = resp::command_bytes({"PING"});
  out_ += bytes;
  appended_ += bytes.size();
  flight_.push({nullptr, 1, {}, reader});
  count(metrics().redis_commands);
}

void Link::drop_front() {
  flight_.pop();
  if (look_at_ == SteadyTime::max() || flight_.count(ReadBy::next_reader) > 0) return;
  look_at_ = SteadyTime::max();
  looks_ = false;
}

void Link::send_pending() {
  for (; !pending_.empty(); pending_.pop_front()) take(*pending_.front());
  pending_bytes_ = 0;
}

/// Of what is written just now all may have been sent.
bool Link::is_unsent(const Operation& operation) const noexcept {
  return operation.runs_at > sent_ + (writing_ ? sending_.size() - sent_of_sending_ : 0);
}

bool Link::may_have_run(const Operation& operation, bool in_flight) const noexcept {
  return operation.was_sent || (in_flight && !is_unsent(operation));
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
    if (silent_until_ == SteadyTime::max())
      silent_until_ = Clock::add(now, options_.command_timeout);
  }
  std::erase_if(pending_, [&](Operation* operation) {
    if (now < operation->deadline) {
      earliest_ = std::min(earliest_, operation->deadline);
      return false;
    }
    const auto why = why_unconnected();
    pending_bytes_ -= operation->request.size();
    finished.fail(
        *operation,
        failure(Errc::connection, fmt::format("no connection to {} in time: {}", server_, why),
                may_have_run(*operation, false) ? Effect::unknown : Effect::none));
    return true;
  });
}

std::string Link::why_unconnected() const {
  if (options_.moving && !options_.moving->place().endpoint) return options_.moving->why_not();
  return last_failure_ ? last_failure_->message() : "it is still being connected";
}

void Link::return_calls(const std::function<bool(const Operation&)>& is_elsewhere) {
  Finished finished;
  {
    const Lock lock{mutex_};
    std::erase_if(pending_, [&](Operation* operation) {
      if (operation->slot == Operation::no_slot || !is_elsewhere(*operation)) return false;
      pending_bytes_ -= operation->request.size();
      operation->returned = true;
      finished.add(*operation);
      return true;
    });
  }
  finished.complete_all();
}

/// After a connection was lost: repeats the calls that may be repeated, in their order; fails the
/// others.
void Link::settle(Finished& finished) {
  std::deque<Operation*> again;
  for (; !flight_.empty(); drop_front()) {
    Operation* const operation = flight_.front().operation;
    if (!operation) continue;
    operation->was_sent = may_have_run(*operation, true);
    if (!may_repeat(*operation)) {
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
  const auto place = std::ranges::find_if_not(pending_, &Operation::was_refused);
  pending_.insert(place, again.begin(), again.end());
  std::erase_if(pending_, [&](Operation* operation) {
    if (!operation->once || !last_failure_) return false;
    pending_bytes_ -= operation->request.size();
    finished.fail(*operation, std::make_exception_ptr(*last_failure_));
    return true;
  });
  if (last_failure_ && last_failure_->errc() == Errc::authentication) {
    for (Operation* const operation : pending_)
      finished.fail(*operation,
                    failure(Errc::authentication, last_failure_->message(),
                            may_have_run(*operation, false) ? Effect::unknown : Effect::none));
    pending_.clear();
    pending_bytes_ = 0;
  }
}

bool Link::may_repeat(const Operation& operation) noexcept {
  if (operation.only_by != 0) return false;
  return !operation.was_sent || operation.repeatable || operation.request.only_reads();
}

/// What comes is not RESP, and where the next reply begins is not known. The call that awaited it
/// is sent again once at most: it would end one connection after the other.
void Link::refuse_reply(const std::string& why, Finished& finished) {
  if (!is_open() || flight_.empty() || parser_.is_in_push())
    return lose("it sent something that is not RESP: " + why, Errc::protocol);
  Operation*& odd = flight_.front().operation;
  const auto call = odd ? odd->request.name(odd->answered) : "a call that was given up";
  const auto what = fmt::format("its reply to {} is not RESP: {}", call, why);
  lose(what, Errc::protocol);
  if (!odd) return;
  odd->was_sent = may_have_run(*odd, true);
  if (!std::exchange(odd->met_nonsense, true) && may_repeat(*odd)) return;
  finished.fail(*odd, failure(Errc::protocol, fmt::format("{}: {}", server_, what),
                              odd->was_sent ? Effect::unknown : Effect::none));
  odd = nullptr;
}

/// Another thread that reads may be handing out a reply, after which something is given back.
bool Link::awaits_last_replies() const noexcept {
  if (!is_open()) return false;
  return kind_ == Kind::shared || kind_ == Kind::durable ? !flight_.empty() || reading_
                                                         : flight_.count(ReadBy::next_reader) > 0;
}

/// Replies to calls that no caller waits for are there, or on their way: to releases, and to an
/// acquire whose caller has left. A grant that comes now is given back, and that is waited for,
/// too: else nobody would have the lock until its lease ends.
Link::Last Link::read_last(std::chrono::milliseconds most) {
  bool reads = false;
  {
    const Lock lock{mutex_};
    if (is_digesting_here() || !awaits_last_replies()) return Last::none_awaited;
    reads = !std::exchange(reading_, true);
  }
  if (!reads) {  // another thread is at it
    std::this_thread::sleep_for(most);
    return Last::none_came;
  }
  pollfd socket{socket_->descriptor(), POLLIN, 0};
  const bool came = ::poll(&socket, 1, static_cast<int>(most.count())) > 0;
  if (came) digest(socket_->read_some(buffer_));
  stop_reading();
  return came ? Last::read : Last::none_came;
}

void Link::close() {
  Finished finished;
  {
    const Lock lock{mutex_};
    if (state_ == State::closed) return;
    state_ = State::closed;
    leave_second();
    const auto end = [&](Operation* operation, bool in_flight) {
      if (operation)
        finished.fail(
            *operation,
            failure(Errc::closed, fmt::format("the Store of {} was closed", server_),
                    may_have_run(*operation, in_flight) ? Effect::unknown : Effect::none));
    };
    for (; !flight_.empty(); drop_front()) end(flight_.front().operation, true);
    for (Operation* const operation : pending_) end(operation, false);
    pending_.clear();
    if (socket_) {
      // Not left to ~Socket: a child of fork() that has the descriptor too keeps it in the epoll.
      reactor_.forget(socket_->descriptor());
      socket_->shutdown();
    }
    greeted_.notify_all();
  }
  finished.complete_all();
}

}  // namespace sluice::redis
