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
  for (std::size_t i = 0; i < items.size(); i += 2)
    pairs.emplace_back(std::move(items[i]), std::move(items[i + 1]));
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
    if (entry.is_aggregate() && entry.as_items().size() == 4 &&
        entry.as_items()[2].type() == Type::integer)
      entry.as_items()[2] = Value::integer(0);
}

/// Fields of XINFO that depend on the clock, or on how a stream is stored.
void forget_fields(Value& reply) {
  static constexpr std::array<std::string_view, 6> fields{
      "idle", "inactive", "seen-time", "active-time", "radix-tree-keys", "radix-tree-nodes"};
  if (!reply.is_aggregate()) return;
  auto& items = reply.as_items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    forget_fields(items[i]);
    const bool named =
        i > 0 && items[i - 1].is_text() && std::ranges::count(fields, items[i - 1].as_text()) != 0;
    if (named && items[i].type() == Type::integer) items[i] = Value::integer(0);
  }
}

bool has_nothing_pending(const Value& consumer) {
  if (!consumer.is_aggregate()) return false;
  const auto& items = consumer.as_items();
  for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    if (items[i].is_text() &&
        (items[i].as_text() == "pel-count" || items[i].as_text() == "pending"))
      return items[i + 1] == Value::integer(0);
  return false;
}

/// Since 7.2, and so in the engine, a consumer comes to be by asking; in 7.0 by getting something.
void forget_idle_consumers(Value& consumers) {
  if (consumers.is_aggregate()) std::erase_if(consumers.as_items(), has_nothing_pending);
  if (consumers.type() == Type::integer) consumers = Value::integer(0);
}

/// Wherever XINFO has them.
void forget_idle_consumers_inside(Value& reply) {
  if (!reply.is_aggregate()) return;
  auto& items = reply.as_items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const bool named = i > 0 && items[i - 1].is_text() && items[i - 1].as_text() == "consumers";
    named ? forget_idle_consumers(items[i]) : forget_idle_consumers_inside(items[i]);
  }
}

void forget_number(Value& reply) {
  if (reply.type() == Type::integer) reply = Value::integer(0);
}

void simplify_stream(Value& reply) {
  forget_fields(reply);
  forget_idle_consumers_inside(reply);
}

void simplify_consumers(Value& reply) {
  forget_fields(reply);
  forget_idle_consumers(reply);
}

/// A time of delivery: within an hour of now, in milliseconds.
void forget_now(Value& reply) {
  using namespace std::chrono;
  if (reply.type() == Type::integer) {
    const auto now = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
    constexpr std::int64_t hour = 3'600'000;
    if (reply.as_integer() > now - hour && reply.as_integer() < now + hour)
      reply = Value::simple_string("now");
  }
  if (reply.is_aggregate())
    for (auto& item : reply.as_items()) forget_now(item);
}

/// Whether Redis says 0 or -0 hangs on how it stores the set, and in which order it adds.
void forget_sign_of_zero(Value& reply) {
  if (reply.is_aggregate())
    for (auto& item : reply.as_items()) forget_sign_of_zero(item);
  if (reply.type() == Type::bulk_string && reply.as_text() == "-0") reply = Value::bulk_string("0");
}

template <class Number>
bool is_all(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Redis 7.0 writes a double with %.17g, 7.2 and the engine in the shortest form: 0.1 and
/// 0.10000000000000001.
void read_long_doubles(Value& reply) {
  constexpr std::size_t shortest_that_differs = 10;
  if (reply.is_aggregate())
    for (auto& item : reply.as_items()) read_long_doubles(item);
  if (reply.type() != Type::bulk_string || reply.as_text().size() < shortest_that_differs) return;
  double number = 0;
  std::int64_t integer = 0;
  if (!is_all(reply.as_text(), integer) && is_all(reply.as_text(), number))
    reply = Value::number(number);
}

/// RESP3 tells these by their type, and a NaN is itself here.
void sort_by_type(Value& reply) {
  if (reply.type() == Type::number && std::isnan(reply.as_number()))
    reply = Value::simple_string("nan");
  if (!reply.is_aggregate()) return;
  for (auto& item : reply.as_items()) sort_by_type(item);
  if (reply.type() == Type::set) sort_items(reply);
  if (reply.type() == Type::map) sort_pairs(reply);
}

/// Redis leaves the result of PFCOUNT in the value.
void forget_count(Value& reply) {
  if (reply.type() != Type::bulk_string || !reply.as_text().starts_with("HYLL")) return;
  auto text = reply.as_text();
  if (text.size() >= 16) text.replace(8, 8, 8, '.');
  reply = Value::bulk_string(text);
}

/// Redis has its libraries and functions in tables.
void sort_libraries(Value& reply) {
  if (!reply.is_aggregate()) return;
  for (auto& library : reply.as_items())
    if (library.is_aggregate())
      for (auto& field : library.as_items()) sort_items(field);
  sort_items(reply);
}

struct Form {
  std::string_view command;  ///< lower case; with a subcommand "xinfo|stream"
  void (*apply)(Value& reply);
};
constexpr Form forms[] = {
    {"keys", sort_items},
    {"smembers", sort_items},
    {"sinter", sort_items},
    {"sunion", sort_items},
    {"sdiff", sort_items},
    {"spop", sort_items},
    {"hkeys", sort_items},
    {"hvals", sort_items},
    {"hgetall", sort_pairs},
    {"scan", sort_scanned<sort_items>},
    {"sscan", sort_scanned<sort_items>},
    {"hscan", sort_scanned<sort_pairs>},
    {"zscan", sort_scanned<sort_pairs>},
    {"xpending", forget_idle},
    {"xinfo|stream", simplify_stream},
    {"xinfo|groups", simplify_stream},
    {"xinfo|consumers", simplify_consumers},
    {"xgroup|createconsumer", forget_number},
    {"memory|usage", forget_number},
    {"object|idletime", forget_number},
    {"get", forget_count},
    {"function|list", sort_libraries},
};

struct Clock {
  std::string_view command;
  std::int64_t tolerance;
};
constexpr Clock clocks[] = {{"ttl", 5}, {"pttl", 5000}, {"expiretime", 5}, {"pexpiretime", 5000}};

bool is_named(const Command& command, std::string_view name) {
  const auto bar = name.find('|');
  return resp::is_word(command.at(0), name.substr(0, bar)) &&
         (bar == name.npos ||
          (command.size() > 1 && resp::is_word(command[1], name.substr(bar + 1))));
}

template <class Row>
const Row* row_of(std::span<const Row> rows, const Command& command) {
  for (const auto& row : rows)
    if (is_named(command, row.command)) return &row;
  return nullptr;
}

/// Where the engine refuses otherwise than Redis 7.0.15.
struct KnownRefusal {
  std::string_view command;
  std::string_view beginning;  ///< of the engine's error
  bool redis_refuses_too;      ///< in other words, or another one of several mistakes
};
constexpr KnownRefusal known_refusals[] = {
    {"bitcount", "ERR ", false},  // 7.0 looks at the other words only where the key is
    {"bitpos", "ERR ", false},
    {"zcount", "ERR min or max is not a float", false},  // "" and "(" as limits
    {"zrange", "ERR min or max is not a float", false},
    {"zrangebyscore", "ERR min or max is not a float", false},
    {"zrevrangebyscore", "ERR min or max is not a float", false},
    {"zremrangebyscore", "ERR min or max is not a float", false},
    {"lpos", "ERR value is out of range", false},         // a rank that cannot be negated, as 7.2
    {"zincrby", "ERR value is not a valid float", true},  // "NX" for a score
    {"zrank", "ERR wrong number of arguments", true},  // by a script: since 7.2 there may be more
    {"zrevrank", "ERR wrong number of arguments", true},
    {"select", "ERR DB index is out of range", true},
    {"function", "ERR Unknown option given: ", true},  // of which 128 characters are shown
    {"xadd", "ERR ", true},
    {"xinfo", "ERR ", true},
    {"xread", "ERR ", true},
    {"xreadgroup", "ERR ", true},
    {"xpending", "ERR ", true},
    {"xautoclaim", "ERR ", true},
    {"xtrim", "ERR ", true},
};

bool is_known(const Command& command, const Value& theirs, const Value& ours) {
  const auto* row = row_of<KnownRefusal>(known_refusals, command);
  return row != nullptr && ours.is_error() && ours.as_text().starts_with(row->beginning) &&
         (theirs.is_error() || !row->redis_refuses_too);
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
  forget_sign_of_zero(reply);
  if (const auto* form = row_of<Form>(forms, command)) form->apply(reply);
  forget_now(reply);
  return reply;
}

bool same_reply(const Command& command, const Value& theirs, const Value& ours) {
  const auto* clock = row_of<Clock>(clocks, command);
  if (clock != nullptr && theirs.type() == Type::integer && ours.type() == Type::integer)
    return near(theirs.as_integer(), ours.as_integer(), clock->tolerance);
  return theirs == ours || is_known(command, theirs, ours);
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
    if (entry.type != twin->second.type)
      return fmt::format("{} is a {} and a {}", key, entry.type, twin->second.type);
    if (entry.content != twin->second.content)
      return fmt::format("{} holds\n  {}\nand\n  {}", key, to_string(entry.content),
                         to_string(twin->second.content));
    constexpr std::int64_t tolerance = 5000;
    if (!near(entry.expires_ms, twin->second.expires_ms, tolerance))
      return fmt::format("{} expires at {} and {}", key, entry.expires_ms, twin->second.expires_ms);
  }
  for (const auto& [key, entry] : other)
    if (!one.contains(key)) return fmt::format("only the second has {}", key);
  return {};
}

}  // namespace sluice::test
