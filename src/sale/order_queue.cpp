#include "sale/order_queue.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sale/orders.lua.hpp"

namespace sluice::sale {
namespace {

/// The count of deliveries of an entry that is tried alone goes on from here: it tells such tries
/// from deliveries beside others.
constexpr std::int64_t alone = 1'000'000;

const std::string* find_field(const Value::Items& fields, std::string_view name) {
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2)
    if (fields[i].as_text() == name) return &fields[i + 1].as_text();
  return nullptr;
}

std::optional<SaleOrder> order_of_fields(const Value::Items& fields) {
  const auto* const text = find_field(fields, "order");
  const auto* const buyer = find_field(fields, "buyer");
  if (!text || !buyer) return std::nullopt;
  return order_of(*text, *buyer);
}

}  // namespace

OrderEntry entry_of(const Value& entry) {
  const auto& parts = entry.as_items();
  if (parts.at(1).is_null())
    return {.id = parts.at(0).as_text(), .order = {}};  // deleted while it was pending
  return {.id = parts.at(0).as_text(), .order = order_of_fields(parts.at(1).as_items())};
}

DeadLetter dead_letter_of(const Value& entry) {
  const auto& parts = entry.as_items();
  const auto& fields = parts.at(1).as_items();
  const auto own = [&](std::string_view name) {
    const auto* const value = find_field(fields, name);
    return value ? *value : std::string{};
  };
  DeadLetter letter{.id = parts.at(0).as_text(),
                    .entry = own("entry"),
                    .reason = own("reason"),
                    .fields = {},
                    .order = {}};
  constexpr std::size_t of_bury = 4;  // reason and entry stand in front
  for (std::size_t i = of_bury; i + 1 < fields.size(); i += 2)
    letter.fields.emplace_back(fields[i].as_text(), fields[i + 1].as_text());
  letter.order = order_of_fields(fields);
  return letter;
}

namespace {

std::vector<OrderEntry> entries_of(const Value& entries) {
  std::vector<OrderEntry> found;
  found.reserve(entries.as_items().size());
  for (const auto& entry : entries.as_items()) found.push_back(entry_of(entry));
  return found;
}

}  // namespace

void OrderQueue::acknowledge(std::span<const std::string> done, std::string_view mark) {
  if (done.empty()) return;
  const std::vector<std::string_view> keys{keys_.orders, keys_.sale};
  std::vector<std::string_view> args{group, mark};
  args.insert(args.end(), done.begin(), done.end());
  store_.run(scripts::sale_acknowledge, Words{keys}, Words{args}, repeatable).get();
}

Task<Value> OrderQueue::acknowledge_and_read(std::span<const std::string> done, std::string mark,
                                             std::size_t most) {
  const std::vector<std::string_view> keys{keys_.orders, keys_.sale};
  std::vector<std::string_view> args{group, mark};
  args.insert(args.end(), done.begin(), done.end());
  const auto count = fmt::to_string(most);
  Batch batch;
  if (!done.empty()) batch.add(scripts::sale_acknowledge, Words{keys}, Words{args});
  batch.add(
      {"XREADGROUP", "GROUP", group, consumer_, "COUNT", count, "STREAMS", keys_.orders, ">"});
  std::vector<Value> replies = co_await store_.run(std::move(batch));
  if (replies.front().is_error()) throw error_of_reply(replies.front().as_text());
  co_return std::move(replies.back());
}

/// XREADGROUP of one stream: nil, [[key, entries]] or, in RESP3, {key: entries}.
std::vector<OrderEntry> OrderQueue::entries_read(const Value& reply) {
  if (reply.is_null()) return {};
  if (reply.is_error()) throw error_of_reply(reply.as_text());
  const auto& streams = reply.as_items();
  if (streams.empty()) return {};
  return entries_of(reply.type() == Value::Type::map ? streams.at(1)
                                                     : streams.at(0).as_items().at(1));
}

std::vector<OrderEntry> OrderQueue::read(std::size_t most, std::chrono::milliseconds wait) {
  const auto count = fmt::to_string(most);
  const auto block = fmt::to_string(wait.count());
  return entries_read(store_
                          .run({"XREADGROUP", "GROUP", group, consumer_, "COUNT", count, "BLOCK",
                                block, "STREAMS", keys_.orders, ">"})
                          .get());
}

OrderQueue::Claimed OrderQueue::claim(std::chrono::milliseconds idle, const std::string& start,
                                      std::size_t most, std::int64_t most_deliveries) {
  const auto reply = store_
                         .run(scripts::sale_claim, {keys_.orders},
                              {group, consumer_, fmt::to_string(idle.count()), start,
                               fmt::to_string(most), fmt::to_string(most_deliveries)})
                         .get();
  const auto& parts = reply.as_items();
  Claimed claimed{
      .entries = entries_of(parts.at(1)), .suspects = {}, .next = parts.at(0).as_text()};
  const auto& suspects = parts.at(2).as_items();
  for (std::size_t i = 0; i + 1 < suspects.size(); i += 2)
    claimed.suspects.emplace(std::max<std::int64_t>(suspects[i + 1].as_integer() - alone, 0),
                             suspects[i].as_text());
  return claimed;
}

std::optional<OrderEntry> OrderQueue::deliver_alone(const std::string& id, std::int64_t tries) {
  const auto count = fmt::to_string(alone + tries + 1);
  auto entries = entries_of(
      store_.run({"XCLAIM", keys_.orders, group, consumer_, "0", id, "RETRYCOUNT", count}).get());
  if (entries.empty()) return std::nullopt;
  return std::move(entries.front());
}

OrderQueue::Adopted OrderQueue::adopt(const std::string& start, std::size_t most) {
  const auto reply =
      store_
          .run(scripts::sale_adopt, {keys_.orders}, {group, consumer_, start, fmt::to_string(most)})
          .get();
  const auto& parts = reply.as_items();
  return {.entries = entries_of(parts.at(1)), .next = parts.at(0).as_text()};
}

OrderQueue::Adopted OrderQueue::reread(const std::string& start, std::size_t most,
                                       std::int64_t most_deliveries) {
  const auto reply =
      store_
          .run(scripts::sale_reread, {keys_.orders},
               {group, consumer_, start, fmt::to_string(most), fmt::to_string(most_deliveries)},
               repeatable)
          .get();
  const auto& parts = reply.as_items();
  return {.entries = entries_of(parts.at(1)), .next = parts.at(0).as_text()};
}

void OrderQueue::keep(std::span<const std::string> ids) {
  std::vector<std::string_view> words{"XCLAIM", keys_.orders, group, consumer_, "0"};
  words.insert(words.end(), ids.begin(), ids.end());
  words.insert(words.end(), {"RETRYCOUNT", "1", "JUSTID"});
  store_.run(Words{words}, repeatable).get();
}

bool OrderQueue::bury(const std::string& id, const std::string& reason) {
  return store_.run(scripts::sale_bury, {keys_.orders, keys_.dead}, {group, id, reason}, repeatable)
             .get()
             .as_integer() == 1;
}

void OrderQueue::leave() {
  store_.run(scripts::sale_leave, {keys_.orders}, {group, consumer_}, repeatable).get();
}

void OrderQueue::tidy(std::chrono::milliseconds idle) {
  store_.run(scripts::sale_tidy, {keys_.orders}, {group, fmt::to_string(idle.count())}, repeatable)
      .get();
}

bool OrderQueue::make_group() {
  return store_.run(scripts::sale_regroup, {keys_.sale, keys_.orders}, {group}, repeatable)
             .get()
             .as_integer() == 1;
}

bool is_group_lost(const Error& failure) {
  return failure.message().contains("NOGROUP ") || failure.message().contains("UNBLOCKED ");
}

}  // namespace sluice::sale
