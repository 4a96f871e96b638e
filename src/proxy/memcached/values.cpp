#include <algorithm>
#include <vector>

#include "base/integer.hpp"
#include "proxy/memcached/readers.hpp"

namespace sluice::proxy {
namespace {

constexpr std::string_view line_end = "\r\n";
constexpr std::string_view end_line = "END\r\n";

/// The word at `place` of a line.
std::string_view word_at(std::string_view line, int place) noexcept {
  for (; place > 0; --place) {
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos) return {};
    line.remove_prefix(blank + 1);
  }
  return line.substr(0, line.find(' '));
}

/// Puts the values of a fragment at the places of its keys. A server answers in the order of the
/// keys and leaves out what it has not. `close_up`: what follows moves up into its place. False: it
/// has answered something else.
bool place_values(std::span<std::string_view> by_key, Words words, const Plan& plan,
                  const FragmentReply& fragment, bool close_up) {
  auto rest = fragment.reply;
  auto key = fragment.keys.begin();
  auto place = fragment.keys.begin();
  while (const auto value = take_value(rest)) {
    key = std::find_if(key, fragment.keys.end(),
                       [&](std::uint32_t at) { return words[plan.keys[at]] == value->key; });
    if (key == fragment.keys.end()) return false;
    by_key[close_up ? *place++ : *key] = value->bytes;
    ++key;
  }
  return rest == end_line;
}

bool has_failed(const FragmentReply& fragment) noexcept {
  return fragment.failed || is_memcached_error(fragment.reply);
}

void merge_values(std::string& out, Words words, const Plan& plan,
                  std::span<const FragmentReply> replies, bool close_up) {
  std::vector<std::string_view> by_key(plan.keys.size());
  for (const auto& fragment : replies) {
    if (has_failed(fragment)) continue;
    if (!place_values(by_key, words, plan, fragment, close_up)) {
      out += "SERVER_ERROR the servers' replies do not fit the keys\r\n";
      return;
    }
  }
  for (const auto value : by_key) out += value;
  out += end_line;
}

/// "STAT ..." of all, and one END; what has none ("RESET") is the same of all.
void merge_statistics(std::string& out, std::span<const FragmentReply> replies) {
  const auto lines = [](const FragmentReply& fragment) {
    return fragment.reply.ends_with(end_line);
  };
  if (!std::ranges::all_of(replies, lines)) {
    out += replies.front().reply;
    return;
  }
  for (const auto& fragment : replies)
    out += fragment.reply.substr(0, fragment.reply.size() - end_line.size());
  out += end_line;
}

}  // namespace

std::optional<std::size_t> value_size(std::string_view line) noexcept {
  constexpr std::size_t most = std::size_t{1} << 40;
  const auto size = parse_integer<std::size_t>(word_at(line, line.starts_with("VALUE ") ? 3 : 1));
  return size && *size <= most ? size : std::nullopt;
}

std::optional<ValueBlock> take_value(std::string_view& reply) noexcept {
  if (!reply.starts_with("VALUE ")) return std::nullopt;
  const auto line = reply.substr(0, reply.find(line_end));
  const auto size = value_size(line).value_or(0);
  const ValueBlock block{word_at(line, 1),
                         reply.substr(0, line.size() + size + 2 * line_end.size())};
  reply.remove_prefix(block.bytes.size());
  return block;
}

bool is_memcached_error(std::string_view reply) noexcept {
  return reply.starts_with("SERVER_ERROR") || reply.starts_with("CLIENT_ERROR") ||
         reply.starts_with("ERROR");
}

void append_merged_replies(std::string& out, Words words, const Plan& plan,
                           std::span<const FragmentReply> replies, MergeStyle style) {
  const bool may_miss = style == MergeStyle::partial && plan.merge == Merge::by_key;
  const auto error = std::ranges::find_if(replies, has_failed);
  if (error != replies.end() && (!may_miss || std::ranges::all_of(replies, has_failed)))
    out += error->reply;
  else if (plan.merge == Merge::by_key)
    merge_values(out, words, plan, replies, style == MergeStyle::twemproxy);
  else if (plan.merge == Merge::concatenate)
    merge_statistics(out, replies);
  else
    out += replies.front().reply;
}

}  // namespace sluice::proxy
