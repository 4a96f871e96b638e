#include "lock/simulation/sim_store.hpp"

#include <algorithm>

namespace sluice::simulation {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

constexpr milliseconds command_timeout{3000};
constexpr milliseconds longest_backoff{500};

bool is_renewal(const Batch& batch) {
  const auto& first = batch.items().front();
  return first.script && first.script->name.find("/renew") != std::string_view::npos;
}

}  // namespace

/// One request and its answer.
class SimStore::Call {
 public:
  Batch batch;
  std::string channel;  // to subscribe to; empty: a batch
  bool repeatable = false;
  nanoseconds timeout{};
  bool was_sent = false;
  Clock::TimerId timer = 0;
  std::vector<Value> replies;
  std::optional<Error> failure;
  Completion done;

  bool is_over() const noexcept { return done.is_complete(); }
  bool waits_for_replicas() const {
    return !batch.empty() && !batch.items().back().script &&
           batch.items().back().words.front() == "WAIT";
  }
  void fail(Errc code, Effect effect) {
    failure.emplace(code, "the simulated line failed", effect);
    done.complete();
  }
};

class SimStore::Registration final : public Listener::Registration {
 public:
  explicit Registration(std::function<void()> end) : end_(std::move(end)) {}
  ~Registration() override { end_(); }

 private:
  const std::function<void()> end_;
};

SimStore::SimStore(VirtualClock& world, SimProcess& process, SimServer& server, Journal& journal,
                   const Mutation& mutation, const LineTerms& terms, Dice dice)
    : world_(world),
      process_(process),
      server_(server),
      journal_(journal),
      mutation_(mutation),
      terms_(terms),
      dice_(dice),
      connection_(
          std::make_shared<SimConnection>(world, server, journal, mutation, terms, dice_.split())),
      ready_(true),
      connected_since_(world.steady()) {}

std::size_t SimStore::uncertain() const {
  std::size_t late = connection_ ? connection_->late() : 0;
  for (const auto& connection : earlier_) late += connection->late();
  return unanswered_ + late;
}

// --- calls ---

Task<Value> SimStore::run(Words command, CallOptions options) {
  Batch batch;
  batch.add(command);
  return carry_one(std::move(batch), options);
}

Task<Value> SimStore::run(const Script& script, Words keys, Words args, CallOptions options) {
  Batch batch;
  batch.add(script, keys, args);
  return carry_one(std::move(batch), options);
}

Task<std::vector<Value>> SimStore::run(Batch batch, CallOptions options) {
  return carry(std::move(batch), options);
}

Task<Value> SimStore::carry_one(Batch batch, CallOptions options) {
  auto carrying = carry(std::move(batch), options);
  std::vector<Value> replies = co_await carrying;
  if (replies.at(0).is_error()) throw error_of_reply(replies.at(0).as_text());
  co_return std::move(replies.at(0));
}

Task<std::vector<Value>> SimStore::carry(Batch batch, CallOptions options) {
  const auto call = std::make_shared<Call>();
  call->batch = std::move(batch);
  call->repeatable = options.repeatable || call->batch.items().front().words.front() == "INFO";
  call->timeout = options.timeout.count() > 0 ? options.timeout : command_timeout;
  if (mutation_.hurries_renewals && is_renewal(call->batch)) call->timeout = milliseconds{33};
  auto waiting = await(call);
  co_await waiting;
  co_return std::move(call->replies);
}

Task<void> SimStore::await(CallPtr call) {
  submit(call);
  co_await call->done;
  process_.cancel(call->timer);
  if (call->failure) {
    ++unanswered_;
    throw Error{*call->failure};
  }
}

void SimStore::submit(const CallPtr& call) {
  call->timer = process_.after(call->timeout, [this, call] { time_out(call); });
  if (call->waits_for_replicas()) {
    send_lent(call);
  } else if (ready_) {
    send(call);
  } else {
    pending_.push_back(call);
  }
}

void SimStore::send(const CallPtr& call) {
  call->was_sent = true;
  flight_.push_back(call);
  connection_->send([this, connection = connection_, call] { arrive(connection, call); });
}

void SimStore::send_lent(const CallPtr& call) {
  if (call->is_over()) return;
  if (!server_.is_up()) {
    process_.after(longest_backoff, [this, call] { send_lent(call); });
    return;
  }
  const bool is_good = last_lent_ && !last_lent_->is_cut() && last_lent_->life() == server_.life();
  if (!is_good || mutation_.overtakes)
    last_lent_ = std::make_shared<SimConnection>(world_, server_, journal_, mutation_, terms_,
                                                 dice_.split());
  const auto connection = last_lent_;
  call->was_sent = true;
  lent_.push_back({connection, call});
  connection->send([this, connection, call] {
    connection->execute(call->batch, [this, connection, call](const std::vector<Value>& replies) {
      process_.reach([=, this] {
        std::erase_if(lent_, [&](const Lent& lent) { return lent.call == call; });
        if (std::ranges::find(earlier_, connection) == earlier_.end())
          earlier_.push_back(connection);
        if (call->is_over()) return;
        call->replies = replies;
        call->done.complete();
      });
    });
  });
}

void SimStore::arrive(const SimConnectionPtr& connection, const CallPtr& call) {
  const auto reply = [this, connection, call](const std::vector<Value>& replies) {
    process_.reach([=, this] { answer(connection, call, replies); });
  };
  if (call->channel.empty()) return connection->execute(call->batch, reply);
  if (mutation_.subscribes_late) {
    world_.after(milliseconds{100}, [this, connection, channel = call->channel] {
      subscribe_at(connection, channel);
    });
  } else {
    subscribe_at(connection, call->channel);
  }
  connection->say([reply] { reply({}); });
}

void SimStore::answer(const SimConnectionPtr& connection, const CallPtr& call,
                      const std::vector<Value>& replies) {
  if (connection != connection_) return;
  std::erase(flight_, call);
  if (call->is_over()) return;
  call->replies = replies;
  if (std::ranges::any_of(replies, &Value::is_error)) ++unanswered_;
  if (!call->channel.empty() && channels_.contains(call->channel))
    channels_[call->channel].confirmed = true;
  call->done.complete();
}

void SimStore::time_out(const CallPtr& call) {
  if (call->is_over()) return;
  journal_.note("{}: a call times out", process_.name());
  std::erase(pending_, call);
  call->fail(call->was_sent ? Errc::timeout : Errc::connection,
             call->was_sent ? Effect::unknown : Effect::none);
}

// --- channels ---

Task<Listener> SimStore::listen(std::string channel, MessageHandler handler) {
  return subscribe(std::move(channel), std::move(handler));
}

Task<Listener> SimStore::subscribe(std::string channel, MessageHandler handler) {
  const auto shared = std::make_shared<const MessageHandler>(std::move(handler));
  channels_[channel].handlers.push_back(shared);
  Listener listener{
      std::make_unique<Registration>([this, channel, shared] { remove(channel, shared); })};
  const auto call = std::make_shared<Call>();
  call->channel = channel;
  call->repeatable = true;
  call->timeout = command_timeout;
  auto waiting = await(call);
  co_await waiting;
  co_return listener;
}

void SimStore::remove(const std::string& channel, const Handler& handler) {
  auto& handlers = channels_[channel].handlers;
  std::erase(handlers, handler);
  if (!handlers.empty()) return;
  channels_.erase(channel);
  if (!ready_) return;
  connection_->send([connection = connection_, channel] { connection->unsubscribe(channel); });
}

void SimStore::subscribe_at(const SimConnectionPtr& connection, const std::string& channel) {
  connection->subscribe(
      channel, [this, connection = std::weak_ptr{connection}](const Message& message) {
        process_.reach([this, connection, message] { hear(connection.lock(), message); });
      });
}

void SimStore::hear(const SimConnectionPtr& connection, const Message& message) {
  if (connection == connection_ && ready_) deliver(message);
}

void SimStore::deliver(const Message& message) {
  const auto found = channels_.find(message.channel);
  if (found == channels_.end()) return;
  const auto handlers = found->second.handlers;
  for (const auto& handler : handlers) (*handler)(message);
}

Listener SimStore::on_reconnect(std::function<void()> handler) {
  const auto shared = std::make_shared<const std::function<void(const Message&)>>(
      [handler = std::move(handler)](const Message&) { handler(); });
  watchers_.push_back(shared);
  return Listener{
      std::make_unique<Registration>([this, shared] { std::erase(watchers_, shared); })};
}

// --- callbacks ---

/// One after another on a thread of their own; where none blocks, that is as good as at once.
void SimStore::call_back(std::function<void()> callback) noexcept {
  if (callbacks_blocked_until_ == SteadyTime::min()) return Store::call_back(std::move(callback));
  callbacks_.push_back(std::move(callback));
  run_callbacks();
}

void SimStore::run_callbacks() {
  if (callbacks_.empty() || std::exchange(calls_back_, true)) return;
  process_.at(std::max(callbacks_blocked_until_, process_.steady()), [this] {
    calls_back_ = false;
    const auto callback = std::move(callbacks_.front());
    callbacks_.pop_front();
    Store::call_back(callback);
    run_callbacks();
  });
}

void SimStore::block_callbacks(std::chrono::nanoseconds time) {
  journal_.note("{}: a callback blocks", process_.name());
  if (mutation_.calls_back_inside) return process_.block(time);
  callbacks_blocked_until_ = process_.steady() + time;
}

// --- the connection ---

void SimStore::lose(bool all) {
  while (all && !lent_.empty()) lose_lent(0);
  if (!connection_ || connection_->is_cut()) return;
  journal_.note("{}: its connection is cut", process_.name());
  connected_since_ = SteadyTime::max();
  const auto connection = connection_;
  world_.after(connection->cut(),
               [this, connection] { process_.reach([this, connection] { notice(connection); }); });
}

void SimStore::lose_one_lent() {
  if (!lent_.empty()) lose_lent(dice_.below(lent_.size()));
}

void SimStore::lose_lent(std::size_t place) {
  journal_.note("{}: a lent connection is cut", process_.name());
  const auto connection = lent_[place].connection;
  std::vector<CallPtr> calls;
  for (const auto& lent : lent_)
    if (lent.connection == connection) calls.push_back(lent.call);
  std::erase_if(lent_, [&](const Lent& lent) { return lent.connection == connection; });
  if (std::ranges::find(earlier_, connection) == earlier_.end()) earlier_.push_back(connection);
  world_.after(connection->cut(), [this, calls] {
    process_.reach([this, calls] {
      for (const auto& call : calls) {
        if (call->is_over()) continue;
        if (call->repeatable) {
          send_lent(call);
        } else {
          call->fail(Errc::connection, Effect::unknown);
        }
      }
    });
  });
}

void SimStore::lose_slots() {
  if (!connection_ || connection_->is_cut()) return;
  connection_->end_subscriptions();
  connection_->say([this, connection = connection_] {
    process_.reach([this, connection] {
      if (connection == connection_)
        process_.after(dice_.upto(longest_backoff), [this] { subscribe_again(); });
    });
  });
}

/// Those that a new connection has to subscribe.
std::vector<std::string> SimStore::confirmed_channels() const {
  std::vector<std::string> channels;
  for (const auto& [name, channel] : channels_)
    if (channel.confirmed) channels.push_back(name);
  return channels;
}

/// At the new owner of the slots. What was published meanwhile is lost.
void SimStore::subscribe_again() {
  if (!ready_) return;  // connect() does
  const std::vector<std::string> channels = confirmed_channels();
  connection_->send([this, connection = connection_, channels] {
    for (const auto& channel : channels) subscribe_at(connection, channel);
    connection->say([this, connection, channels] {
      process_.reach([=, this] {
        if (connection == connection_) greeted(connection, channels);
      });
    });
  });
}

void SimStore::die() {
  lose();
  if (connection_) connection_->close();
}

void SimStore::notice(const SimConnectionPtr& connection) {
  if (connection != connection_) return;
  journal_.note("{}: notices that its connection is gone", process_.name());
  life_before_ = connection->life();
  earlier_.push_back(std::exchange(connection_, nullptr));
  ready_ = false;
  std::deque<CallPtr> again;
  for (const auto& call : std::exchange(flight_, {})) {
    if (call->is_over()) continue;
    if (call->repeatable) {
      again.push_back(call);
    } else {
      call->fail(Errc::connection, Effect::unknown);
    }
  }
  pending_.insert(pending_.begin(), again.begin(), again.end());
  connect_later();
}

void SimStore::connect_later() {
  process_.after(milliseconds{1} + dice_.upto(longest_backoff), [this] { connect(); });
}

void SimStore::connect() {
  if (!server_.is_up()) return connect_later();
  connection_ =
      std::make_shared<SimConnection>(world_, server_, journal_, mutation_, terms_, dice_.split());
  const std::vector<std::string> channels = confirmed_channels();
  connection_->send([this, connection = connection_, channels] {
    for (const auto& channel : channels) subscribe_at(connection, channel);
    connection->say([this, connection, channels] {
      process_.reach([=, this] { greeted(connection, channels); });
    });
  });
}

/// What came before is older than the gap that is told now.
void SimStore::greeted(const SimConnectionPtr& connection,
                       const std::vector<std::string>& channels) {
  if (connection != connection_) return;
  journal_.note("{}: is connected again", process_.name());
  ready_ = true;
  if (!connection->is_cut()) connected_since_ = world_.steady();
  for (const auto& channel : channels)
    if (!channels_.contains(channel))  // nobody listens any more, since it was asked for
      connection_->send([connection, channel] { connection->unsubscribe(channel); });
  for (const auto& call : std::exchange(pending_, {})) send(call);
  if (!mutation_.hides_gaps)
    for (const auto& channel : channels)
      deliver({.kind = Message::Kind::gap, .channel = channel, .payload = {}});
  const auto watchers = watchers_;
  for (const auto& watcher : watchers) (*watcher)({});
}

}  // namespace sluice::simulation
