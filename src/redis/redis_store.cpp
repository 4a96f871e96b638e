#include "redis/redis_store.hpp"

#include <algorithm>

#include "base/event.hpp"
#include "base/integer.hpp"
#include "redis/client.hpp"
#include "resp/command_table.hpp"
#include "store/reply_error.hpp"

namespace sluice::redis {
namespace {

using ClientPtr = std::shared_ptr<Client>;
using std::chrono::milliseconds;

/// How often a script is sent again with its text, when other clients keep flushing the server's
/// scripts.
constexpr int most_script_repeats = 3;

bool is_forgotten_script(const Value& reply) {
  return reply.is_error() && reply.as_text().starts_with("NOSCRIPT");
}

SteadyTime deadline_of(const Client& client, const CallOptions& options,
                       milliseconds blocks_for = {}) {
  if (blocks_for == milliseconds::max()) return SteadyTime::max();
  const auto timeout =
      options.timeout.count() > 0 ? options.timeout : client.options().command_timeout;
  return Clock::add(Clock::add(system_clock().steady(), timeout), blocks_for);
}

// The coroutines below hold the Client themselves: the Store may be gone before they end.

/// True: it was sent on an earlier connection, too, and may have taken effect there.
Task<bool> exchange(Link& link, const Request& request, std::span<Value> replies,
                    SteadyTime deadline, CallOptions options) {
  Operation operation{request, replies, deadline, options, &link};
  link.submit(operation);
  co_await operation.done;
  if (operation.failure) std::rethrow_exception(operation.failure);
  co_return operation.was_sent;
}

/// `was_sent`: before, without a reply. That the server refuses it now says nothing about then.
Value checked(const Request& request, Value reply, bool was_sent) {
  if (!reply.is_error()) return reply;
  const Error refused = request.error_of(reply.as_text());
  if (!was_sent || refused.effect() != Effect::none || request.only_reads()) throw refused;
  throw Error{refused.errc(),
              refused.message() + " (as it was sent again; the first reply was lost)",
              Effect::unknown};
}

Task<Value> call(ClientPtr client, Request request, CallOptions options) {
  const auto deadline = deadline_of(*client, options);
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

Task<Value> call_blocking(ClientPtr client, Request request, milliseconds blocks_for,
                          CallOptions options) {
  auto borrowing = client->borrow(deadline_of(*client, options));
  Loan loan{client, co_await borrowing};
  const auto deadline = deadline_of(*client, options, blocks_for);
  Value reply;
  const bool was_sent =
      co_await exchange(loan.link(), request, std::span{&reply, 1}, deadline, options);
  co_return checked(request, std::move(reply), was_sent);
}

/// The WAIT at the end of a batch.
std::optional<DurableLine::Wait> replica_wait_of(const Batch& batch) {
  const auto& last = batch.items().back();
  if (last.script || last.words.size() != 3) return std::nullopt;
  const std::vector<std::string_view> words{last.words.begin(), last.words.end()};
  const auto* const spec = resp::find_command(words);
  if (!spec || spec->name != "wait") return std::nullopt;
  const auto ms = parse_integer<std::uint32_t>(words[2]);
  if (!ms || *ms == 0)
    throw Error{Errc::bad_argument,
                "WAIT in a batch needs a time in ms above 0, not '" + last.words[2] + "'"};
  return DurableLine::Wait{last.words[1], milliseconds{*ms}};
}

/// `is_wait`: it is the WAIT at the end of its batch.
void add_item(Request& request, const Batch::Item& item, bool is_wait = false) {
  const std::vector<std::string_view> words{item.words.begin(), item.words.end()};
  if (item.script) {
    const Words all{words};
    request.add(*item.script, all.first(item.key_count), all.subspan(item.key_count));
  } else {
    if (!is_wait && needs_of(words).own_connection)
      throw Error{Errc::bad_argument, "a blocking command would hold up its batch; run it alone: " +
                                          item.words.front()};
    request.add(words);
  }
}

Task<std::vector<Value>> exchange_batch(Link& link, Batch batch, Request request,
                                        SteadyTime deadline, CallOptions options) {
  std::vector<Value> replies(batch.size());
  co_await exchange(link, request, replies, deadline, options);
  // Only when another client flushes the scripts in the middle of the batch.
  for (int repeat = 0; repeat < most_script_repeats; ++repeat) {
    std::vector<std::size_t> forgotten;
    Request again{Request::Kind::batch};
    const bool waits = replica_wait_of(batch).has_value();
    for (std::size_t i = 0; i < replies.size(); ++i) {
      const bool is_wait = waits && i + 1 == replies.size() && !forgotten.empty();
      if (!is_wait && !(batch.items()[i].script && is_forgotten_script(replies[i]))) continue;
      forgotten.push_back(i);
      add_item(again, batch.items()[i], is_wait);
    }
    if (forgotten.empty()) break;
    std::vector<Value> answers(forgotten.size());
    co_await exchange(link, again, answers, deadline, options);
    for (std::size_t i = 0; i < forgotten.size(); ++i)
      replies[forgotten[i]] = std::move(answers[i]);
  }
  co_return replies;
}

Task<std::vector<Value>> call_batch(ClientPtr client, Batch batch, Request request,
                                    CallOptions options) {
  const auto deadline = deadline_of(*client, options);
  auto exchanged =
      exchange_batch(client->link(), std::move(batch), std::move(request), deadline, options);
  co_return co_await exchanged;
}

Task<std::vector<Value>> call_durably(ClientPtr client, DurableLine::Wait wait, Batch batch,
                                      CallOptions options) {
  DurableLine::Call call{std::move(batch), options};
  const auto line = client->durable_line(wait);
  auto running = line->run(std::move(call));
  co_return co_await running;
}

Task<void> subscribe(ClientPtr client, std::string verb, std::string channel) {
  const std::string_view words[] = {verb, channel};
  Request request;
  request.add(words);
  request.set_answered_by(verb == "SUBSCRIBE" ? "subscribe" : "unsubscribe");
  Value reply;
  co_await exchange(client->listener(), request, std::span{&reply, 1}, deadline_of(*client, {}),
                    {.repeatable = true});
  checked(request, std::move(reply), false);
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
    client_->channels().remove(channel_, *handler_, [this] {
      // Whether the server confirms does not matter: a late message finds no handler.
      spawn(subscribe(client_, "UNSUBSCRIBE", channel_), [](std::exception_ptr) {});
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

/// On the connection that listens, for as long as it takes to have one. The last reply.
Task<Value> tell_listener(ClientPtr client, std::vector<std::vector<std::string>> commands,
                          std::string_view answered_by = {}) {
  Request request{Request::Kind::batch};
  for (const auto& command : commands) {
    const std::vector<std::string_view> words{command.begin(), command.end()};
    request.add(words);
  }
  request.set_answered_by(answered_by);
  std::vector<Value> replies(request.commands());
  co_await exchange(client->listener(), request, replies, SteadyTime::max(), {.repeatable = true});
  co_return std::move(replies.back());
}

Task<void> ask_for_changes(ClientPtr client) {
  // A server closes what has subscribed and does not read (client-output-buffer-limit), and would
  // keep all messages to a tracker that stands still. Nothing is published there.
  const std::string channel = "sluice:tracking";
  Trackers& trackers = client->trackers();
  try {
    while (const auto question = trackers.next()) {
      if (question->is_anew()) {
        auto bounding = tell_listener(client, {{"SUBSCRIBE", channel}}, "subscribe");
        co_await bounding;
      }
      auto asking = tell_listener(client, question->commands);
      const Value reply = co_await asking;
      trackers.take(*question, reply.is_error() ? reply.as_text() : "");
    }
  } catch (const Error&) {
    trackers.give_up();
  }
}

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

class RedisStore final : public Store {
 public:
  explicit RedisStore(ClientPtr client) : client_(std::move(client)) {}
  ~RedisStore() override {
    // A child of fork() has neither the thread nor a claim on the connection; the memory stays with
    // the lost thread.
    if (!client_->is_of_parent()) client_->close();
  }

  using Store::run;

  Task<Value> run(Words command, CallOptions options) override {
    const Needs needs = needs_of(command);
    Request request;
    request.add(command);
    if (needs.own_connection)
      return call_blocking(client_, std::move(request), needs.blocks_for, options);
    return call(client_, std::move(request), options);
  }

  Task<Value> run(const Script& script, Words keys, Words args, CallOptions options) override {
    Request request;
    request.add(script, keys, args);
    return call(client_, std::move(request), options);
  }

  Task<std::vector<Value>> run(Batch batch, CallOptions options) override {
    if (batch.empty()) return Task<std::vector<Value>>::ready();
    const auto wait = replica_wait_of(batch);
    Request request{Request::Kind::batch};
    for (std::size_t i = 0; i < batch.size() - (wait ? 1 : 0); ++i)
      add_item(request, batch.items()[i]);
    if (wait) return call_durably(client_, *wait, std::move(batch), options);
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
};

}  // namespace

DurableLine::DurableLine(Client& client, const Wait& wait, std::shared_ptr<Link> link)
    : client_(client),
      wait_(wait),
      link_(std::move(link)),
      calls_(link_.get(), most_at_once,
             [this](std::vector<Call> calls) { return send(std::move(calls)); }) {}

Task<DurableLine::Replies> DurableLine::send(std::vector<Call> calls) {
  Batch all;
  Request request{Request::Kind::batch};
  CallOptions options{.repeatable = true};
  for (const Call& call : calls) {
    options.repeatable &= call.options.repeatable;
    options.timeout = std::max(options.timeout, call.options.timeout);
    for (std::size_t i = 0; i + 1 < call.batch.size(); ++i) all.add(call.batch.items()[i]);
  }
  for (const auto& item : all.items()) add_item(request, item);
  all.add(calls.front().batch.items().back());
  add_item(request, all.items().back(), true);
  const auto deadline = deadline_of(client_, options, wait_.within);
  auto exchanged = exchange_batch(*link_, std::move(all), std::move(request), deadline, options);
  std::vector<Value> answers = co_await exchanged;
  Replies replies;
  auto next = answers.begin();
  for (const Call& call : calls) {
    const auto end = next + static_cast<std::ptrdiff_t>(call.batch.size() - 1);
    replies.emplace_back(std::move_iterator{next}, std::move_iterator{end});
    replies.back().push_back(answers.back());
    next = end;
  }
  co_return replies;
}

std::unique_ptr<Store> open_redis(RedisOptions options) {
  NoBlocking::check("opening a Store");
  auto client = std::make_shared<Client>(std::move(options));
  auto store = std::make_unique<RedisStore>(client);
  client->trackers().on_stale = [weak = std::weak_ptr{client}] {
    if (auto self = weak.lock()) spawn(ask_for_changes(std::move(self)));
  };
  client->open(client);
  return store;
}

}  // namespace sluice::redis
