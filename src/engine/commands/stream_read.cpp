/// XREAD and XREADGROUP.
#include <fmt/format.h>

#include <algorithm>

#include "engine/commands/families.hpp"
#include "engine/commands/stream_shared.hpp"

namespace sluice::engine {
namespace {

/// One stream to be read and what is known of it.
struct WantedStream {
  std::string_view key;
  std::string_view from;  ///< the word: an id, "$" or ">"
  StreamId after;         ///< read what is after this
  bool fresh = false;     ///< ">": what the group has not delivered yet
  Stream* stream = nullptr;
  StreamGroup* group = nullptr;
  bool ready = false;
};

struct Read {
  bool in_group = false;
  std::string_view group;
  std::string_view consumer;
  std::int64_t count = 0;        ///< 0: all
  std::int64_t timeout_ms = -1;  ///< -1: do not wait
  bool noack = false;
  std::size_t streams_at = 0;  ///< place of the first key
  std::vector<WantedStream> streams;
};

std::int64_t read_timeout_ms(std::string_view word) {
  const auto timeout_ms = read_integer(word, "ERR timeout is not an integer or out of range");
  if (timeout_ms < 0) refuse("ERR timeout is negative");
  return timeout_ms;
}

/// The words up to STREAMS.
Read read_options(Context& context, Words words) {
  Read read;
  const bool may_group = is_word(words[0], "xreadgroup");
  for (std::size_t at = 1; at < words.size(); ++at) {
    const auto left = words.size() - at - 1;
    if (is_word(words[at], "block") && left >= 1) {
      if (context.in_script())
        refuse(
            fmt::format("ERR {} command is not allowed with BLOCK option from scripts", words[0]));
      read.timeout_ms = read_timeout_ms(words[++at]);
    } else if (is_word(words[at], "count") && left >= 1) {
      read.count = std::max<std::int64_t>(read_integer(words[++at]), 0);
    } else if (is_word(words[at], "streams") && left >= 1) {
      read.streams_at = at + 1;
      if (left % 2 != 0)
        refuse(
            "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must "
            "be specified.");
      break;
    } else if (is_word(words[at], "group") && left >= 2) {
      if (!may_group)
        refuse("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.");
      read.in_group = true;
      read.group = words[++at];
      read.consumer = words[++at];
    } else if (is_word(words[at], "noack")) {
      if (!may_group)
        refuse("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.");
      read.noack = true;
    } else {
      refuse(syntax_error);
    }
  }
  if (read.streams_at == 0) refuse(syntax_error);
  if (may_group && !read.in_group) refuse("ERR Missing GROUP option for XREADGROUP");
  return read;
}

void find_wanted(Context& context, const Read& read, WantedStream& wanted) {
  if (!read.in_group) {
    wanted.stream = find_as<Stream>(context, wanted.key);
    return;
  }
  const auto found =
      find_group(context, wanted.key, read.group, " in XREADGROUP with GROUP option");
  wanted.stream = &found.stream;
  wanted.group = &found.group;
}

void read_position(const Read& read, WantedStream& wanted) {
  if (wanted.from == "$") {
    if (read.in_group)
      refuse(
          "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the "
          "history of this "
          "consumer by specifying a proper ID, or use the > ID to get new messages. The $ "
          "ID would just return "
          "an empty result set.");
    wanted.after = wanted.stream ? wanted.stream->last_id : StreamId{};
  } else if (wanted.from == ">") {
    if (!read.in_group)
      refuse(
          "ERR The > ID can be specified only when calling XREADGROUP using the GROUP "
          "<group> <consumer> option.");
    wanted.fresh = true;
    wanted.after = wanted.group->last_id;
  } else {
    wanted.after = read_stream_id(wanted.from);
  }
}

void read_streams(Context& context, Words words, Read& read) {
  const auto count = (words.size() - read.streams_at) / 2;
  read.streams.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto& wanted = read.streams[i];
    wanted.key = words[read.streams_at + i];
    wanted.from = words[read.streams_at + count + i];
    find_wanted(context, read, wanted);
    read_position(read, wanted);
    const bool history = read.in_group && !wanted.fresh;
    const bool news =
        wanted.stream && wanted.stream->size() > 0 && wanted.stream->last_id > wanted.after;
    const bool again = std::any_of(
        read.streams.begin(), read.streams.begin() + static_cast<std::ptrdiff_t>(i),
        [&](const WantedStream& other) { return wanted.fresh && other.group == wanted.group; });
    wanted.ready =
        history || (news && !again);  // what is delivered to the first is not new to the second
  }
}

std::size_t most(const Read& read) {
  return read.count == 0 ? all_entries : static_cast<std::size_t>(read.count);
}

std::vector<Stream::Entry> entries_after(const Stream& stream, StreamId after, std::size_t most) {
  const auto first = after.next();
  return first ? entries_of(stream, *first, StreamId::max(), most) : std::vector<Stream::Entry>{};
}

/// What the consumer was given before and has not acknowledged; a deleted entry has no fields any
/// more.
void reply_history(Context& context, const Read& read, const WantedStream& wanted,
                   StreamGroup::Consumer& consumer, Reply& reply) {
  auto at = consumer.pending.upper_bound(wanted.after);
  const auto begin = at;
  std::size_t count = 0;
  for (; at != consumer.pending.end() && count < most(read); ++at) ++count;
  reply.array(count);
  for (at = begin; count > 0; ++at, --count) {
    const auto entry = wanted.stream->find(at->first);
    if (entry) {
      wanted.group->expect_delivery(at->first, *at->second, context.undo());
      at->second->delivered_ms = context.now_ms();
      ++at->second->deliveries;
      reply_entry(reply, *entry);
    } else {
      reply.array(2);
      reply_id(reply, at->first);
      reply.null_array();
    }
  }
}

void move_group(const Stream& stream, StreamGroup& group, StreamId id) {
  if (group.entries_read != StreamGroup::unknown && !stream.has_gap_after(id)) {
    ++group.entries_read;
  } else if (stream.entries_added > 0) {
    group.entries_read = stream.added_up_to(id);
  }
  group.last_id = id;
}

/// Logs which entries the consumer was given and how far the group is.
void log_delivery(Context& context, const Read& read, const WantedStream& wanted,
                  const std::vector<Stream::Entry>& entries) {
  if (!read.noack) {
    std::vector<StreamIdText> ids;
    ids.reserve(entries.size());
    for (const auto& entry : entries) ids.emplace_back(entry.id());
    log_claim(context, {wanted.key, read.group, read.consumer, context.now_ms()}, ids,
              wanted.group->last_id);
  }
  log_position(context, wanted.key, read.group, *wanted.group);
}

void deliver_fresh(Context& context, const Read& read, const WantedStream& wanted,
                   StreamGroup::Consumer& consumer, Reply& reply) {
  const auto entries = entries_after(*wanted.stream, wanted.after, most(read));
  reply_entries(reply, entries);
  wanted.group->expect_move(context.undo());
  for (const auto& entry : entries) {
    move_group(*wanted.stream, *wanted.group, entry.id());
    if (!read.noack)
      wanted.group->assign(entry.id(), consumer, context.now_ms(), 1, context.undo());
  }
  if (entries.empty()) return;
  context.changed(entries.size());
  log_delivery(context, read, wanted, entries);
}

/// Waits for the keys; what "$" means is settled now.
void wait(Context& context, Words words, const Read& read) {
  std::vector<std::string> keys;
  std::vector<std::string> again{words.begin(), words.end()};
  for (std::size_t i = 0; i < read.streams.size(); ++i) {
    keys.emplace_back(read.streams[i].key);
    if (read.streams[i].from == "$")
      again[read.streams_at + read.streams.size() + i] = StreamIdText{read.streams[i].after}.view();
  }
  context.block(std::move(keys), read.timeout_ms, std::move(again));
}

/// The last id may be that of an entry that was deleted, or of none (XSETID): a reader would be
/// answered with nothing, at once and again and again.
void keep_ready_with_entries(Read& read) {
  for (auto& wanted : read.streams) {
    const bool history = read.in_group && !wanted.fresh;
    if (wanted.ready && !history)
      wanted.ready = !entries_after(*wanted.stream, wanted.after, 1).empty();
  }
}

void xread(Context& context, Words words, Reply& reply) {
  auto read = read_options(context, words);
  read_streams(context, words, read);
  keep_ready_with_entries(read);
  const auto ready = std::ranges::count_if(read.streams, &WantedStream::ready);
  if (ready == 0 && read.in_group)
    for (const auto& wanted : read.streams)
      consumer_of(context, *wanted.group, wanted.key, read.group, read.consumer);
  if (ready == 0) {
    const bool waits = read.timeout_ms >= 0 && context.may_wait();
    return waits ? wait(context, words, read) : reply.null_array();
  }

  const bool as_map = context.session().protocol == 3;
  as_map ? reply.map(static_cast<std::size_t>(ready))
         : reply.array(static_cast<std::size_t>(ready));
  for (const auto& wanted : read.streams) {
    if (!wanted.ready) continue;
    if (!as_map) reply.array(2);
    reply.bulk(wanted.key);
    if (!read.in_group) {
      reply_entries(reply, entries_after(*wanted.stream, wanted.after, most(read)));
      continue;
    }
    auto& consumer = consumer_of(context, *wanted.group, wanted.key, read.group, read.consumer);
    wanted.fresh ? deliver_fresh(context, read, wanted, consumer, reply)
                 : reply_history(context, read, wanted, consumer, reply);
  }
}

}  // namespace

CommandRows stream_read_commands() noexcept {
  static constexpr CommandRow rows[] = {{"xread", xread}, {"xreadgroup", xread}};
  return rows;
}

}  // namespace sluice::engine
