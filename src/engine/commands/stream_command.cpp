#include "engine/commands/stream_command.hpp"

#include <fmt/format.h>

namespace sluice::engine {

bool read_stream_id(std::string_view word, StreamId& id, Reply& reply, std::uint64_t missing_seq) {
  const auto parsed = parse_stream_id(word, missing_seq);
  if (!parsed) return fail(reply, invalid_stream_id);
  id = *parsed;
  return true;
}

namespace {

bool read_bound(std::string_view word, StreamId& id, bool& exclusive, std::uint64_t missing_seq,
                Reply& reply) {
  exclusive = word.size() > 1 && word[0] == '(';
  if (exclusive) return read_stream_id(word.substr(1), id, reply, missing_seq);
  if (word == "-" || word == "+") {
    id = word == "-" ? StreamId{} : StreamId::max();
    return true;
  }
  return read_stream_id(word, id, reply, missing_seq);
}

}  // namespace

bool read_range_start(std::string_view word, StreamId& id, Reply& reply) {
  bool exclusive = false;
  if (!read_bound(word, id, exclusive, 0, reply)) return false;
  if (!exclusive) return true;
  const auto next = id.next();
  if (!next) return fail(reply, "ERR invalid start ID for the interval");
  id = *next;
  return true;
}

bool read_range_end(std::string_view word, StreamId& id, Reply& reply) {
  bool exclusive = false;
  if (!read_bound(word, id, exclusive, StreamId::most, reply)) return false;
  if (!exclusive) return true;
  const auto previous = id.previous();
  if (!previous) return fail(reply, "ERR invalid end ID for the interval");
  id = *previous;
  return true;
}

bool read_trim(Words words, std::size_t& at, Stream::Trim& trim, Reply& reply) {
  const bool by_length = same_word(words[at], "maxlen");
  if (trim.by != Stream::Trim::By::nothing)
    return fail(reply,
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
  trim.approximate = false;
  if (++at + 1 < words.size() && (words[at] == "~" || words[at] == "="))
    trim.approximate = words[at++] == "~";
  if (at >= words.size()) return fail(reply, syntax_error);
  if (!by_length) {
    trim.by = Stream::Trim::By::id;
    return read_stream_id(words[at++], trim.id, reply);
  }
  trim.by = Stream::Trim::By::length;
  std::int64_t length = 0;
  if (!read_integer(words[at++], length, reply)) return false;
  if (length < 0) return fail(reply, "ERR The MAXLEN argument must be >= 0.");
  trim.length = static_cast<std::size_t>(length);
  return true;
}

bool read_trim_limit(Words words, std::size_t& at, Stream::Trim& trim, Reply& reply) {
  std::int64_t limit = 0;
  if (!read_integer(words[at + 1], limit, reply)) return false;
  if (limit < 0) return fail(reply, "ERR The LIMIT argument must be >= 0.");
  trim.limit = static_cast<std::size_t>(limit);
  at += 2;
  return true;
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

bool find_group(Context& context, std::string_view key, std::string_view name, Stream*& stream,
                StreamGroup*& group, Reply& reply) {
  if (!find_as(context, key, stream, reply)) return false;
  const auto found = stream ? stream->groups.find(name) : decltype(stream->groups.end()){};
  if (!stream || found == stream->groups.end()) {
    reply.error(fmt::format("NOGROUP No such key '{}' or consumer group '{}'", key, name));
    return false;
  }
  group = &found->second;
  return true;
}

}  // namespace sluice::engine
