#include "resp/replica_reads.hpp"

#include <algorithm>
#include <vector>

#include "resp/reply_parser.hpp"
#include "sluice/error.hpp"

namespace sluice::resp {
namespace {

bool begins_items(char type) noexcept { return type == '*' || type == '%' || type == '~'; }

/// A string of ten bytes or more, which need not be read: "$10" and so on, not "$-1".
bool is_long_string(std::string_view reply) noexcept {
  return reply.front() == '$' && !reply.starts_with("$-") && reply.find('\r') > 2;
}

}  // namespace

bool may_read_from_replica(const CommandSpec& spec, std::size_t keys, bool is_sharded) {
  if (!spec.has(flag_readonly) || keys == 0) return false;
  if (spec.name.ends_with("scan") || spec.name == "touch") return false;
  const bool is_script = spec.has(flag_noscript);
  const bool reads_others = spec.name == "sort_ro";  // by patterns
  return !is_sharded || (keys == 1 && !is_script && !reads_others);
}

bool may_read_from_replica(std::span<const std::string_view> words, bool is_sharded) {
  const auto* const spec = find_command(words);
  if (!spec || (spec->has(flag_blocking) && waiting_time(*spec, words))) return false;
  std::vector<std::size_t> keys;
  return keys_of(*spec, words, keys) && may_read_from_replica(*spec, keys.size(), is_sharded);
}

bool proves_presence(const Value& reply) {
  if (reply.is_aggregate())
    return std::ranges::any_of(reply.as_items(),
                               [](const Value& item) { return proves_presence(item); });
  if (reply.is_null() || reply.is_error()) return false;
  if (reply.is_text()) return !reply.as_text().empty() && reply.as_text() != "none";
  switch (reply.type()) {
    case Value::Type::integer: return reply.as_integer() > 0;
    case Value::Type::boolean: return reply.as_boolean();
    default: return reply.as_number() != 0;
  }
}

/// Item by item, at whatever depth.
bool proves_presence(std::string_view reply) try {
  ReplyParser parser;
  while (!reply.empty()) {
    if (begins_items(reply.front())) {
      reply.remove_prefix(std::min(reply.find('\n'), reply.size() - 1) + 1);
      continue;
    }
    if (is_long_string(reply)) return true;
    const auto value = parser.next(reply);
    if (value && proves_presence(*value)) return true;
  }
  return false;
} catch (const Error&) {  // no RESP
  return false;
}

}  // namespace sluice::resp
