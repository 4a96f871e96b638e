// Walking through the keys: SCAN, KEYS, RANDOMKEY, DBSIZE. And what the other scans share.
#include <charconv>
#include <limits>

#include "engine/commands/scan.hpp"

namespace sluice::engine {

bool read_cursor(std::string_view word, std::uint64_t& cursor, Reply& reply) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), cursor);
  return (error == std::errc{} && end == word.data() + word.size()) ||
         fail(reply, "ERR invalid cursor");
}

bool read_scan(Words words, std::size_t place, bool with_type, ScanOptions& options, Reply& reply) {
  if (!read_cursor(words[place], options.cursor, reply)) return false;
  for (auto i = place + 1; i < words.size(); i += 2) {
    const bool has_value = i + 1 < words.size();
    if (same_word(words[i], "count") && has_value) {
      std::int64_t count = 0;
      if (!read_integer(words[i + 1], count, reply)) return false;
      if (count < 1) return fail(reply, syntax_error);
      options.count = static_cast<std::size_t>(count);
    } else if (same_word(words[i], "match") && has_value) {
      options.pattern = words[i + 1] == "*" ? std::string_view{} : words[i + 1];
    } else if (with_type && same_word(words[i], "type") && has_value) {
      options.type = words[i + 1];
    } else {
      return fail(reply, syntax_error);
    }
  }
  return true;
}

void reply_scan(Reply& reply, std::uint64_t cursor, const std::vector<std::string>& found) {
  reply.array(2);
  reply.bulk(std::to_string(cursor));
  reply.array(found.size());
  for (const auto& text : found) reply.bulk(text);
}

namespace {

void scan(Context& context, Words words, Reply& reply) {
  ScanOptions options;
  if (!read_scan(words, 1, true, options, reply)) return;
  std::vector<std::string> found;
  auto& keys = context.keys();
  const auto cursor = scan_some(keys, options, [&](const Entry& entry) {
    const bool type_fits = options.type.empty() || same_word(options.type, type_name(entry.object));
    if (type_fits && options.matches(entry.key())) found.emplace_back(entry.key());
  });
  // Not while scanning: a key past its time is deleted when it is looked up.
  std::erase_if(found,
                [&](const std::string& key) { return !keys.find_entry(key, context.now_ms()); });
  reply_scan(reply, cursor, found);
}

void keys_matching(Context& context, Words words, Reply& reply) {
  std::vector<std::string> found;
  auto& keys = context.keys();
  keys.for_each([&](const Entry& entry) {
    if (words[1] == "*" || glob_matches(words[1], entry.key())) found.emplace_back(entry.key());
  });
  std::erase_if(found,
                [&](const std::string& key) { return !keys.find_entry(key, context.now_ms()); });
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

void dbsize(Context& context, Words, Reply& reply) {
  reply.integer(static_cast<std::int64_t>(context.keys().size()));
}

constexpr Handlers::Row rows[] = {
    {"scan", scan}, {"keys", keys_matching}, {"randomkey", randomkey}, {"dbsize", dbsize}};

}  // namespace

void add_scan_commands(Handlers& handlers) { handlers.add(rows); }

}  // namespace sluice::engine
