#include "lock/mutex/info.hpp"

#include <charconv>

#include "lock/hold/owner.hpp"
#include "lock/mutex/waiters.hpp"

namespace sluice::lock {

using std::chrono::milliseconds;

namespace {

constexpr std::string_view most_waiters = "999";  // the last index that is read

std::int64_t number_in(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

milliseconds time_of(const Value& reply) {
  const auto& parts = reply.as_items();
  return milliseconds{parts.at(0).as_integer() * 1000 + parts.at(1).as_integer() / 1000};
}

std::optional<LockInfo::Holder> holder_of(const std::vector<Value>& fields, milliseconds left,
                                          milliseconds now) {
  LockInfo::Holder holder{.left = left, .data = {}};
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
    const std::string& field = fields[i].as_text();
    const Value& value = fields[i + 1];
    if (field == "sluice:holder") {
      holder.data = holder_data(value.as_text());
    } else if (field == "sluice:since") {
      holder.held = now - milliseconds{number_in(value.as_text())};
    } else if (!field.starts_with("sluice:")) {
      holder.owner.text = field;
      holder.entries = static_cast<std::uint32_t>(number_in(value.as_text()));
    }
  }
  if (holder.owner.text.empty()) return std::nullopt;
  return holder;
}

}  // namespace

void ask_for_hold(Batch& batch, const Names& names) {
  batch.add({"HGETALL", names.key})
      .add({"PTTL", names.key})
      .add({"TIME"})
      .add({"GET", names.token});
}

LockInfo hold_info(const std::vector<Value>& replies) {
  for (const Value& reply : replies)
    if (reply.is_error()) throw error_of_reply(reply.as_text());
  LockInfo info;
  if (auto holder = holder_of(replies.at(0).as_items(), milliseconds{replies.at(1).as_integer()},
                              time_of(replies.at(2))))
    info.holders.push_back(*std::move(holder));
  if (!replies.at(3).is_null())
    info.token = FencingToken{static_cast<std::uint64_t>(number_in(replies.at(3).as_text()))};
  return info;
}

Task<LockInfo> info_of(Store& store, const Names& names) {
  Batch batch;
  ask_for_hold(batch, names);
  batch.add({"LRANGE", names.queue, "0", most_waiters}).add({"HGETALL", names.waiters});
  auto asked = store.run(std::move(batch));
  const std::vector<Value> replies = co_await asked;
  LockInfo info = hold_info(replies);
  info.waiters = waiters_of(replies.at(4), replies.at(5), time_of(replies.at(2)));
  co_return info;
}

}  // namespace sluice::lock
