// Walking through the keys: SCAN, KEYS, RANDOMKEY, DBSIZE.
#include "engine/commands/collections.hpp"
#include "engine/commands/families.hpp"

namespace sluice::engine {
namespace {

/// Not while scanning: looking an expired key up deletes it.
void drop_expired(Context& context, std::vector<std::string>& keys) {
  std::erase_if(keys, [&](const std::string& key) { return !find(context, key); });
}

void scan(Context& context, Words words, Reply& reply) {
  ScanOptions options;
  if (!read_scan(words, 1, true, options, reply)) return;
  std::vector<std::string> found;
  const auto cursor = scan_some(context.keys(), options, [&](const Entry& entry) {
    const bool type_fits = options.type.empty() || is_word(options.type, type_name(entry.object));
    if (type_fits && options.matches(entry.key())) found.emplace_back(entry.key());
  });
  drop_expired(context, found);
  reply_scan(reply, cursor, found);
}

void keys_matching(Context& context, Words words, Reply& reply) {
  std::vector<std::string> found;
  context.keys().for_each([&](const Entry& entry) {
    if (words[1] == "*" || glob_matches(words[1], entry.key())) found.emplace_back(entry.key());
  });
  drop_expired(context, found);
  reply.array(found.size());
  for (const auto& key : found) reply.bulk(key);
}

void randomkey(Context& context, Words, Reply& reply) {
  auto& keys = context.keys();
  while (keys.size() > 0) {
    const std::string key{keys.random(context.engine().rng).key()};
    if (context.engine().loading || keys.find_entry(key, context.now_ms())) return reply.bulk(key);
  }
  reply.null();
}

void dbsize(Context& context, Words, Reply& reply) { reply.count(context.keys().size()); }

constexpr CommandRow rows[] = {
    {"dbsize", dbsize}, {"keys", keys_matching}, {"randomkey", randomkey}, {"scan", scan}};

}  // namespace

CommandRows scan_commands() noexcept { return rows; }

}  // namespace sluice::engine
