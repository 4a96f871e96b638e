#include "engine/commands/stream_shared.hpp"

#include <fmt/format.h>

#include "engine/core/events.hpp"

namespace sluice::engine {

StreamId read_stream_id(std::string_view word, std::uint64_t missing_seq) {
  const auto parsed = parse_stream_id(word, missing_seq);
  if (!parsed) refuse(invalid_stream_id);
  return *parsed;
}

namespace {

StreamId read_bound(std::string_view word, std::uint64_t missing_seq) {
  if (word == "-") return {};
  if (word == "+") return StreamId::max();
  return read_stream_id(word, missing_seq);
}

bool is_exclusive(std::string_view word) { return word.size() > 1 && word[0] == '('; }

}  // namespace

StreamId read_range_start(std::string_view word) {
  if (!is_exclusive(word)) return read_bound(word, 0);
  const auto next = read_stream_id(word.substr(1)).next();
  if (!next) refuse("ERR invalid start ID for the interval");
  return *next;
}

StreamId read_range_end(std::string_view word) {
  if (!is_exclusive(word)) return read_bound(word, StreamId::most);
  const auto previous = read_stream_id(word.substr(1), StreamId::most).previous();
  if (!previous) refuse("ERR invalid end ID for the interval");
  return *previous;
}

bool TrimOptions::begins(Words words, std::size_t at) {
  return at + 1 < words.size() && (is_word(words[at], "maxlen") || is_word(words[at], "minid") ||
                                   is_word(words[at], "limit"));
}

void TrimOptions::read(Words words, std::size_t& at) {
  const auto name = words[at++];
  if (is_word(name, "limit")) {
    const auto number = read_integer(words[at++]);
    if (number < 0) refuse("ERR The LIMIT argument must be >= 0.");
    trim.limit = static_cast<std::size_t>(number);
    limited = true;
    return;
  }
  if (wanted())
    refuse("ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
  trim.approximate = false;
  if (at + 1 < words.size() && (words[at] == "~" || words[at] == "="))
    trim.approximate = words[at++] == "~";
  if (is_word(name, "minid")) {
    trim.by = Stream::Trim::By::id;
    trim.id = read_stream_id(words[at++]);
    return;
  }
  trim.by = Stream::Trim::By::length;
  const auto number = read_integer(words[at++]);
  if (number < 0) refuse("ERR The MAXLEN argument must be >= 0.");
  trim.length = static_cast<std::size_t>(number);
}

void TrimOptions::settle() {
  constexpr std::size_t usual_limit = 100 * StreamBlock::most_entries;
  if (limited && !wanted())
    refuse("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
  if (limited && !trim.approximate)
    refuse("ERR syntax error, LIMIT cannot be used without the special ~ option");
  if (trim.approximate && !limited) trim.limit = usual_limit;
}

Stream& find_stream(Context& context, std::string_view key, std::string_view missing) {
  auto* stream = find_as<Stream>(context, key);
  if (!stream) refuse(missing);
  return *stream;
}

StreamGroup* group_of(Stream* stream, std::string_view name) {
  if (!stream) return nullptr;
  const auto found = stream->groups.find(name);
  return found == stream->groups.end() ? nullptr : &found->second;
}

FoundGroup find_group(Context& context, std::string_view key, std::string_view name,
                      std::string_view suffix) {
  auto* stream = find_as<Stream>(context, key);
  auto* group = group_of(stream, name);
  if (!group)
    refuse(fmt::format("NOGROUP No such key '{}' or consumer group '{}'{}", key, name, suffix));
  return {*stream, *group};
}

StreamGroup& find_named_group(Words words, Stream& stream) {
  auto* group = group_of(&stream, words[3]);
  if (!group)
    refuse(
        fmt::format("NOGROUP No such consumer group '{}' for key name '{}'", words[3], words[2]));
  return *group;
}

StreamGroup::Consumer& consumer_of(Context& context, StreamGroup& group, std::string_view key,
                                   std::string_view group_name, std::string_view name) {
  auto* consumer = group.find_consumer(name);
  if (!consumer) {
    consumer = &group.add_consumer(name, context.now_ms(), context.undo());
    context.changed();
    context.log_instead({"XGROUP", "CREATECONSUMER", key, group_name, name});
    tell_event(context, context.session().database, event_stream, "xgroup-createconsumer", key);
  }
  StreamGroup::expect_sight(*consumer, context.undo());
  consumer->seen_ms = context.now_ms();
  return *consumer;
}

std::vector<Stream::Entry> entries_of(const Stream& stream, StreamId first, StreamId last,
                                      std::size_t most, bool backward) {
  std::vector<Stream::Entry> entries;
  const auto take = [&](const Stream::Entry& entry) {
    entries.push_back(entry);
    return entries.size() < most;
  };
  backward ? stream.visit_backward(first, last, take) : stream.visit(first, last, take);
  return entries;
}

void reply_id(Reply& reply, StreamId id) { reply.bulk(StreamIdText{id}); }

void reply_entry(Reply& reply, const Stream::Entry& entry) {
  reply.array(2);
  reply_id(reply, entry.id());
  reply.array(2 * entry.field_count());
  entry.visit_fields([&](std::string_view name, std::string_view value) {
    reply.bulk(name);
    reply.bulk(value);
  });
}

void reply_entries(Reply& reply, const std::vector<Stream::Entry>& entries) {
  reply.array(entries.size());
  for (const auto& entry : entries) reply_entry(reply, entry);
}

void log_claim(Context& context, const LoggedClaim& claim, const std::vector<StreamIdText>& ids,
               StreamId last_id) {
  const IntegerText time{claim.delivered_ms};
  const IntegerText deliveries{static_cast<std::int64_t>(claim.deliveries)};
  const StreamIdText last{last_id};
  std::vector<std::string_view> words{"XCLAIM", claim.key, claim.group_name, claim.consumer, "0"};
  words.insert(words.end(), ids.begin(), ids.end());
  words.insert(words.end(), {"TIME", time.view(), "RETRYCOUNT", deliveries.view(), "FORCE",
                             "JUSTID", "LASTID", last.view()});
  context.log_instead(Words{words});
}

void log_position(Context& context, std::string_view key, std::string_view group_name,
                  const StreamGroup& group) {
  context.log_instead({"XGROUP", "SETID", key, group_name, StreamIdText{group.last_id},
                       "ENTRIESREAD", IntegerText{group.entries_read}});
}

}  // namespace sluice::engine
