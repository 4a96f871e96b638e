#include "redis/calls.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "resp/command_table.hpp"
#include "resp/server_words.hpp"
#include "sluice/metrics.hpp"
#include "store/batch_rules.hpp"
#include "store/reply_error.hpp"
#include "store/waiter.hpp"

namespace sluice::redis {

using std::chrono::milliseconds;

bool is_forgotten_script(const Value& reply) {
  return reply.is_error() &&
         resp::state_told(reply.as_text(), true) == resp::ServerState::unscripted;
}

SteadyTime deadline_of(const RedisOptions& server, const CallOptions& options,
                       milliseconds blocks_for) {
  if (blocks_for == milliseconds::max()) return options.until;
  const auto timeout = options.timeout.count() > 0 ? options.timeout : server.command_timeout;
  const auto own = Clock::add(Clock::add(system_clock().steady(), timeout), blocks_for);
  return std::min(own, options.until);
}

CallOptions rest_of(const RedisOptions& server, CallOptions options, SteadyTime begun) {
  const auto timeout = options.timeout.count() > 0 ? options.timeout : server.command_timeout;
  const auto spent = std::chrono::floor<milliseconds>(system_clock().steady() - begun);
  options.timeout = std::max(timeout - spent, milliseconds{1});
  return options;
}

Task<Outcome> exchange(Link& link, const Request& request, std::span<Value> replies,
                       SteadyTime deadline, CallOptions options, int slot) {
  Operation operation{request, replies, deadline, options, &link, slot};
  link.submit(operation);
  co_await InTurn{operation.done};
  if (operation.failure) std::rethrow_exception(operation.failure);
  co_return Outcome{.was_sent = operation.was_sent, .returned = operation.returned};
}

Value checked(const Request& request, Value reply, bool was_sent) {
  if (!reply.is_error()) return reply;
  const Error refused = request.error_of(reply.as_text());
  if (!was_sent || refused.effect() != Effect::none || request.only_reads()) throw refused;
  throw Error{refused.errc(),
              refused.message() + " (as it was sent again; the first reply was lost)",
              Effect::unknown};
}

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

void add_item(Request& request, const Batch::Item& item, bool is_ours) {
  const std::vector<std::string_view> words{item.words.begin(), item.words.end()};
  if (item.script) {
    const Words all{words};
    request.add(*item.script, all.first(item.key_count), all.subspan(item.key_count));
  } else {
    if (!is_ours && needs_of(words).own_connection) throw blocks_its_batch(words[0]);
    request.add(words);
  }
}

Task<DurableLine::Answer> exchange_batch(Link& link, Batch batch, Request request,
                                         SteadyTime deadline, CallOptions options, int slot) {
  DurableLine::Answer answer{.replies = std::vector<Value>(batch.size()), .outcome = {}};
  auto& replies = answer.replies;
  answer.outcome = co_await exchange(link, request, replies, deadline, options, slot);
  if (answer.outcome.returned) co_return answer;
  static const std::vector<std::string> asking{"ASKING"};
  // Only when another client flushes the scripts in the middle of the batch.
  for (int repeat = 0; repeat < most_script_repeats; ++repeat) {
    std::vector<std::size_t> forgotten;
    Request again{Request::Kind::batch};
    const bool waits = replica_wait_of(batch).has_value();
    for (std::size_t i = 0; i < replies.size(); ++i) {
      const bool is_wait = waits && i + 1 == replies.size() && !forgotten.empty();
      if (!is_wait && !(batch.items()[i].script && is_forgotten_script(replies[i]))) continue;
      // The server has forgotten the ASKING before it, too.
      const bool asks = !is_wait && i > 0 && batch.items()[i - 1].words == asking;
      for (auto place = i - (asks ? 1 : 0); place <= i; ++place) {
        forgotten.push_back(place);
        add_item(again, batch.items()[place], true);
      }
    }
    if (forgotten.empty()) break;
    std::vector<Value> answers(forgotten.size());
    co_await exchange(link, again, answers, deadline, options);
    for (std::size_t i = 0; i < forgotten.size(); ++i)
      replies[forgotten[i]] = std::move(answers[i]);
  }
  co_return answer;
}

Task<DurableLine::Answer> call_durably(std::shared_ptr<Client> client, DurableLine::Wait wait,
                                       DurableLine::Call call) {
  const auto line = client->durable_line(wait);
  auto running = DurableLine::run(std::move(client), line, std::move(call));
  co_return co_await running;
}

namespace {

/// On the connection that listens, for as long as it takes to have one. The last reply.
Task<Value> tell_listener(std::shared_ptr<Client> client,
                          std::vector<std::vector<std::string>> commands,
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

}  // namespace

Task<void> ask_for_changes(std::shared_ptr<Client> client) {
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

namespace {

Error late(const RedisOptions& server, bool was_sent) {
  if (!was_sent)
    return Error{Errc::timeout,
                 fmt::format("batches before it, which wait for replicas of {}, took its time",
                             describe(server))};
  count(metrics().redis_unknown);
  return Error{Errc::timeout, fmt::format("no reply from {} in time", describe(server)),
               Effect::unknown};
}

}  // namespace

DurableLine::DurableLine(const Wait& wait, std::shared_ptr<Link> link)
    : wait_(wait),
      link_(std::move(link)),
      calls_(link_.get(), most_at_once,
             [this](std::vector<CallerPtr> callers) { return send(std::move(callers)); }) {}

Task<DurableLine::Answer> DurableLine::run(std::shared_ptr<Client> client,
                                           std::shared_ptr<DurableLine> self, Call call) {
  const auto deadline = call.deadline;
  const auto caller = std::make_shared<Caller>(self->link_.get(), std::move(call));
  spawn(attend(client, self, caller));
  // The link ends what has no more time than its call, and knows what has become of it.
  const bool link_ends_it = caller->stage == Stage::sent && caller->ends <= deadline;
  if (link_ends_it) {
    co_await caller->done;
  } else if (const bool in_time = co_await wait_until(caller->done, system_clock(), deadline);
             !in_time) {
    const bool was_sent = caller->pass_to(Stage::left) == Stage::sent;
    self->link_->doubt();
    throw late(client->options(), was_sent);
  }
  if (caller->failure) std::rethrow_exception(caller->failure);
  co_return std::move(caller->answer);
}

/// Goes on when the caller has left.
Task<void> DurableLine::attend(std::shared_ptr<Client> /*kept*/, std::shared_ptr<DurableLine> self,
                               CallerPtr caller) {
  try {
    auto calling = self->calls_.call(caller);
    caller->answer = co_await calling;
  } catch (...) {
    caller->failure = std::current_exception();
  }
  caller->done.complete();
}

Task<std::vector<DurableLine::Answer>> DurableLine::send(std::vector<CallerPtr> callers) {
  Batch all;
  Request request{Request::Kind::batch};
  CallOptions options{.repeatable = true, .unhurried = true};
  auto deadline = SteadyTime::min();
  for (const auto& caller : callers) deadline = std::max(deadline, caller->call.deadline);
  std::vector<Answer> answers(callers.size());
  std::vector<std::size_t> sent;
  for (std::size_t place = 0; place < callers.size(); ++place) {
    const Call& call = callers[place]->call;
    callers[place]->ends = deadline;
    if (callers[place]->pass_to(Stage::sent) == Stage::left) continue;
    sent.push_back(place);
    options.repeatable &= call.options.repeatable;
    options.unhurried &= call.options.unhurried;
    options.timeout = std::max(options.timeout, call.options.timeout);
    for (std::size_t i = 0; i + 1 < call.batch.size(); ++i) all.add(call.batch.items()[i]);
  }
  if (sent.empty()) co_return answers;
  const Call& first = callers[sent.front()]->call;
  const bool waits = !std::exchange(options.unhurried, false) || all.empty();
  if (waits) all.add(first.batch.items().back());
  for (const auto& item : all.items()) add_item(request, item, true);  // looked at before
  auto exchanged =
      exchange_batch(*link_, std::move(all), std::move(request), deadline, options, first.slot);
  Answer answer = co_await exchanged;
  auto next = answer.replies.begin();
  for (const auto place : sent) {
    const auto end = next + static_cast<std::ptrdiff_t>(callers[place]->call.batch.size() - 1);
    answers[place].outcome = answer.outcome;
    auto& replies = answers[place].replies;
    replies.assign(std::move_iterator{next}, std::move_iterator{end});
    replies.push_back(waits ? answer.replies.back() : Value::integer(0));
    next = end;
  }
  co_return answers;
}

}  // namespace sluice::redis
