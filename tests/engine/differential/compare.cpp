#include "engine/differential_compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "resp/letters.hpp"

namespace sluice::test {
namespace {

using Items = Value::Items;
using Type = Value::Type;

bool before(const Value& one, const Value& other) { return to_string(one) < to_string(other); }

void sort_items(Value& reply) {
  if (reply.is_aggregate()) std::ranges::sort(reply.as_items(), before);
}

/// Items alternate key, value.
void sort_pairs(Value& reply) {
  if (!reply.is_aggregate() || reply.as_items().size() % 2 != 0) return;
  auto& items = reply.as_items();
  std::vector<std::pair<Value, Value>> pairs;
  for (std::size_t i = 0; i < items.size(); i += 2) pairs.emplace_back(std::move(items[i]), std::move(items[i + 1]));
  std::ranges::sort(pairs, before, [](const auto& pair) -> const Value& { return pair.first; });
  items.clear();
  for (auto& [key, value] : pairs) {
    items.push_back(std::move(key));
    items.push_back(std::move(value));
  }
}

/// SCAN: the cursor, then what was found.
template <void (*Sort)(Value&)>
void sort_scanned(Value& reply) {
  if (reply.is_aggregate() && reply.as_items().size() == 2) Sort(reply.as_items()[1]);
}

/// XPENDING with a range: id, consumer, idle, deliveries.
void forget_idle(Value& reply) {
  if (!reply.is_aggregate()) return;
  for (auto& entry : reply.as_items())
    if (entry.is_aggregate() && entry.as_items().size() == 4 && entry.as_items()[2].type() == Type::integer)
      entry.as_items()[2] = Value::integer(0);
}

/// Fields of XINFO that depend on the clock, or on how a stream is stored.
void forget_fields(Value& reply) {
  static constexpr std::array<std::string_view, 6> fields{"idle",        "inactive",        "seen-time",
                                                          "active-time", "radix-tree-keys", "radix-tree-nodes"};
  if (!reply.is_aggregate()) return;
  auto& items = reply.as_items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    forget_fields(items[i]);
    const bool named = i > 0 && items[i - 1].is_text() && std::ranges::count(fields, items[i - 1].as_text()) != 0;
    if (named && items[i].type() == Type::integer) items[i] = Value::integer(0);
  }
}

/// A time of delivery: within an hour of now, in milliseconds.
void forget_now(Value& reply) {
  using namespace std::chrono;
  if (reply.type() == Type::integer) {
    const auto now = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
    if (std::abs(reply.as_integer() - now) < 600'000) reply = Value::simple_string("now");
  }
  if (reply.is_aggregate())
    for (auto& item : reply.as_items()) forget_now(item);
}

/// RESP3 tells these by their type, and a NaN is itself here.
void sort_by_type(Value& reply) {
  if (reply.type() == Type::number && std::isnan(reply.as_number())) reply = Value::simple_string("nan");
  if (!reply.is_aggregate()) return;
  for (auto& item : reply.as_items()) sort_by_type(item);
  if (reply.type() == Type::set) sort_items(reply);
  if (reply.type() == Type::map) sort_pairs(reply);
}

struct Form {
  std::string_view command;  ///< lower case
  void (*apply)(Value& reply);
};
constexpr Form forms[] = {
    {"keys", sort_items},
    {"smembers", sort_items},
    {"sinter", sort_items},
    {"sunion", sort_items},
    {"sdiff", sort_items},
    {"hkeys", sort_items},
    {"hvals", sort_items},
    {"hgetall", sort_pairs},
    {"scan", sort_scanned<sort_items>},
    {"sscan", sort_scanned<sort_items>},
    {"hscan", sort_scanned<sort_pairs>},
    {"zscan", sort_scanned<sort_pairs>},
    {"xpending", forget_idle},
    {"xinfo", forget_fields},
};

struct Clock {
  std::string_view command;
  std::int64_t tolerance;
};
constexpr Clock clocks[] = {{"ttl", 5}, {"pttl", 5000}, {"expiretime", 5}, {"pexpiretime", 5000}};

template <class Row>
const Row* row_of(std::span<const Row> rows, const Command& command) {
  for (const auto& row : rows)
    if (resp::is_word(command.at(0), row.command)) return &row;
  return nullptr;
}

bool near(std::int64_t one, std::int64_t other, std::int64_t tolerance) {
  if (one < 0 || other < 0) return one == other;
  return std::abs(one - other) <= tolerance;
}

/// The command that shows what a key of this type holds.
Command show(const std::string& type, const std::string& key) {
  if (type == "string") return {"GET", key};
  if (type == "hash") return {"HGETALL", key};
  if (type == "list") return {"LRANGE", key, "0", "-1"};
  if (type == "set") return {"SMEMBERS", key};
  if (type == "zset") return {"ZRANGE", key, "0", "-1", "WITHSCORES"};
  return {"XINFO", "STREAM", key, "FULL", "COUNT", "0"};
}

}  // namespace

Value canonical(const Command& command, Value reply) {
  sort_by_type(reply);
  if (const auto* form = row_of<Form>(forms, command)) form->apply(reply);
  forget_now(reply);
  return reply;
}

bool same_reply(const Command& command, const Value& one, const Value& other) {
  const auto* clock = row_of<Clock>(clocks, command);
  if (clock != nullptr && one.type() == Type::integer && other.type() == Type::integer)
    return near(one.as_integer(), other.as_integer(), clock->tolerance);
  return one == other;
}

Dump dump(const Run& run) {
  Dump all;
  const auto keys = run({"KEYS", "*"});
  for (const auto& name : keys.as_items()) {
    const auto& key = name.as_text();
    Entry entry;
    entry.type = run({"TYPE", key}).as_text();
    const auto question = show(entry.type, key);
    entry.content = canonical(question, run(question));
    entry.expires_ms = run({"PEXPIRETIME", key}).as_integer();
    all.emplace(key, std::move(entry));
  }
  return all;
}

std::string difference(const Dump& one, const Dump& other) {
  for (const auto& [key, entry] : one) {
    const auto twin = other.find(key);
    if (twin == other.end()) return fmt::format("only the first has {}", key);
    if (entry.type != twin->second.type) return fmt::format("{} is a {} and a {}", key, entry.type, twin->second.type);
    if (entry.content != twin->second.content)
      return fmt::format("{} holds\n  {}\nand\n  {}", key, to_string(entry.content), to_string(twin->second.content));
    constexpr std::int64_t tolerance = 5000;
    if (!near(entry.expires_ms, twin->second.expires_ms, tolerance))
      return fmt::format("{} expires at {} and {}", key, entry.expires_ms, twin->second.expires_ms);
  }
  for (const auto& [key, entry] : other)
    if (!one.contains(key)) return fmt::format("only the second has {}", key);
  return {};
}

}  // namespace sluice::test
