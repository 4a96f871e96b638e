// Bytes: sending what has gathered, reading what is there, and whose thread does it.
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cstring>
#include <system_error>

#include "base/event.hpp"
#include "redis/link.hpp"
#include "resp/server_words.hpp"
#include "sluice/metrics.hpp"
#include "store/waiter.hpp"

namespace sluice::redis {
namespace {

/// Buffers above this are given back after use.
constexpr std::size_t kept_buffer = 1 << 20;

/// How often the reactor's thread reads a full buffer in a row.
constexpr int most_reads = 16;

constexpr std::size_t few_followers = 4;
/// How often a follower in a crowd gives its turn to others before it sleeps.
constexpr int turns_given = 8;

/// The link whose replies this thread is handing out. What is submitted meanwhile is sent at the
/// end, in one write.
thread_local const Link* digesting = nullptr;

class Digesting {
 public:
  explicit Digesting(const Link* link) noexcept : before_(std::exchange(digesting, link)) {}
  ~Digesting() { digesting = before_; }
  Digesting(const Digesting&) = delete;
  Digesting& operator=(const Digesting&) = delete;

 private:
  const Link* const before_;
};

bool is_push_of(const Value& value, std::string_view kind) {
  if (value.type() != Value::Type::push || value.as_items().empty()) return false;
  const Value& first = value.as_items().front();
  return first.is_text() && first.as_text() == kind;
}

std::optional<Hearer::Kind> kind_of_message(const Value& value) {
  const bool is_sharded = is_push_of(value, "smessage");
  if (!is_sharded && !is_push_of(value, "message")) return std::nullopt;
  const auto& items = value.as_items();
  if (items.size() != 3 || !items[1].is_text() || !items[2].is_text()) return std::nullopt;
  return is_sharded ? Hearer::Kind::sharded : Hearer::Kind::classic;
}

bool is_invalidation(const Value& value) { return is_push_of(value, "invalidate"); }

/// What a replica says to a write, also from a script; or a master that becomes one, to those whom
/// it has kept waiting. `request`: null: of a call that was given up.
bool is_of_replica(const Value& reply, const Request* request) {
  if (!reply.is_error()) return false;
  const auto& error = reply.as_text();
  const bool foreign = !request || request->runs_foreign_script();
  if (const auto state = resp::state_told(error, foreign))
    return *state == resp::ServerState::replica || *state == resp::ServerState::demoted;
  // In a script that calls: what comes behind the code says that a server has written it.
  return error.find("READONLY You can't write against a read only") != std::string::npos &&
         error_of_reply(error).errc() == Errc::read_only;
}

}  // namespace

bool Link::is_digesting_here() const noexcept { return digesting == this; }

void Link::flush(Lock& lock) {
  if (writing_ || !is_wired()) return;
  writing_ = true;
  while (is_wired() && !blocked_ && !refusal_ &&
         (sent_of_sending_ < sending_.size() || !out_.empty())) {
    if (sent_of_sending_ == sending_.size()) {
      sending_.clear();
      if (sending_.capacity() > kept_buffer) sending_.shrink_to_fit();
      sending_.swap(out_);
      sent_of_sending_ = 0;
    }
    lock.unlock();
    const auto transfer = socket_->write_some(std::string_view{sending_}.substr(sent_of_sending_));
    count(metrics().redis_writes);
    lock.lock();
    switch (transfer.outcome) {
      case net::Transfer::Outcome::moved:
        sent_of_sending_ += transfer.bytes;
        sent_ += transfer.bytes;
        break;
      case net::Transfer::Outcome::would_block:
        blocked_ = true;
        arm();
        break;
      case net::Transfer::Outcome::closed:
      case net::Transfer::Outcome::failed:
        if (!transfer.is_refused()) {
          lose(transfer);
          break;
        }
        refusal_ = transfer;  // replies, and why, may have come before the end: a reader finds it
        arm();
        break;
    }
  }
  writing_ = false;
  if (state_ == State::lost) reactor_.wake();
}

void Link::drive(Waiter& waiter) {
  const bool can_sleep_here = waiter.wake_descriptor() >= 0;
  {
    Lock lock{mutex_};
    if (waiter.is_woken()) return;
    if (reading_ || !is_open() || !can_sleep_here) return follow(waiter, lock);
    reading_ = true;
    arm();
  }
  while (!waiter.is_woken() && receive(waiter)) {
  }
  stop_reading();
}

void Link::follow(Waiter& waiter, Lock& lock) {
  const bool crowded = followers_.size() >= few_followers;
  followers_.push_back(&waiter);
  arm();
  lock.unlock();
  // In a crowd the core has other callers to run; when the turn comes round the reply is often
  // there, and neither a sleep nor a wake-up was needed (64 threads on 2 cores: twice as many calls
  // a second).
  for (int turn = 0; crowded && turn < turns_given && !waiter.is_woken(); ++turn) ::sched_yield();
  waiter.event().wait();
  lock.lock();
  std::erase(followers_, &waiter);
}

void Link::stop_reading() {
  const Lock lock{mutex_};
  reading_ = false;
  // A follower is woken while the server still works, so that only one thread has to wake when the
  // reply comes. Where many wait, some caller comes back at once, and would only meet it.
  if (!followers_.empty() && followers_.size() <= few_followers) followers_.back()->wake();
  arm();  // should the follower have gone, the reactor's thread reads
  if (state_ == State::lost) reactor_.wake();
}

/// Waits for bytes, or for the waiter to be woken, and digests them. False: the connection is lost.
bool Link::receive(Waiter& waiter) {
  if (!spin_.is_on()) return sleep(waiter) ? digest(socket_->read_some(buffer_)) : true;

  const bool spins = spin_.spins();
  const auto begin = system_clock().steady();
  net::Transfer transfer;
  if (spins) transfer = spin(waiter, begin + spin_.limit());
  if (transfer.outcome == net::Transfer::Outcome::would_block) {
    if (waiter.is_woken() || !sleep(waiter)) return true;
    transfer = socket_->read_some(buffer_);
  }
  spin_.waited(spins, system_clock().steady() - begin);
  return digest(transfer);
}

net::Transfer Link::spin(const Waiter& waiter, SteadyTime end) {
  net::Transfer transfer;
  do {
    transfer = socket_->read_some(buffer_);
  } while (transfer.outcome == net::Transfer::Outcome::would_block && !waiter.is_woken() &&
           system_clock().steady() < end);
  return transfer;
}

/// False: there is nothing to read.
bool Link::sleep(Waiter& waiter) {
  const int wakeup = waiter.wake_descriptor();
  if (!waiter.event().watch(wakeup)) return false;
  pollfd both[] = {{socket_->descriptor(), POLLIN, 0}, {wakeup, POLLIN, 0}};
  ::poll(both, 2, -1);
  waiter.event().unwatch();
  if (both[1].revents != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto drained = ::read(wakeup, &count, sizeof count);
  }
  return both[0].revents != 0;
}

/// Hands out what has been read into buffer_. False: the connection is lost, also where there is no
/// memory for what came: it is not known then which call the next reply answers.
bool Link::digest(net::Transfer transfer) try {
  return take_in(transfer);
} catch (const std::exception& failure) {
  const Lock lock{mutex_};
  inbox_.clear();
  break_off(failure);
  return false;
}

bool Link::take_in(net::Transfer transfer) {
  switch (transfer.outcome) {
    case net::Transfer::Outcome::would_block: {
      const Lock lock{mutex_};
      if (refusal_) lose(*refusal_);
      return is_wired();
    }
    case net::Transfer::Outcome::moved: break;
    case net::Transfer::Outcome::closed:
    case net::Transfer::Outcome::failed: {
      const Lock lock{mutex_};
      lose(refusal_.value_or(transfer));
      return false;
    }
  }
  std::optional<std::string> nonsense;
  std::string_view bytes{buffer_.data(), transfer.bytes};
  try {
    while (auto value = parser_.next(bytes)) inbox_.push_back(std::move(*value));
  } catch (const Error& error) {
    nonsense = error.message();
  }
  const bool is_part = inbox_.empty();
  take_all(nonsense);
  Lock lock{mutex_};
  parts_ += is_part ? 1 : 0;
  refuse_surplus();
  flush(lock);
  return is_wired();
}

void Link::take_all(const std::optional<std::string>& nonsense) {
  const NoBlocking reading{"reads the replies of a Store"};
  const Digesting here{this};
  // On other links nobody has subscribed.
  const auto delivers = [&](const Value& value) {
    return kind_ == Kind::listener && (kind_of_message(value) || is_invalidation(value));
  };
  for (std::size_t i = 0; i < inbox_.size();) {
    Finished finished;
    {
      const Lock lock{mutex_};
      last_heard_ = system_clock().steady();
      pinged_ = false;
      while (i < inbox_.size() && !delivers(inbox_[i])) take_one(inbox_[i++], finished);
      if (i == inbox_.size()) refuse_surplus();  // before who was answered sends the next
    }
    for (const auto& [kind, is_end, channel] : subscribed_)
      is_end ? hearer_.ended(kind, channel) : hearer_.confirm(kind, channel);
    subscribed_.clear();
    for (const auto& [channel, why] : refused_) hearer_.refused(channel, why);
    refused_.clear();
    if (std::exchange(resubscribing_, false)) hearer_.deliver_gap(resubscribed_);
    if (std::exchange(reconnecting_, false)) hearer_.tell_reconnected();
    if (std::exchange(greets_, false)) {
      if (kind_ == Kind::listener) trackers_.connected();
      hearer_.connected(kind_ == Kind::listener);
    }
    finished.complete_all();
    for (; i < inbox_.size() && delivers(inbox_[i]); ++i) deliver(inbox_[i]);
  }
  inbox_.clear();
  if (nonsense) {
    Finished finished;
    {
      const Lock lock{mutex_};
      refuse_reply(*nonsense, finished);
    }
    finished.complete_all();
  }
}

void Link::refuse_surplus() {
  if (is_open() && flight_.empty() && parser_.is_in_reply())
    lose("it sent a reply to no request", Errc::protocol);
}

void Link::deliver(Value& push) {
  auto& items = push.as_items();
  const auto kind = kind_of_message(push);
  if (!kind) return trackers_.deliver(items);
  hearer_.deliver(*kind, {Message::Kind::published, std::move(items[1].as_text()),
                          std::move(items[2].as_text())});
}

void Link::take_one(Value& value, Finished& finished) {
  if (state_ == State::greeting) return take_greeting(value);
  if (value.type() != Value::Type::push) return answer(value, finished);
  if (value.as_items().empty() && hears())  // it was passed over, and may have been a message
    return lose("it sent a push beyond the limits of this client", Errc::protocol);
  // A push answers the command at the front, or no command at all.
  const bool is_answer = !flight_.empty() && is_push_of(value, flight_.front().answered_by);
  note_subscription(value, is_answer);
  if (is_answer) answer(value, finished);
}

void Link::note_subscription(const Value& push, bool is_answer) {
  const auto& items = push.as_items();
  if (items.size() < 2 || !items[0].is_text() || !items[1].is_text()) return;
  std::string_view verb = items[0].as_text();
  const bool is_sharded = verb == "ssubscribe" || verb == "sunsubscribe";
  const auto kind = is_sharded ? Hearer::Kind::sharded : Hearer::Kind::classic;
  if (is_sharded) verb.remove_prefix(1);
  const bool is_end = verb == "unsubscribe";
  // A caller that has given up may have unsubscribed since.
  const bool is_begin = verb == "subscribe" && is_answer && flight_.front().operation;
  if (is_end || is_begin) subscribed_.push_back({kind, is_end, items[1].as_text()});
}

void Link::answer(Value& reply, Finished& finished) {
  if (flight_.empty()) {
    if (is_open()) lose("it sent a reply to no request: " + to_string(reply, 200), Errc::protocol);
    return;
  }
  if (flight_.front().operation && is_unsent(*flight_.front().operation))
    return lose("it sent a reply before the request: " + to_string(reply, 200), Errc::protocol);
  InFlight::Slot& slot = flight_.front();
  if (reply.is_error())
    note_state_of_server(reply, slot.operation ? &slot.operation->request : nullptr);
  if (slot.answered_by == Request::answered_by_ping && !reply.is_error()) slot.replies_left = 1;
  Operation* const operation = slot.operation;
  if (operation) operation->replies[operation->answered++] = std::move(reply);
  if (--slot.replies_left > 0) return;
  drop_front();
  if (operation && !(options_.moving && waits_for_master(*operation))) finished.add(*operation);
  // A reply to a call that was given up says that the server lives; but if one reply was lost, each
  // comes to the call before its own.
  if (operation || flight_.empty()) silent_until_ = SteadyTime::max();
  if (state_ == State::draining && flight_.empty()) lose("it became a replica");
}

/// A replica has executed nothing: where the master is found anew, the call is sent there.
bool Link::waits_for_master(Operation& operation) {
  if (operation.replies.size() != 1 || !is_open() ||
      !is_of_replica(operation.replies.front(), &operation.request))
    return false;
  operation.was_refused = true;
  pending_.insert(std::ranges::find_if_not(pending_, &Operation::was_refused), &operation);
  pending_bytes_ += operation.request.size();
  return true;
}

/// Some errors tell of the server rather than of the call.
void Link::note_state_of_server(const Value& error, const Request* request) {
  // Its scripts are gone: the next call of each brings the text.
  if (error.as_text().starts_with("NOSCRIPT")) known_.clear();
  // After a failover the name or address leads to another server: connect anew, but not for every
  // call. A greeting that asks for the role needs no such pause.
  if (state_ == State::ready && is_of_replica(error, request) &&
      (options_.moving || last_heard_ - ready_since_ >= options_.backoff_max))
    state_ = State::draining;
}

/// Whether bytes may come that have to be read, and no caller is reading.
bool Link::needs_reactor_to_read() const noexcept {
  if (reading_) return false;
  return refusal_ || !is_open() || flight_.count(ReadBy::anybody) > 0 || looks_ ||
         !followers_.empty() || hears() || silent_until_ != SteadyTime::max();
}

/// Tells the reactor what to watch for.
void Link::arm() noexcept {
  if (!is_wired()) return;
  const std::uint32_t wanted =
      EPOLLRDHUP | (needs_reactor_to_read() ? EPOLLIN : 0U) | (blocked_ ? EPOLLOUT : 0U);
  if (wanted == armed_) return;
  armed_ = wanted;
  reactor_.rearm(socket_->descriptor(), *this, wanted);
}

void Link::on_ready(std::uint32_t events) {
  Lock lock{mutex_};
  armed_ = 0;
  if (state_ == State::connecting) return connected(lock);
  if (state_ == State::securing) return secure(lock);
  if (!is_wired()) return;
  if (blocked_ && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
    blocked_ = false;
    flush(lock);
  }
  if (reading_) {  // the end of the connection is the reader's to find, who then arms again
    if (blocked_) arm();
    return;
  }
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) == 0) return arm();
  reading_ = true;
  lock.unlock();
  // Bounded: this thread has the deadlines of all calls to keep.
  for (int reads = 0; reads < most_reads; ++reads) {
    const auto transfer = socket_->read_some(buffer_);
    if (!digest(transfer) || transfer.bytes < buffer_.size()) break;
  }
  stop_reading();
}

}  // namespace sluice::redis
