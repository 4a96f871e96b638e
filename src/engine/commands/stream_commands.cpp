/// XADD, XLEN, XRANGE, XREVRANGE, XDEL, XTRIM, XSETID.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/commands/stream_command.hpp"

namespace sluice::engine {

namespace {

constexpr std::size_t usual_limit =
    100 * StreamBlock::most_entries;  // of an approximate trim without LIMIT

struct Add {
  bool make_stream = true;
  Stream::Trim trim;
  bool limited = false;
  std::size_t id_at = 0;  ///< place of the id; the fields follow
  StreamId id;
  bool any_id = false;   ///< "*"
  bool any_seq = false;  ///< "123-*"
};

/// LIMIT only goes with "~", which has one of its own.
bool settle_limit(Stream::Trim& trim, bool limited, Reply& reply) {
  if (limited && (trim.by == Stream::Trim::By::nothing || !trim.approximate))
    return fail(
        reply, trim.by == Stream::Trim::By::nothing
                   ? "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
                   : "ERR syntax error, LIMIT cannot be used without the special ~ option");
  if (trim.approximate && !limited) trim.limit = usual_limit;
  return true;
}

bool read_new_id(std::string_view word, Add& add, Reply& reply) {
  add.any_id = word == "*";
  if (add.any_id) return true;
  add.any_seq = word.ends_with("-*");
  if (add.any_seq) word.remove_suffix(2);
  if (add.any_seq && word.find('-') != std::string_view::npos)
    return fail(reply, invalid_stream_id);
  return read_stream_id(word, add.id, reply);
}

bool read_add(Words words, Add& add, Reply& reply) {
  std::size_t at = 2;
  while (at < words.size()) {
    const auto word = words[at];
    if (same_word(word, "nomkstream")) {
      add.make_stream = false;
      ++at;
    } else if ((same_word(word, "maxlen") || same_word(word, "minid")) && at + 1 < words.size()) {
      if (!read_trim(words, at, add.trim, reply)) return false;
    } else if (same_word(word, "limit") && at + 1 < words.size()) {
      if (!read_trim_limit(words, at, add.trim, reply)) return false;
      add.limited = true;
    } else {
      break;
    }
  }
  add.id_at = at;
  if (at < words.size() && !read_new_id(words[at], add, reply)) return false;
  if (!settle_limit(add.trim, add.limited, reply)) return false;
  const auto fields = words.size() - std::min(words.size(), at + 1);
  if (fields < 2 || fields % 2 != 0) return refuse_arity(reply, "xadd"), false;
  if (!add.any_id && !add.any_seq && add.id == StreamId{})
    return fail(reply, "ERR The ID specified in XADD must be greater than 0-0");
  return true;
}

/// The id of the new entry, above all others; false: refused.
bool settle_id(const Stream& stream, const Context& context, Add& add, Reply& reply) {
  constexpr std::string_view not_above =
      "ERR The ID specified in XADD is equal or smaller than the target stream top item";
  if (add.any_id) {
    add.id = {static_cast<std::uint64_t>(context.now_ms()), 0};
    if (add.id > stream.last_id) return true;
    const auto next = stream.last_id.next();
    if (!next) return fail(reply, not_above);
    add.id = *next;
    return true;
  }
  if (add.any_seq && add.id.ms == stream.last_id.ms) {
    if (stream.last_id.seq == StreamId::most) return fail(reply, not_above);
    add.id.seq = stream.last_id.seq + 1;
    return true;
  }
  return add.id > stream.last_id || fail(reply, not_above);
}

/// Writes into the log what happened: the id that was given, and a trim that leaves the same
/// entries.
void log_add(Context& context, Words words, const Add& add, const Stream& stream) {
  const StreamIdText id{add.id};
  std::vector<std::string_view> logged{words[0], words[1]};
  if (!add.make_stream) logged.push_back("NOMKSTREAM");
  const IntegerText length{static_cast<std::int64_t>(stream.size())};
  const StreamIdText least{add.trim.id};
  const bool by_id = add.trim.by == Stream::Trim::By::id && !add.trim.approximate;
  if (by_id) logged.insert(logged.end(), {"MINID", "=", least.view()});
  if (!by_id && add.trim.by != Stream::Trim::By::nothing)
    logged.insert(logged.end(), {"MAXLEN", "=", length.view()});
  logged.push_back(id.view());
  const auto fields = words.subspan(add.id_at + 1);
  logged.insert(logged.end(), fields.begin(), fields.end());
  context.log_instead(Words{logged});
}

void xadd(Context& context, Words words, Reply& reply) {
  Add add;
  if (!read_add(words, add, reply)) return;
  Stream* stream = nullptr;
  if (!find_as(context, words[1], stream, reply)) return;
  if (!stream && !add.make_stream) return reply.null();
  if (stream && stream->last_id == StreamId::max())
    return reply.error(
        "ERR The stream has exhausted the last possible ID, unable to add more items");
  static const Stream empty;
  if (!settle_id(stream ? *stream : empty, context, add, reply)) return;
  if (!stream) stream = &make<Stream>(context, words[1]);

  stream->append(add.id, words.subspan(add.id_at + 1));
  stream->trim(add.trim);
  context.changed();
  context.signal(words[1]);
  if (add.any_id || add.any_seq || add.trim.by != Stream::Trim::By::nothing)
    log_add(context, words, add, *stream);
  reply_id(reply, add.id);
}

void xlen(Context& context, Words words, Reply& reply) {
  Stream* stream = nullptr;
  if (!find_as(context, words[1], stream, reply)) return;
  reply.integer(stream ? static_cast<std::int64_t>(stream->size()) : 0);
}

/// COUNT n behind the range; -1 where it is not given.
bool read_range_count(Words words, std::int64_t& count, Reply& reply) {
  for (std::size_t at = 4; at < words.size(); at += 2) {
    if (!same_word(words[at], "count") || at + 1 >= words.size()) return fail(reply, syntax_error);
    if (!read_integer(words[at + 1], count, reply)) return false;
    count = std::max<std::int64_t>(count, 0);
  }
  return true;
}

template <bool backward>
void xrange(Context& context, Words words, Reply& reply) {
  StreamId first;
  StreamId last;
  std::int64_t count = -1;
  if (!read_range_start(words[backward ? 3 : 2], first, reply)) return;
  if (!read_range_end(words[backward ? 2 : 3], last, reply)) return;
  if (!read_range_count(words, count, reply)) return;
  Stream* stream = nullptr;
  if (!find_as(context, words[1], stream, reply)) return;
  if (!stream) return reply.array(0);
  if (count == 0) return reply.null_array();

  std::vector<Stream::Entry> entries;
  const auto take = [&](const Stream::Entry& entry) {
    entries.push_back(entry);
    return count < 0 || entries.size() < static_cast<std::size_t>(count);
  };
  backward ? stream->visit_backward(first, last, take) : stream->visit(first, last, take);
  reply.array(entries.size());
  for (const auto& entry : entries) reply_entry(reply, entry);
}

void xdel(Context& context, Words words, Reply& reply) {
  std::vector<StreamId> ids(words.size() - 2);
  Stream* stream = nullptr;
  if (!find_as(context, words[1], stream, reply)) return;
  if (!stream) return reply.integer(0);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (!read_stream_id(words[i + 2], ids[i], reply)) return;
  std::int64_t deleted = 0;
  for (const auto id : ids) {
    if (!stream->erase(id)) continue;
    stream->max_deleted_id = std::max(stream->max_deleted_id, id);
    ++deleted;
  }
  context.changed(static_cast<std::size_t>(deleted));
  reply.integer(deleted);
}

bool read_trim_command(Words words, Stream::Trim& trim, Reply& reply) {
  bool limited = false;
  for (std::size_t at = 2; at < words.size();) {
    if ((same_word(words[at], "maxlen") || same_word(words[at], "minid")) &&
        at + 1 < words.size()) {
      if (!read_trim(words, at, trim, reply)) return false;
    } else if (same_word(words[at], "limit") && at + 1 < words.size()) {
      if (!read_trim_limit(words, at, trim, reply)) return false;
      limited = true;
    } else {
      return fail(reply, syntax_error);
    }
  }
  if (!settle_limit(trim, limited, reply)) return false;
  return trim.by != Stream::Trim::By::nothing ||
         fail(reply, "ERR syntax error, XTRIM must be called with either MAXLEN or MINID");
}

void xtrim(Context& context, Words words, Reply& reply) {
  Stream::Trim trim;
  if (!read_trim_command(words, trim, reply)) return;
  Stream* stream = nullptr;
  if (!find_as(context, words[1], stream, reply)) return;
  const auto deleted = stream ? stream->trim(trim) : 0;
  context.changed(deleted);
  if (deleted > 0 && trim.approximate) {
    const IntegerText length{static_cast<std::int64_t>(stream->size())};
    context.log_instead({words[0], words[1], "MAXLEN", "=", length});
  }
  reply.integer(static_cast<std::int64_t>(deleted));
}

struct SetId {
  StreamId id;
  std::int64_t added = -1;
  StreamId max_deleted;
};

bool read_set_id(Words words, SetId& set, Reply& reply) {
  if (!read_stream_id(words[2], set.id, reply)) return false;
  for (std::size_t at = 3; at < words.size(); at += 2) {
    if (at + 1 >= words.size()) return fail(reply, syntax_error);
    if (same_word(words[at], "entriesadded")) {
      if (!read_integer(words[at + 1], set.added, reply)) return false;
      if (set.added < 0) return fail(reply, "ERR entries_added must be positive");
    } else if (same_word(words[at], "maxdeletedid")) {
      if (!read_stream_id(words[at + 1], set.max_deleted, reply)) return false;
      if (set.id < set.max_deleted)
        return fail(
            reply,
            "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id");
    } else {
      return fail(reply, syntax_error);
    }
  }
  return true;
}

void xsetid(Context& context, Words words, Reply& reply) {
  SetId set;
  if (!read_set_id(words, set, reply)) return;
  Stream* stream = nullptr;
  if (!find_as(context, words[1], stream, reply)) return;
  if (!stream) return reply.error(no_such_key);
  if (stream->size() > 0) {
    StreamId top;
    stream->visit_backward({}, StreamId::max(),
                           [&](const Stream::Entry& entry) { return top = entry.id(), false; });
    if (set.id < top)
      return reply.error(
          "ERR The ID specified in XSETID is smaller than the target stream top item");
    if (set.added >= 0 && static_cast<std::size_t>(set.added) < stream->size())
      return reply.error(
          "ERR The entries_added specified in XSETID is smaller than the target stream length");
  }
  stream->last_id = set.id;
  if (set.added >= 0) stream->entries_added = static_cast<std::uint64_t>(set.added);
  if (set.max_deleted != StreamId{}) stream->max_deleted_id = set.max_deleted;
  context.changed();
  reply.ok();
}

constexpr Handlers::Row commands[] = {
    {"xadd", xadd}, {"xlen", xlen},   {"xrange", xrange<false>}, {"xrevrange", xrange<true>},
    {"xdel", xdel}, {"xtrim", xtrim}, {"xsetid", xsetid},
};

}  // namespace

void add_stream_commands(Handlers& handlers) {
  handlers.add(commands);
  add_stream_read_commands(handlers);
  add_stream_group_commands(handlers);
  add_stream_claim_commands(handlers);
  add_stream_info_commands(handlers);
}

}  // namespace sluice::engine
