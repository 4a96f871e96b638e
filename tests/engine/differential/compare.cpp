#include "engine/differential/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
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

/// Redis 7.0 writes a double with %.17g, 7.2 and the engine in the shortest form: 0.1 and 0.10000000000000001.
void read_long_doubles(Value& reply) {
  constexpr std::size_t shortest_that_differs = 10;
  if (reply.is_aggregate())
    for (auto& item : reply.as_items()) read_long_doubles(item);
  if (reply.type() != Type::bulk_string || reply.as_text().size() < shortest_that_differs) return;
  const auto& text = reply.as_text();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && text.find_first_of(".e") != text.npos)
    reply = Value::number(number);
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

/// Where the engine refuses what Redis 7.0.15 lets pass.
struct Stricter {
  std::string_view command;
  std::string_view refusal;  ///< begins so
};
constexpr Stricter stricter[] = {
    {"bitcount", "ERR "},  // 7.0 looks at the other words only where the key is
    {"bitpos", "ERR "},
    {"zcount", "ERR min or max is not a float"},  // "" and "(" as limits
    {"zrange", "ERR min or max is not a float"},
    {"zrangebyscore", "ERR min or max is not a float"},
    {"zrevrangebyscore", "ERR min or max is not a float"},
    {"zremrangebyscore", "ERR min or max is not a float"},
    {"lpos", "ERR value is out of range, value must between"},  // a rank that cannot be negated, as 7.2
};

bool is_stricter(const Command& command, const Value& ours) {
  const auto* row = row_of<Stricter>(stricter, command);
  return row != nullptr && ours.is_error() && ours.as_text().starts_with(row->refusal);
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
  read_long_doubles(reply);
  if (const auto* form = row_of<Form>(forms, command)) form->apply(reply);
  forget_now(reply);
  return reply;
}

bool same_reply(const Command& command, const Value& theirs, const Value& ours) {
  const auto* clock = row_of<Clock>(clocks, command);
  if (clock != nullptr && theirs.type() == Type::integer && ours.type() == Type::integer)
    return near(theirs.as_integer(), ours.as_integer(), clock->tolerance);
  return theirs == ours || is_stricter(command, ours);
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
