/// XINFO.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "engine/commands/stream_command.hpp"

namespace sluice::engine {

namespace {

bool find_stream(Context& context, std::string_view key, Stream*& stream, Reply& reply) {
  if (!find_as(context, key, stream, reply)) return false;
  return stream || fail(reply, no_such_key);
}

void named(Reply& reply, std::string_view name, std::int64_t value) {
  reply.bulk(name);
  reply.integer(value);
}

void named(Reply& reply, std::string_view name, StreamId id) {
  reply.bulk(name);
  reply_id(reply, id);
}

void named_or_null(Reply& reply, std::string_view name, std::optional<std::int64_t> value) {
  if (value) return named(reply, name, *value);
  reply.bulk(name);
  reply.null();
}

std::optional<std::int64_t> entries_read(const StreamGroup& group) {
  if (group.entries_read == StreamGroup::unknown) return std::nullopt;
  return group.entries_read;
}

void reply_head(Reply& reply, const Stream& stream) {
  // Redis counts the nodes of its tree; one block is one node here.
  const auto length = static_cast<std::int64_t>(stream.size());
  const auto blocks = static_cast<std::int64_t>(stream.block_count());
  named(reply, "length", length);
  named(reply, "radix-tree-keys", blocks);
  named(reply, "radix-tree-nodes", blocks + 1);
  named(reply, "last-generated-id", stream.last_id);
  named(reply, "max-deleted-entry-id", stream.max_deleted_id);
  named(reply, "entries-added", static_cast<std::int64_t>(stream.entries_added));
  named(reply, "recorded-first-entry-id", stream.first_id());
}

std::optional<Stream::Entry> first_entry(const Stream& stream) {
  std::optional<Stream::Entry> found;
  stream.visit({}, StreamId::max(),
               [&](const Stream::Entry& entry) { return found.emplace(entry), false; });
  return found;
}

std::optional<Stream::Entry> last_entry(const Stream& stream) {
  std::optional<Stream::Entry> found;
  stream.visit_backward({}, StreamId::max(),
                        [&](const Stream::Entry& entry) { return found.emplace(entry), false; });
  return found;
}

void reply_optional(Reply& reply, const std::optional<Stream::Entry>& entry) {
  entry ? reply_entry(reply, *entry) : reply.null();
}

std::size_t shown(std::size_t size, std::size_t most) {
  return most == 0 ? size : std::min(size, most);
}

void reply_consumer_in_full(Reply& reply, const StreamGroup::Consumer& consumer, std::size_t most) {
  reply.map(4);
  reply.bulk("name");
  reply.bulk(consumer.name);
  named(reply, "seen-time", consumer.seen_ms);
  named(reply, "pel-count", static_cast<std::int64_t>(consumer.pending.size()));
  reply.bulk("pending");
  auto left = shown(consumer.pending.size(), most);
  reply.array(left);
  for (auto at = consumer.pending.begin(); left > 0; ++at, --left) {
    reply.array(3);
    reply_id(reply, at->first);
    reply.integer(at->second->delivered_ms);
    reply.integer(static_cast<std::int64_t>(at->second->deliveries));
  }
}

void reply_group_in_full(Reply& reply, const Stream& stream, std::string_view name,
                         const StreamGroup& group, std::size_t most) {
  reply.map(7);
  reply.bulk("name");
  reply.bulk(name);
  named(reply, "last-delivered-id", group.last_id);
  named_or_null(reply, "entries-read", entries_read(group));
  named_or_null(reply, "lag", stream.lag(group));
  named(reply, "pel-count", static_cast<std::int64_t>(group.pending().size()));
  reply.bulk("pending");
  auto left = shown(group.pending().size(), most);
  reply.array(left);
  for (auto at = group.pending().begin(); left > 0; ++at, --left) {
    reply.array(4);
    reply_id(reply, at->first);
    reply.bulk(at->second.consumer->name);
    reply.integer(at->second.delivered_ms);
    reply.integer(static_cast<std::int64_t>(at->second.deliveries));
  }
  reply.bulk("consumers");
  reply.array(group.consumers().size());
  for (const auto& [consumer_name, consumer] : group.consumers())
    reply_consumer_in_full(reply, consumer, most);
}

void reply_in_full(Reply& reply, const Stream& stream, std::size_t most) {
  reply.map(9);
  reply_head(reply, stream);
  reply.bulk("entries");
  std::vector<Stream::Entry> entries;
  stream.visit({}, StreamId::max(), [&](const Stream::Entry& entry) {
    entries.push_back(entry);
    return most == 0 || entries.size() < most;
  });
  reply.array(entries.size());
  for (const auto& entry : entries) reply_entry(reply, entry);
  reply.bulk("groups");
  reply.array(stream.groups.size());
  for (const auto& [name, group] : stream.groups)
    reply_group_in_full(reply, stream, name, group, most);
}

void xinfo_stream(Context& context, Words words, Reply& reply) {
  std::int64_t count = 10;
  const bool full = words.size() > 3;
  if (full) {
    const bool counted = words.size() == 6 && same_word(words[4], "count");
    if (!same_word(words[3], "full") || (words.size() != 4 && !counted))
      return reply.error(fmt::format(
          "ERR unknown subcommand or wrong number of arguments for '{}'. Try XINFO HELP.",
          words[1]));
    if (counted && !read_integer(words[5], count, reply)) return;
    count = counted && count < 0 ? 10 : count;
  }
  Stream* stream = nullptr;
  if (!find_stream(context, words[2], stream, reply)) return;
  if (full) return reply_in_full(reply, *stream, static_cast<std::size_t>(count));

  reply.map(10);
  reply_head(reply, *stream);
  named(reply, "groups", static_cast<std::int64_t>(stream->groups.size()));
  reply.bulk("first-entry");
  reply_optional(reply, first_entry(*stream));
  reply.bulk("last-entry");
  reply_optional(reply, last_entry(*stream));
}

void xinfo_groups(Context& context, Words words, Reply& reply) {
  Stream* stream = nullptr;
  if (!find_stream(context, words[2], stream, reply)) return;
  reply.array(stream->groups.size());
  for (const auto& [name, group] : stream->groups) {
    reply.map(6);
    reply.bulk("name");
    reply.bulk(name);
    named(reply, "consumers", static_cast<std::int64_t>(group.consumers().size()));
    named(reply, "pending", static_cast<std::int64_t>(group.pending().size()));
    named(reply, "last-delivered-id", group.last_id);
    named_or_null(reply, "entries-read", entries_read(group));
    named_or_null(reply, "lag", stream->lag(group));
  }
}

void xinfo_consumers(Context& context, Words words, Reply& reply) {
  Stream* stream = nullptr;
  if (!find_stream(context, words[2], stream, reply)) return;
  const auto found = stream->groups.find(words[3]);
  if (found == stream->groups.end())
    return reply.error(
        fmt::format("NOGROUP No such consumer group '{}' for key name '{}'", words[3], words[2]));
  reply.array(found->second.consumers().size());
  for (const auto& [name, consumer] : found->second.consumers()) {
    reply.map(3);
    reply.bulk("name");
    reply.bulk(name);
    named(reply, "pending", static_cast<std::int64_t>(consumer.pending.size()));
    named(reply, "idle", std::max<std::int64_t>(0, context.now_ms() - consumer.seen_ms));
  }
}

constexpr Handlers::Row commands[] = {
    {"xinfo|stream", xinfo_stream},
    {"xinfo|groups", xinfo_groups},
    {"xinfo|consumers", xinfo_consumers},
};

}  // namespace

void add_stream_info_commands(Handlers& handlers) { handlers.add(commands); }

}  // namespace sluice::engine
