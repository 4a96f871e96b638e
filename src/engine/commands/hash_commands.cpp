#include <cmath>

#include "engine/commands/scan.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

/// The hash at a key, made where there is none. Null: refused.
Hash* find_or_make(Context& context, std::string_view key, Reply& reply) {
  Hash* hash = nullptr;
  if (!find_as(context, key, hash, reply)) return nullptr;
  return hash ? hash : &make<Hash>(context, key);
}

void reply_value(const std::string* value, Reply& reply) {
  value ? reply.bulk(*value) : reply.null();
}

/// Sets the fields that follow the key; gives how many are new, or -1: refused.
std::int64_t set_fields(Context& context, Words words, std::string_view name, Reply& reply) {
  if (words.size() % 2 == 1) return refuse_arity(reply, name), -1;
  Hash* hash = find_or_make(context, words[1], reply);
  if (!hash) return -1;
  hash->expect((words.size() - 2) / 2);
  std::int64_t created = 0;
  for (std::size_t i = 2; i < words.size(); i += 2)
    created += hash->set(words[i], words[i + 1]) ? 1 : 0;
  context.changed();
  return created;
}

void hset(Context& context, Words words, Reply& reply) {
  if (const auto created = set_fields(context, words, "hset", reply); created >= 0)
    reply.integer(created);
}
void hmset(Context& context, Words words, Reply& reply) {
  if (set_fields(context, words, "hmset", reply) >= 0) reply.ok();
}

void hsetnx(Context& context, Words words, Reply& reply) {
  Hash* hash = nullptr;
  if (!find_as(context, words[1], hash, reply)) return;
  if (hash && hash->find(words[2])) return reply.integer(0);
  (hash ? *hash : make<Hash>(context, words[1])).set(words[2], words[3]);
  context.changed();
  reply.integer(1);
}

void hget(Context& context, Words words, Reply& reply) {
  Hash* hash = nullptr;
  if (find_as(context, words[1], hash, reply))
    reply_value(hash ? hash->find(words[2]) : nullptr, reply);
}

void hmget(Context& context, Words words, Reply& reply) {
  Hash* hash = nullptr;
  if (!find_as(context, words[1], hash, reply)) return;
  reply.array(words.size() - 2);
  for (const auto& field : words.subspan(2)) reply_value(hash ? hash->find(field) : nullptr, reply);
}

void hgetall(Context& context, Words words, Reply& reply) {
  Hash* hash = nullptr;
  if (!find_as(context, words[1], hash, reply)) return;
  reply.map(hash ? hash->size() : 0);
  if (hash)
    hash->for_each(
        [&](const Hash::Field& field) { reply.bulk(field.name), reply.bulk(field.value); });
}

template <std::string Hash::Field::*part>
void all_of(Context& context, Words words, Reply& reply) {
  Hash* hash = nullptr;
  if (!find_as(context, words[1], hash, reply)) return;
  reply.array(hash ? hash->size() : 0);
  if (hash) hash->for_each([&](const Hash::Field& field) { reply.bulk(field.*part); });
}

void hdel(Context& context, Words words, Reply& reply) {
  Hash* hash = nullptr;
  if (!find_as(context, words[1], hash, reply)) return;
  std::int64_t removed = 0;
  if (hash) {
    for (const auto& field : words.subspan(2)) removed += hash->erase(field) ? 1 : 0;
    drop_if_empty(context, words[1], *hash);
  }
  if (removed > 0) context.changed();
  reply.integer(removed);
}

void hlen(Context& context, Words words, Reply& reply) {
  Hash* hash = nullptr;
  if (find_as(context, words[1], hash, reply))
    reply.integer(hash ? static_cast<std::int64_t>(hash->size()) : 0);
}
void hexists(Context& context, Words words, Reply& reply) {
  Hash* hash = nullptr;
  if (find_as(context, words[1], hash, reply)) reply.integer(hash && hash->find(words[2]) ? 1 : 0);
}
void hstrlen(Context& context, Words words, Reply& reply) {
  Hash* hash = nullptr;
  if (!find_as(context, words[1], hash, reply)) return;
  const auto* value = hash ? hash->find(words[2]) : nullptr;
  reply.integer(value ? static_cast<std::int64_t>(value->size()) : 0);
}

void hincrby(Context& context, Words words, Reply& reply) {
  std::int64_t by = 0;
  if (!read_integer(words[3], by, reply)) return;
  Hash* hash = nullptr;
  if (!find_as(context, words[1], hash, reply)) return;
  std::int64_t value = 0;
  const auto* old = hash ? hash->find(words[2]) : nullptr;
  if (old && !read_integer(*old, value, reply, "ERR hash value is not an integer")) return;
  if (__builtin_add_overflow(value, by, &value))
    return reply.error("ERR increment or decrement would overflow");
  (hash ? *hash : make<Hash>(context, words[1])).set(words[2], IntegerText{value});
  context.changed();
  reply.integer(value);
}

void hincrbyfloat(Context& context, Words words, Reply& reply) {
  const auto by = parse_long_double(words[3]);
  if (!by) return reply.error(not_a_float);
  if (std::isinf(*by)) return reply.error("ERR value is NaN or Infinity");
  Hash* hash = nullptr;
  if (!find_as(context, words[1], hash, reply)) return;
  const auto* old = hash ? hash->find(words[2]) : nullptr;
  const auto value = old ? parse_long_double(*old) : 0.0L;
  if (!value) return reply.error("ERR hash value is not a float");
  const auto sum = *value + *by;
  if (std::isnan(sum) || std::isinf(sum))
    return reply.error("ERR increment would produce NaN or Infinity");
  const auto result = text_of(sum);
  (hash ? *hash : make<Hash>(context, words[1])).set(words[2], result);
  context.changed();
  context.log_instead({"HSET", words[1], words[2], result});
  reply.bulk(result);
}

/// HRANDFIELD with a count: positive without repeats, negative with.
void random_fields(const Hash& hash, std::int64_t count, bool values, Context& context,
                   Reply& reply) {
  std::vector<const Hash::Field*> picked;
  if (count < 0) {
    for (; count < 0; ++count) picked.push_back(&hash.random(context.engine().rng));
  } else {
    std::vector<const Hash::Field*> all;
    hash.for_each([&](const Hash::Field& field) { all.push_back(&field); });
    const auto most = std::min(all.size(), static_cast<std::size_t>(count));
    for (const auto place : distinct_indexes(all.size(), most, context.engine().rng))
      picked.push_back(all[place]);
  }
  const bool pairs = values && context.session().protocol == 3;
  reply.array(picked.size() * (values && !pairs ? 2 : 1));
  for (const auto* field : picked) {
    if (pairs) reply.array(2);
    reply.bulk(field->name);
    if (values) reply.bulk(field->value);
  }
}

void hrandfield(Context& context, Words words, Reply& reply) {
  std::int64_t count = 0;
  if (words.size() > 2 && !read_count(words[2], count, reply)) return;
  if (words.size() > 4 || (words.size() == 4 && !same_word(words[3], "withvalues")))
    return reply.error(syntax_error);
  Hash* hash = nullptr;
  if (!find_as(context, words[1], hash, reply)) return;
  if (words.size() == 2)
    return hash ? reply.bulk(hash->random(context.engine().rng).name) : reply.null();
  if (!hash) return reply.array(0);
  random_fields(*hash, count, words.size() == 4, context, reply);
}

void hscan(Context& context, Words words, Reply& reply) {
  ScanOptions options;
  Hash* hash = nullptr;
  if (!read_cursor(words[2], options.cursor, reply) || !find_as(context, words[1], hash, reply))
    return;
  std::vector<std::string> found;
  if (!hash) return reply_scan(reply, 0, found);
  if (!read_scan(words, 2, false, options, reply)) return;
  const auto cursor = scan_some(*hash, options, [&](const Hash::Field& field) {
    if (options.matches(field.name)) found.insert(found.end(), {field.name, field.value});
  });
  reply_scan(reply, cursor, found);
}

constexpr Handlers::Row rows[] = {
    {"hset", hset},
    {"hmset", hmset},
    {"hsetnx", hsetnx},
    {"hget", hget},
    {"hmget", hmget},
    {"hgetall", hgetall},
    {"hdel", hdel},
    {"hlen", hlen},
    {"hexists", hexists},
    {"hstrlen", hstrlen},
    {"hincrby", hincrby},
    {"hincrbyfloat", hincrbyfloat},
    {"hkeys", all_of<&Hash::Field::name>},
    {"hvals", all_of<&Hash::Field::value>},
    {"hrandfield", hrandfield},
    {"hscan", hscan},
};

}  // namespace

void add_hash_commands(Handlers& handlers) { handlers.add(rows); }

}  // namespace sluice::engine
