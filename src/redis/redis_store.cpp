#include "redis/redis_store.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "base/event.hpp"
#include "base/random.hpp"
#include "base/url.hpp"
#include "redis/calls.hpp"
#include "redis/master_finder.hpp"
#include "redis/replicas.hpp"
#include "resp/replica_reads.hpp"
#include "sluice/log.hpp"
#include "store/reply_error.hpp"
#include "store/spawn_if_possible.hpp"

namespace sluice::redis {
namespace {

using ClientPtr = std::shared_ptr<Client>;
using std::chrono::milliseconds;

// The coroutines below hold the Client themselves: the Store may be gone before they end.

Task<Value> call(ClientPtr client, Request request, CallOptions options) {
  const auto deadline = deadline_of(client->options(), options);
  bool was_sent = false;
  for (int repeat = 0;; ++repeat) {
    Value reply;
    Operation operation{request, {&reply, 1}, deadline, options, &client->link()};
    client->link().submit(operation);
    co_await operation.done;
    if (operation.failure) std::rethrow_exception(operation.failure);
    was_sent |= operation.was_sent;
    // A forgotten script was not executed; the next time it travels with its text.
    if (request.has_script() && is_forgotten_script(reply) && repeat < most_script_repeats)
      continue;
    co_return checked(request, std::move(reply), was_sent);
  }
}

/// A command that a replica may answer, too.
Task<Value> read(ClientPtr client, std::shared_ptr<Replicas> replicas, Request request,
                 CallOptions options) {
  if (client->is_of_parent()) throw closed_by_fork();
  const auto begun = system_clock().steady();
  auto reading = Replicas::read(std::move(replicas), request, options);
  auto reply = co_await reading;
  if (reply) co_return std::move(*reply);
  auto calling = call(client, std::move(request), rest_of(client->options(), options, begun));
  co_return co_await calling;
}

Task<Value> call_blocking(ClientPtr client, Request request, milliseconds blocks_for,
                          CallOptions options) {
  const auto deadline = deadline_of(client->options(), options, blocks_for);
  auto borrowing = client->borrow(deadline_of(client->options(), options));
  Loan loan{client, co_await borrowing};
  Value reply;
  const auto outcome =
      co_await exchange(loan.link(), request, std::span{&reply, 1}, deadline, options);
  co_return checked(request, std::move(reply), outcome.was_sent);
}

Task<std::vector<Value>> call_batch(ClientPtr client, Batch batch, Request request,
                                    CallOptions options) {
  const auto deadline = deadline_of(client->options(), options);
  auto exchanged =
      exchange_batch(client->link(), std::move(batch), std::move(request), deadline, options);
  auto answer = co_await exchanged;
  co_return std::move(answer.replies);
}

Task<std::vector<Value>> call_durable_batch(ClientPtr client, DurableLine::Wait wait, Batch batch,
                                            CallOptions options) {
  const auto deadline = deadline_of(client->options(), options, wait.within);
  auto calling = call_durably(std::move(client), wait, {std::move(batch), deadline, options});
  auto answer = co_await calling;
  co_return std::move(answer.replies);
}

Task<void> subscribe(ClientPtr client, std::string verb, std::string channel) {
  const std::string_view words[] = {verb, channel};
  Request request;
  request.add(words);
  request.set_answered_by(verb == "SUBSCRIBE" ? "subscribe" : "unsubscribe");
  Value reply;
  co_await exchange(client->listener(), request, std::span{&reply, 1},
                    deadline_of(client->options(), {}), {.repeatable = true});
  checked(request, std::move(reply), false);
}

/// The server forbids a channel that it had subscribed: it is asked again until it allows it, or
/// nobody listens any more. Then what was missed is told as a gap.
Task<void> subscribe_anew(std::weak_ptr<Client> weak, std::string channel, Backoff pauses) {
  for (;;) {
    co_await sleep_until(system_clock(), system_clock().steady() + pauses.next());
    const auto client = weak.lock();
    if (!client) co_return;
    try {
      if (client->channels().is_silent(channel)) {
        auto subscribing = subscribe(client, "SUBSCRIBE", channel);
        co_await subscribing;
      }
      client->channels().deliver_gap({channel});
      co_return;
    } catch (const Error& error) {
      if (error.errc() == Errc::closed) co_return;
    }
  }
}

/// Told by a greeting: the channel's handlers hear nothing any more.
void take_refusal(const std::weak_ptr<Client>& weak, const std::string& channel,
                  const std::string& why) {
  const auto client = weak.lock();
  if (!client) return;
  const auto& options = client->options();
  log(LogLevel::warning, fmt::format("{}: channel '{}' is not subscribed any more: {}",
                                     describe(options), channel, why));
  constexpr int patience = 30;
  spawn(subscribe_anew(weak, channel, {options.backoff_max, options.backoff_max * patience}));
}

class Registration final : public Listener::Registration {
 public:
  Registration(ClientPtr client, std::string channel, MessageHandler function)
      : client_(std::move(client)),
        channel_(std::move(channel)),
        handler_(std::make_shared<Handler>(std::move(function))),
        needs_subscribing_(client_->channels().add(channel_, handler_)) {}

  ~Registration() override {
    if (client_->is_of_parent()) return;
    // Whether the server is asked, and confirms, does not matter: a late message finds no handler.
    client_->channels().remove(channel_, *handler_, [this]() noexcept {
      spawn_if_possible([this] { return subscribe(client_, "UNSUBSCRIBE", channel_); });
    });
    handler_->end();
  }

  bool needs_subscribing() const noexcept { return needs_subscribing_; }

 private:
  const ClientPtr client_;
  const std::string channel_;
  const std::shared_ptr<Handler> handler_;
  const bool needs_subscribing_;
};

class Tracking final : public Listener::Registration {
 public:
  Tracking(ClientPtr client, std::string prefix, MessageHandler function)
      : client_(std::move(client)),
        tracker_(std::make_shared<Trackers::Tracker>(std::move(prefix), std::move(function))) {
    client_->trackers().add(tracker_);
  }
  ~Tracking() override {
    if (client_->is_of_parent()) return;
    client_->trackers().remove(*tracker_);
    tracker_->handler.end();
  }

 private:
  const ClientPtr client_;
  const std::shared_ptr<Trackers::Tracker> tracker_;
};

/// Calls its function when the link is connected again.
class Reconnection final : public Listener::Registration {
 public:
  Reconnection(ClientPtr client, std::function<void()> function)
      : client_(std::move(client)),
        handler_(std::make_shared<Handler>(
            [function = std::move(function)](const Message&) { function(); })) {
    client_->channels().add_watcher(handler_);
  }
  ~Reconnection() override {
    if (client_->is_of_parent()) return;
    client_->channels().remove_watcher(*handler_);
    handler_->end();
  }

 private:
  const ClientPtr client_;
  const std::shared_ptr<Handler> handler_;
};

Task<Listener> listen_on(ClientPtr client, std::string channel, MessageHandler function) {
  if (client->is_of_parent()) throw closed_by_fork();
  auto registration = std::make_unique<Registration>(client, channel, std::move(function));
  if (registration->needs_subscribing()) co_await subscribe(client, "SUBSCRIBE", channel);
  co_return Listener{std::move(registration)};
}

const Script& guarded(const Script& script) { return script.guarded ? *script.guarded : script; }

Batch guarded(const Batch& batch) {
  Batch all;
  for (auto item : batch.items()) {
    if (item.script) item.script = &guarded(*item.script);
    all.add(std::move(item));
  }
  return all;
}

class RedisStore final : public Store {
 public:
  explicit RedisStore(ClientPtr client, std::shared_ptr<MasterFinder> finder = nullptr,
                      std::shared_ptr<Replicas> replicas = nullptr)
      : client_(std::move(client)), finder_(std::move(finder)), replicas_(std::move(replicas)) {
    client_->trackers().on_stale = [weak = std::weak_ptr{client_}] {
      if (auto self = weak.lock()) spawn(ask_for_changes(std::move(self)));
    };
    client_->channels().on_refused = [weak = std::weak_ptr{client_}](const auto& channel,
                                                                     const auto& why) {
      take_refusal(weak, channel, why);
    };
  }
  ~RedisStore() override {
    // A child of fork() has neither the thread nor a claim on the connection; the memory stays with
    // the lost thread.
    if (client_->is_of_parent()) return;
    if (finder_) finder_->close();
    if (replicas_) replicas_->close();
    client_->close();
  }

  using Store::run;

  Task<Value> run(Words command, CallOptions options) override {
    const Needs needs = needs_of(command);
    Request request;
    request.add(command);
    if (needs.own_connection)
      return call_blocking(client_, std::move(request), needs.blocks_for, options);
    if (replicas_ && options.read_from == ReadFrom::replica &&
        resp::may_read_from_replica(command, false))
      return read(client_, replicas_, std::move(request), options);
    return call(client_, std::move(request), options);
  }

  Task<Value> run(const Script& script, Words keys, Words args, CallOptions options) override {
    Request request;
    request.add(client_->link().is_of_proxy() ? guarded(script) : script, keys, args);
    return call(client_, std::move(request), options);
  }

  Task<std::vector<Value>> run(Batch batch, CallOptions options) override {
    if (batch.empty()) return Task<std::vector<Value>>::ready();
    const auto wait = replica_wait_of(batch);
    if (client_->link().is_of_proxy()) batch = guarded(batch);
    Request request{Request::Kind::batch};
    for (std::size_t i = 0; i < batch.size() - (wait ? 1 : 0); ++i)
      add_item(request, batch.items()[i]);
    if (wait) return call_durable_batch(client_, *wait, std::move(batch), options);
    return call_batch(client_, std::move(batch), std::move(request), options);
  }

  Task<Listener> subscribe(std::string channel, MessageHandler handler) override {
    return listen_on(client_, std::move(channel), std::move(handler));
  }
  Listener watch_connection(std::function<void()> handler) override {
    return Listener{std::make_unique<Reconnection>(client_, std::move(handler))};
  }
  Listener track(std::string prefix, MessageHandler handler) override {
    if (client_->is_of_parent()) throw closed_by_fork();
    return Listener{std::make_unique<Tracking>(client_, std::move(prefix), std::move(handler))};
  }
  Task<Listener> listen(std::string channel, MessageHandler handler) override {
    return client_->callbacks().listen(
        std::move(handler),
        [client = client_, channel = std::move(channel)](MessageHandler deliver) {
          return listen_on(client, channel, std::move(deliver));
        });
  }
  Listener on_reconnect(std::function<void()> handler) override {
    return client_->callbacks().watch(
        std::move(handler), [this](auto deliver) { return watch_connection(std::move(deliver)); });
  }
  void call_back(std::function<void()> callback) noexcept override {
    client_->callbacks().call(std::move(callback));
  }

  Clock& clock() noexcept override { return system_clock(); }
  Driver* driver() noexcept override { return &client_->link(); }
  Driver* message_driver() noexcept override { return &client_->listener(); }
  std::string describe() const override { return redis::describe(client_->options()); }

 private:
  const ClientPtr client_;
  // Of a Store whose master is found by Sentinels; and if it may read from its replicas.
  const std::shared_ptr<MasterFinder> finder_;
  const std::shared_ptr<Replicas> replicas_;
};

}  // namespace

std::unique_ptr<Store> open_redis(RedisOptions options) {
  NoBlocking::check("opening a Store");
  auto client = std::make_shared<Client>(std::move(options));
  auto store = std::make_unique<RedisStore>(client);
  client->start(client);
  client->link().wait_for_greeting();
  return store;
}

std::unique_ptr<Store> open_sentinel(SentinelStoreOptions options) {
  NoBlocking::check("opening a Store");
  const bool is_secure = options.server.tls != nullptr;
  std::vector<std::string> sentinels;
  for (const auto& sentinel : options.sentinels) sentinels.push_back(net::to_string(sentinel));
  options.server.moving = std::make_shared<MovingEndpoint>(
      fmt::format("{}+sentinel://{}/{}", is_secure ? "rediss" : "redis", fmt::join(sentinels, ","),
                  percent_encoded(options.name)));
  auto client = std::make_shared<Client>(options.server);
  std::shared_ptr<Replicas> replicas;
  if (options.server.replica_max_lag) {
    replicas =
        std::make_shared<Replicas>(client, [server = options.server](const topology::Endpoint& to) {
          RedisOptions replica = server;
          replica.moving = nullptr;
          replica.endpoint = {.host = to.host, .port = to.port, .unix_path = {}};
          return replica;
        });
    client->reactor().add(replicas);
  }
  auto finder = std::make_shared<MasterFinder>(options, client->reactor(), replicas);
  auto store = std::make_unique<RedisStore>(client, finder, replicas);
  const auto until = finder->opens_until();
  client->reactor().add(finder);
  client->start(client);
  finder->wait_for_master();
  // The master may change meanwhile: a call waits for the next one.
  const auto left = std::chrono::ceil<milliseconds>(until - system_clock().steady());
  store->run({"PING"}, {.timeout = std::max(left, milliseconds{1})}).get();
  return store;
}

}  // namespace sluice::redis
