/// XGROUP and XACK.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/commands/stream_command.hpp"

namespace sluice::engine {

namespace {

struct Create {
  bool make_stream = false;
  std::int64_t entries_read = StreamGroup::unknown;
};

bool read_create(Words words, bool creates, Create& create, Reply& reply) {
  for (std::size_t at = 5; at < words.size(); ++at) {
    if (creates && same_word(words[at], "mkstream")) {
      create.make_stream = true;
    } else if (same_word(words[at], "entriesread") && at + 1 < words.size()) {
      if (!read_integer(words[++at], create.entries_read, reply)) return false;
      if (create.entries_read < 0 && create.entries_read != StreamGroup::unknown)
        return fail(reply, "ERR value for ENTRIESREAD must be positive or -1");
    } else {
      return fail(
          reply,
          fmt::format(
              "ERR unknown subcommand or wrong number of arguments for '{}'. Try XGROUP HELP.",
              words[1]));
    }
  }
  return true;
}

/// The stream that XGROUP works on.
bool find_stream(Context& context, std::string_view key, Stream*& stream, Reply& reply) {
  if (!find_as(context, key, stream, reply)) return false;
  return stream || fail(reply,
                        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE "
                        "you may want to use "
                        "the MKSTREAM option to create an empty stream automatically.");
}

bool read_group_id(std::string_view word, const Stream* stream, StreamId& id, Reply& reply) {
  if (word != "$") return read_stream_id(word, id, reply);
  id = stream ? stream->last_id : StreamId{};
  return true;
}

/// The group named by the words of XGROUP; false: refused.
bool find_named(Context& context, Words words, Stream*& stream, StreamGroup*& group, Reply& reply) {
  if (!find_stream(context, words[2], stream, reply)) return false;
  const auto found = stream->groups.find(words[3]);
  if (found == stream->groups.end()) {
    reply.error(
        fmt::format("NOGROUP No such consumer group '{}' for key name '{}'", words[3], words[2]));
    return false;
  }
  group = &found->second;
  return true;
}

void xgroup_create(Context& context, Words words, Reply& reply) {
  Create create;
  if (!read_create(words, true, create, reply)) return;
  Stream* stream = nullptr;
  StreamId id;
  if (create.make_stream ? !find_as(context, words[2], stream, reply)
                         : !find_stream(context, words[2], stream, reply))
    return;
  if (!read_group_id(words[4], stream, id, reply)) return;
  if (!stream) {
    stream = &make<Stream>(context, words[2]);
    context.signal(words[2]);
  }
  const auto [place, made] =
      stream->groups.try_emplace(std::string{words[3]}, id, create.entries_read);
  if (!made) return reply.error("BUSYGROUP Consumer Group name already exists");
  context.changed();
  reply.ok();
}

void xgroup_setid(Context& context, Words words, Reply& reply) {
  Create create;
  if (!read_create(words, false, create, reply)) return;
  Stream* stream = nullptr;
  StreamGroup* group = nullptr;
  StreamId id;
  if (!find_named(context, words, stream, group, reply) ||
      !read_group_id(words[4], stream, id, reply))
    return;
  group->last_id = id;
  group->entries_read = create.entries_read;
  context.changed();
  reply.ok();
}

void xgroup_destroy(Context& context, Words words, Reply& reply) {
  Stream* stream = nullptr;
  if (!find_stream(context, words[2], stream, reply)) return;
  const auto found = stream->groups.find(words[3]);
  if (found == stream->groups.end()) return reply.integer(0);
  stream->groups.erase(found);
  context.changed();
  context.signal(words[2]);  // who waits for the group is told that it is gone
  reply.integer(1);
}

void xgroup_createconsumer(Context& context, Words words, Reply& reply) {
  Stream* stream = nullptr;
  StreamGroup* group = nullptr;
  if (!find_named(context, words, stream, group, reply)) return;
  if (group->find_consumer(words[4])) return reply.integer(0);
  group->add_consumer(words[4], context.now_ms());
  context.changed();
  reply.integer(1);
}

void xgroup_delconsumer(Context& context, Words words, Reply& reply) {
  Stream* stream = nullptr;
  StreamGroup* group = nullptr;
  if (!find_named(context, words, stream, group, reply)) return;
  if (!group->find_consumer(words[4])) return reply.integer(0);
  reply.integer(static_cast<std::int64_t>(group->erase_consumer(words[4])));
  context.changed();
}

void xack(Context& context, Words words, Reply& reply) {
  std::vector<StreamId> ids(words.size() - 3);
  Stream* stream = nullptr;
  if (!find_as(context, words[1], stream, reply)) return;
  const auto found = stream ? stream->groups.find(words[2]) : decltype(stream->groups.end()){};
  if (!stream || found == stream->groups.end()) return reply.integer(0);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (!read_stream_id(words[i + 3], ids[i], reply)) return;
  const auto acknowledged =
      std::ranges::count_if(ids, [&](StreamId id) { return found->second.acknowledge(id); });
  context.changed(static_cast<std::size_t>(acknowledged));
  reply.integer(acknowledged);
}

constexpr Handlers::Row commands[] = {
    {"xgroup|create", xgroup_create},           {"xgroup|setid", xgroup_setid},
    {"xgroup|destroy", xgroup_destroy},         {"xgroup|createconsumer", xgroup_createconsumer},
    {"xgroup|delconsumer", xgroup_delconsumer}, {"xack", xack},
};

}  // namespace

void add_stream_group_commands(Handlers& handlers) { handlers.add(commands); }

}  // namespace sluice::engine
