#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "proxy/redis/readers.hpp"
#include "proxy/redis/redis_protocol.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy {
namespace {

constexpr std::size_t shown_bytes = 128;  // of what a client has sent, as in Redis

std::string shown_arguments(Words words) {
  std::string shown;
  for (const auto word : words.subspan(1)) {
    if (shown.size() >= shown_bytes) break;
    shown += fmt::format("'{}' ", word.substr(0, shown_bytes - shown.size()));
  }
  return shown;
}

using Replies = std::span<const FragmentReply>;

bool is_error(const FragmentReply& fragment) noexcept {
  return fragment.failed || element_at(without_attributes(fragment.reply)).is_error();
}

bool append_first_error(std::string& out, Replies replies, bool strict) {
  const auto failed = std::ranges::find_if(replies, is_error);
  if (failed == replies.end()) return false;
  out += failed->failed || !strict ? without_attributes(failed->reply)
                                   : failure_reply(Failure::invalid);
  return true;
}

/// The servers replied with other types than the command gives.
void misfit(std::string& out) { out += error_reply("the servers' replies do not fit one another"); }

/// The elements of an array; empty and false when it is none.
bool open_array(std::string_view& reply, std::size_t& count) noexcept {
  reply = without_attributes(reply);
  const auto header = element_at(reply);
  if ((header.type != '*' && header.type != '~') || header.null) return false;
  reply.remove_prefix(header.size);
  count = header.children;
  return true;
}

/// Takes `count` elements, attributes and all.
std::string_view take(std::string_view& elements, std::size_t count) noexcept {
  std::size_t size = 0;
  for (; count > 0; --count) size += reply_size(elements.substr(size));
  const auto taken = elements.substr(0, size);
  elements.remove_prefix(size);
  return taken;
}

/// What of `fragment` belongs to each of its keys.
bool place(const FragmentReply& fragment, std::size_t items_per_key,
           std::span<std::string_view> by_key) {
  auto elements = fragment.reply;
  std::size_t count = 0;
  if (!open_array(elements, count) || count != fragment.keys.size() * items_per_key) return false;
  for (const auto key : fragment.keys) by_key[key] = take(elements, items_per_key);
  return true;
}

void by_key(std::string& out, const Plan& plan, Replies replies) {
  std::vector<std::string_view> found(plan.keys.size());
  for (const auto& fragment : replies) {
    if (is_error(fragment)) {
      for (const auto key : fragment.keys) found[key] = without_attributes(fragment.reply);
    } else if (!place(fragment, plan.items_per_key, found)) {
      return misfit(out);
    }
  }
  resp::ReplyWriter{out}.array(found.size() * plan.items_per_key);
  for (const auto item : found) out += item;
}

void sum(std::string& out, const Plan&, Replies replies) {
  std::int64_t total = 0;
  for (const auto& fragment : replies) {
    const auto element = element_at(without_attributes(fragment.reply));
    if (element.type != ':') return misfit(out);
    total = static_cast<std::int64_t>(static_cast<std::uint64_t>(total) +
                                      static_cast<std::uint64_t>(element.number));
  }
  resp::ReplyWriter{out}.integer(total);
}

void first(std::string& out, const Plan&, Replies replies) {
  out += without_attributes(replies.front().reply);
}

void concatenate(std::string& out, const Plan&, Replies replies) {
  std::size_t total = 0;
  std::vector<std::string_view> parts;
  for (const auto& fragment : replies) {
    std::size_t count = 0;
    auto elements = fragment.reply;
    if (!open_array(elements, count)) return misfit(out);
    total += count;
    parts.push_back(elements);
  }
  resp::ReplyWriter{out}.array(total);
  for (const auto part : parts) out += part;
}

void all_elements(std::string& out, const Plan&, Replies replies) {
  std::vector<std::int64_t> least;
  for (const auto& fragment : replies) {
    std::size_t count = 0;
    auto elements = fragment.reply;
    if (!open_array(elements, count)) return misfit(out);
    if (&fragment == &replies.front()) least.assign(count, 1);
    if (count != least.size()) return misfit(out);
    for (auto& value : least) value = std::min(value, element_at(take(elements, 1)).number);
  }
  resp::ReplyWriter writer{out};
  writer.array(least.size());
  for (const auto value : least) writer.integer(value);
}

void found(std::string& out, const Plan& plan, Replies replies) {
  const auto one = std::ranges::find_if(replies, [](const FragmentReply& fragment) {
    return !element_at(without_attributes(fragment.reply)).null;
  });
  first(
      out, plan,
      one == replies.end() ? replies : replies.last(static_cast<std::size_t>(replies.end() - one)));
}

using Merger = void (*)(std::string&, const Plan&, Replies);
constexpr std::array<Merger, 8> mergers{first, by_key,      sum,          first,
                                        first, concatenate, all_elements, found};  // by Merge

}  // namespace

std::string error_reply(std::string_view text) {
  std::string reply;
  resp::ReplyWriter{reply}.error(fmt::format("ERR {}", text));
  return reply;
}

std::string unknown_command(Words words, std::string_view pool) {
  const auto* const container = resp::find_command(words[0]);
  if (container != nullptr && words.size() > 1) {
    std::string name{container->name};
    std::ranges::transform(name, name.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    });
    return error_reply(fmt::format("unknown subcommand '{}'. Try {} HELP.",
                                   words[1].substr(0, shown_bytes), name));
  }
  return error_reply(fmt::format(
      "unknown command '{}', with args beginning with: {}(name it in the setting `commands` of "
      "pool '{}' if the servers know it)",
      words[0].substr(0, shown_bytes), shown_arguments(words), pool));
}

std::string wrong_arity(std::string_view command) {
  return error_reply(fmt::format("wrong number of arguments for '{}' command", command));
}

std::string not_served(std::string_view command, Never never) {
  static constexpr std::array<std::string_view, 4> rows{
      "'{}' cannot be served by a proxy: ask the server itself",
      "'{}' cannot be served by a proxy: the server would answer for all clients that share its "
      "connection",
      "This instance has cluster support disabled",  // what a server without it says
      "'{}' looks at all keys of a server: it is served where a pool has one server",
  };
  return error_reply(fmt::format(fmt::runtime(rows[static_cast<std::size_t>(never)]), command));
}

std::string_view failure_reply(Failure failure) noexcept {
  static constexpr std::array<std::string_view, 10> rows{
      "-ERR Connection refused\r\n",
      "-ERR Connection timed out\r\n",
      "-ERR Connection reset by peer\r\n",
      "-ERR Host is down\r\n",
      "-ERR Invalid argument\r\n",
      "-ERR unknown\r\n",
      "-CROSSSLOT Keys in request don't have the same home: they are on different servers\r\n",
      "-ERR the proxy is at a limit of its own, nothing was done: try again later\r\n",
      "-ERR the server's reply is beyond reply_size_limit\r\n",
      "-ERR rate limit of this user or address reached, nothing was done: try again later\r\n",
  };
  return rows[static_cast<std::size_t>(failure)];
}

void append_merged_replies(std::string& out, const Plan& plan, Replies replies,
                           RedisMerging merging) {
  const bool error_for_each = plan.merge == Merge::by_key && merging.partial;
  if (!error_for_each && append_first_error(out, replies, merging.strict)) return;
  mergers[static_cast<std::size_t>(plan.merge)](out, plan, replies);
}

}  // namespace sluice::proxy
