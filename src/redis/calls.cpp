#include "redis/calls.hpp"

#include <algorithm>

#include "base/integer.hpp"
#include "resp/command_table.hpp"
#include "store/reply_error.hpp"
#include "store/waiter.hpp"

namespace sluice::redis {

using std::chrono::milliseconds;

bool is_forgotten_script(const Value& reply) {
  return reply.is_error() && reply.as_text().starts_with("NOSCRIPT");
}

SteadyTime deadline_of(const RedisOptions& server, const CallOptions& options,
                       milliseconds blocks_for) {
  if (blocks_for == milliseconds::max()) return SteadyTime::max();
  const auto timeout = options.timeout.count() > 0 ? options.timeout : server.command_timeout;
  return Clock::add(Clock::add(system_clock().steady(), timeout), blocks_for);
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

void add_item(Request& request, const Batch::Item& item, bool is_wait) {
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

Task<DurableLine::Answer> exchange_batch(Link& link, Batch batch, Request request,
                                         SteadyTime deadline, CallOptions options, int slot) {
  DurableLine::Answer answer{.replies = std::vector<Value>(batch.size()), .outcome = {}};
  auto& replies = answer.replies;
  answer.outcome = co_await exchange(link, request, replies, deadline, options, slot);
  if (answer.outcome.returned) co_return answer;
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
  co_return answer;
}

Task<DurableLine::Answer> call_durably(std::shared_ptr<Client> client, DurableLine::Wait wait,
                                       Batch batch, CallOptions options, int slot) {
  DurableLine::Call call{std::move(batch), options, slot};
  const auto line = client->durable_line(wait);
  auto running = line->run(std::move(call));
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

DurableLine::DurableLine(Client& client, const Wait& wait, std::shared_ptr<Link> link)
    : client_(client),
      wait_(wait),
      link_(std::move(link)),
      calls_(link_.get(), most_at_once,
             [this](std::vector<Call> calls) { return send(std::move(calls)); }) {}

Task<std::vector<DurableLine::Answer>> DurableLine::send(std::vector<Call> calls) {
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
  const auto deadline = deadline_of(client_.options(), options, wait_.within);
  auto exchanged = exchange_batch(*link_, std::move(all), std::move(request), deadline, options,
                                  calls.front().slot);
  Answer answer = co_await exchanged;
  std::vector<Answer> answers;
  auto next = answer.replies.begin();
  for (const Call& call : calls) {
    const auto end = next + static_cast<std::ptrdiff_t>(call.batch.size() - 1);
    auto& replies = answers.emplace_back(Answer{.replies = {}, .outcome = answer.outcome}).replies;
    replies.assign(std::move_iterator{next}, std::move_iterator{end});
    replies.push_back(answer.replies.back());
    next = end;
  }
  co_return answers;
}

}  // namespace sluice::redis
