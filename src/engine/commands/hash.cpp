#include <cmath>

#include "engine/commands/collections.hpp"
#include "engine/commands/families.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

/// Sets the fields that follow the key; gives how many are new.
std::int64_t set_fields(Context& context, Words words, std::string_view name) {
  if (words.size() % 2 == 1) refuse_arity(name);
  auto& hash = value_or_new(context, words[1], find_as<Hash>(context, words[1]));
  hash.expect((words.size() - 2) / 2);
  std::int64_t created = 0;
  for (std::size_t i = 2; i < words.size(); i += 2)
    created += hash.set(words[i], words[i + 1], context.undo()) ? 1 : 0;
  context.changed();
  return created;
}

void hset(Context& context, Words words, Reply& reply) {
  reply.integer(set_fields(context, words, "hset"));
}
void hmset(Context& context, Words words, Reply& reply) {
  set_fields(context, words, "hmset");
  reply.ok();
}

void hsetnx(Context& context, Words words, Hash* hash, Reply& reply) {
  if (hash && hash->find(words[2])) return reply.integer(0);
  value_or_new(context, words[1], hash).set(words[2], words[3], context.undo());
  context.changed();
  reply.integer(1);
}

void hget(Context&, Words words, Hash* hash, Reply& reply) {
  reply.bulk_or_null(hash ? hash->find(words[2]) : nullptr);
}

void hmget(Context&, Words words, Hash* hash, Reply& reply) {
  reply.array(words.size() - 2);
  for (const auto& field : words.subspan(2)) reply.bulk_or_null(hash ? hash->find(field) : nullptr);
}

void hgetall(Context&, Words, Hash* hash, Reply& reply) {
  reply.map(hash ? hash->size() : 0);
  if (hash)
    hash->for_each(
        [&](const Hash::Field& field) { reply.bulk(field.name), reply.bulk(field.value); });
}

template <std::string Hash::Field::*part>
void all_of(Context&, Words, Hash* hash, Reply& reply) {
  reply.array(hash ? hash->size() : 0);
  if (hash) hash->for_each([&](const Hash::Field& field) { reply.bulk(field.*part); });
}

void hexists(Context&, Words words, Hash* hash, Reply& reply) {
  reply.integer(hash && hash->find(words[2]) ? 1 : 0);
}

void hstrlen(Context&, Words words, Hash* hash, Reply& reply) {
  const auto* value = hash ? hash->find(words[2]) : nullptr;
  reply.count(value ? value->size() : 0);
}

void hincrby(Context& context, Words words, Reply& reply) {
  const auto by = read_integer(words[3]);
  auto* hash = find_as<Hash>(context, words[1]);
  const auto* old = hash ? hash->find(words[2]) : nullptr;
  auto value = old ? read_integer(*old, "ERR hash value is not an integer") : 0;
  if (__builtin_add_overflow(value, by, &value)) return reply.error(increment_overflows);
  value_or_new(context, words[1], hash).set(words[2], IntegerText{value}, context.undo());
  context.changed();
  reply.integer(value);
}

void hincrbyfloat(Context& context, Words words, Reply& reply) {
  const auto by = parse_long_double(words[3]);
  if (!by) return reply.error(not_a_float);
  if (std::isinf(*by)) return reply.error("ERR value is NaN or Infinity");
  auto* hash = find_as<Hash>(context, words[1]);
  const auto* old = hash ? hash->find(words[2]) : nullptr;
  const auto value = old ? parse_long_double(*old) : 0.0L;
  if (!value) return reply.error("ERR hash value is not a float");
  const auto sum = *value + *by;
  if (std::isnan(sum) || std::isinf(sum)) return reply.error(increment_not_finite);
  const auto result = text_of(sum);
  value_or_new(context, words[1], hash).set(words[2], result, context.undo());
  context.changed();
  context.log_instead({"HSET", words[1], words[2], result});
  reply.bulk(result);
}

}  // namespace

CommandRows hash_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"hdel", on<Hash, remove_elements>},
      {"hexists", on<Hash, hexists>},
      {"hget", on<Hash, hget>},
      {"hgetall", on<Hash, hgetall>},
      {"hincrby", hincrby},
      {"hincrbyfloat", hincrbyfloat},
      {"hkeys", on<Hash, all_of<&Hash::Field::name>>},
      {"hlen", on<Hash, reply_size>},
      {"hmget", on<Hash, hmget>},
      {"hmset", hmset},
      {"hrandfield", random_elements<Hash>},
      {"hscan", scan_elements<Hash>},
      {"hset", hset},
      {"hsetnx", on<Hash, hsetnx>},
      {"hstrlen", on<Hash, hstrlen>},
      {"hvals", on<Hash, all_of<&Hash::Field::value>>},
  };
  return rows;
}

}  // namespace sluice::engine
