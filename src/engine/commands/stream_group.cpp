// XGROUP, XACK and XINFO.
#include <fmt/format.h>

#include <algorithm>

#include "engine/commands/families.hpp"
#include "engine/commands/stream_shared.hpp"

namespace sluice::engine {
namespace {

struct Create {
  bool make_stream = false;
  std::int64_t entries_read = StreamGroup::unknown;
};

Create read_create(Words words, bool creates) {
  Create create;
  for (std::size_t at = 5; at < words.size(); ++at) {
    if (creates && is_word(words[at], "mkstream")) {
      create.make_stream = true;
    } else if (is_word(words[at], "entriesread") && at + 1 < words.size()) {
      create.entries_read = read_integer(words[++at]);
      if (create.entries_read < 0 && create.entries_read != StreamGroup::unknown)
        refuse("ERR value for ENTRIESREAD must be positive or -1");
    } else {
      refuse(fmt::format(
          "ERR unknown subcommand or wrong number of arguments for '{}'. Try XGROUP HELP.",
          words[1]));
    }
  }
  return create;
}

constexpr std::string_view no_stream =
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use "
    "the MKSTREAM option to create an empty stream automatically.";

StreamId read_group_id(std::string_view word, const Stream* stream) {
  if (word != "$") return read_stream_id(word);
  return stream ? stream->last_id : StreamId{};
}

/// The stream and group that XGROUP names.
FoundGroup find_named(Context& context, Words words) {
  auto& stream = find_stream(context, words[2], no_stream);
  return {stream, find_named_group(words, stream)};
}

void xgroup_create(Context& context, Words words, Reply& reply) {
  const auto create = read_create(words, true);
  auto* stream = find_as<Stream>(context, words[2]);
  if (!stream && !create.make_stream) refuse(no_stream);
  const auto id = read_group_id(words[4], stream);
  if (!stream) {
    stream = &make<Stream>(context, words[2]);
    context.signal(words[2]);
  }
  if (!stream->add_group(words[3], id, create.entries_read, context.undo()))
    return reply.error("BUSYGROUP Consumer Group name already exists");
  context.changed();
  reply.ok();
}

void xgroup_setid(Context& context, Words words, Reply& reply) {
  const auto create = read_create(words, false);
  const auto [stream, group] = find_named(context, words);
  // Unlike CREATE it takes the ends of all ids.
  const auto id = words[4] == "-"   ? StreamId{}
                  : words[4] == "+" ? StreamId::max()
                                    : read_group_id(words[4], &stream);
  group.expect_move(context.undo());
  group.last_id = id;
  group.entries_read = create.entries_read;
  context.changed();
  reply.ok();
}

void xgroup_destroy(Context& context, Words words, Reply& reply) {
  auto& stream = find_stream(context, words[2], no_stream);
  if (!stream.erase_group(words[3], context.undo())) return reply.integer(0);
  context.changed();
  context.signal(words[2]);  // a blocked XREADGROUP of this group ends with an error
  reply.integer(1);
}

void xgroup_createconsumer(Context& context, Words words, Reply& reply) {
  auto& group = find_named(context, words).group;
  if (group.find_consumer(words[4])) return reply.integer(0);
  group.add_consumer(words[4], context.now_ms(), context.undo());
  context.changed();
  reply.integer(1);
}

void xgroup_delconsumer(Context& context, Words words, Reply& reply) {
  auto& group = find_named(context, words).group;
  if (!group.find_consumer(words[4])) return reply.integer(0);
  reply.count(group.erase_consumer(words[4], context.undo()));
  context.changed();
}

void xack(Context& context, Words words, Reply& reply) {
  std::vector<StreamId> ids(words.size() - 3);
  auto* stream = find_as<Stream>(context, words[1]);
  auto* group = group_of(stream, words[2]);
  if (!group) return reply.integer(0);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = read_stream_id(words[i + 3]);
  const auto acknowledged = std::ranges::count_if(
      ids, [&](StreamId id) { return group->acknowledge(id, context.undo()); });
  context.changed(static_cast<std::size_t>(acknowledged));
  reply.integer(acknowledged);
}

// --- XINFO ---

/// A field of a reply: a whole number, an id or a text.
template <class T>
void named(Reply& reply, std::string_view name, const T& value) {
  reply.bulk(name);
  if constexpr (std::is_same_v<T, StreamId>)
    reply_id(reply, value);
  else if constexpr (std::is_integral_v<T>)
    reply.integer(static_cast<std::int64_t>(value));
  else
    reply.bulk(value);
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
  const auto blocks = stream.block_count();
  named(reply, "length", stream.size());
  named(reply, "radix-tree-keys", blocks);
  named(reply, "radix-tree-nodes", blocks + 1);
  named(reply, "last-generated-id", stream.last_id);
  named(reply, "max-deleted-entry-id", stream.max_deleted_id);
  named(reply, "entries-added", stream.entries_added);
  named(reply, "recorded-first-entry-id", stream.first_id());
}

void named_entry(Reply& reply, std::string_view name, const Stream& stream, bool last) {
  reply.bulk(name);
  const auto found = entries_of(stream, {}, StreamId::max(), 1, last);
  found.empty() ? reply.null() : reply_entry(reply, found.front());
}

std::size_t shown(std::size_t size, std::size_t most) {
  return most == 0 ? size : std::min(size, most);
}

void reply_consumer_in_full(Reply& reply, const StreamGroup::Consumer& consumer, std::size_t most) {
  reply.map(4);
  named(reply, "name", consumer.name);
  named(reply, "seen-time", consumer.seen_ms);
  named(reply, "pel-count", consumer.pending.size());
  reply.bulk("pending");
  auto left = shown(consumer.pending.size(), most);
  reply.array(left);
  for (auto at = consumer.pending.begin(); left > 0; ++at, --left) {
    reply.array(3);
    reply_id(reply, at->first);
    reply.integer(at->second->delivered_ms);
    reply.count(at->second->deliveries);
  }
}

void reply_group_in_full(Reply& reply, const Stream& stream, std::string_view name,
                         const StreamGroup& group, std::size_t most) {
  reply.map(7);
  named(reply, "name", name);
  named(reply, "last-delivered-id", group.last_id);
  named_or_null(reply, "entries-read", entries_read(group));
  named_or_null(reply, "lag", stream.lag(group));
  named(reply, "pel-count", group.pending().size());
  reply.bulk("pending");
  auto left = shown(group.pending().size(), most);
  reply.array(left);
  for (auto at = group.pending().begin(); left > 0; ++at, --left) {
    reply.array(4);
    reply_id(reply, at->first);
    reply.bulk(at->second.consumer->name);
    reply.integer(at->second.delivered_ms);
    reply.count(at->second.deliveries);
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
  reply_entries(reply, entries_of(stream, {}, StreamId::max(), most == 0 ? all_entries : most));
  reply.bulk("groups");
  reply.array(stream.groups.size());
  for (const auto& [name, group] : stream.groups)
    reply_group_in_full(reply, stream, name, group, most);
}

void xinfo_stream(Context& context, Words words, Reply& reply) {
  std::int64_t count = 10;
  const bool full = words.size() > 3;
  if (full) {
    const bool counted = words.size() == 6 && is_word(words[4], "count");
    if (!is_word(words[3], "full") || (words.size() != 4 && !counted))
      return reply.error(fmt::format(
          "ERR unknown subcommand or wrong number of arguments for '{}'. Try XINFO HELP.",
          words[1]));
    if (counted) count = read_integer(words[5]);
    if (count < 0) count = 10;
  }
  const auto& stream = find_stream(context, words[2]);
  if (full) return reply_in_full(reply, stream, static_cast<std::size_t>(count));

  reply.map(10);
  reply_head(reply, stream);
  named(reply, "groups", stream.groups.size());
  named_entry(reply, "first-entry", stream, false);
  named_entry(reply, "last-entry", stream, true);
}

void xinfo_groups(Context& context, Words words, Reply& reply) {
  const auto& stream = find_stream(context, words[2]);
  reply.array(stream.groups.size());
  for (const auto& [name, group] : stream.groups) {
    reply.map(6);
    named(reply, "name", name);
    named(reply, "consumers", group.consumers().size());
    named(reply, "pending", group.pending().size());
    named(reply, "last-delivered-id", group.last_id);
    named_or_null(reply, "entries-read", entries_read(group));
    named_or_null(reply, "lag", stream.lag(group));
  }
}

void xinfo_consumers(Context& context, Words words, Reply& reply) {
  const auto& group = find_named_group(words, find_stream(context, words[2]));
  reply.array(group.consumers().size());
  for (const auto& [name, consumer] : group.consumers()) {
    reply.map(3);
    named(reply, "name", name);
    named(reply, "pending", consumer.pending.size());
    named(reply, "idle", std::max<std::int64_t>(0, context.now_ms() - consumer.seen_ms));
  }
}

}  // namespace

CommandRows stream_group_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"xack", xack},
      {"xgroup|create", xgroup_create},
      {"xgroup|createconsumer", xgroup_createconsumer},
      {"xgroup|delconsumer", xgroup_delconsumer},
      {"xgroup|destroy", xgroup_destroy},
      {"xgroup|setid", xgroup_setid},
      {"xinfo|consumers", xinfo_consumers},
      {"xinfo|groups", xinfo_groups},
      {"xinfo|stream", xinfo_stream},
  };
  return rows;
}

}  // namespace sluice::engine
