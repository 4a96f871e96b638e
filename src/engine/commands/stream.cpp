/// XADD, XLEN, XRANGE, XREVRANGE, XDEL, XTRIM, XSETID.

#include "engine/commands/collections.hpp"
#include "engine/commands/families.hpp"
#include "engine/commands/stream_shared.hpp"

namespace sluice::engine {
namespace {

struct Add {
  bool make_stream = true;
  TrimOptions options;
  std::size_t id_at = 0;  ///< place of the id; the fields follow
  StreamId id;
  bool any_id = false;   ///< "*"
  bool any_seq = false;  ///< "123-*"
};

void read_new_id(std::string_view word, Add& add) {
  add.any_id = word == "*";
  if (add.any_id) return;
  add.any_seq = word.ends_with("-*");
  if (add.any_seq) word.remove_suffix(2);
  if (add.any_seq && word.find('-') != std::string_view::npos) refuse(invalid_stream_id);
  add.id = read_stream_id(word);
}

Add read_add(Words words) {
  Add add;
  std::size_t at = 2;
  for (;;) {
    if (at < words.size() && is_word(words[at], "nomkstream")) {
      add.make_stream = false;
      ++at;
    } else if (TrimOptions::begins(words, at)) {
      add.options.read(words, at);
    } else {
      break;
    }
  }
  add.id_at = at;
  if (at < words.size()) read_new_id(words[at], add);
  add.options.settle();
  const auto fields = words.size() - std::min(words.size(), at + 1);
  if (fields < 2 || fields % 2 != 0) refuse_arity("xadd");
  if (!add.any_id && !add.any_seq && add.id == StreamId{})
    refuse("ERR The ID specified in XADD must be greater than 0-0");
  return add;
}

/// The id of the new entry, above all others.
void settle_id(const Stream& stream, const Context& context, Add& add) {
  constexpr std::string_view not_above =
      "ERR The ID specified in XADD is equal or smaller than the target stream top item";
  if (add.any_id) {
    add.id = {static_cast<std::uint64_t>(context.now_ms()), 0};
    if (add.id > stream.last_id) return;
    const auto next = stream.last_id.next();
    if (!next) refuse(not_above);
    add.id = *next;
  } else if (add.any_seq && add.id.ms == stream.last_id.ms) {
    if (stream.last_id.seq == StreamId::most) refuse(not_above);
    add.id.seq = stream.last_id.seq + 1;
  } else if (add.id <= stream.last_id) {
    refuse(not_above);
  }
}

/// Logs what happened: the id that was given, and a trim that leaves the same entries.
void log_add(Context& context, Words words, const Add& add, const Stream& stream) {
  const StreamIdText id{add.id};
  std::vector<std::string_view> logged{words[0], words[1]};
  if (!add.make_stream) logged.push_back("NOMKSTREAM");
  const IntegerText length{static_cast<std::int64_t>(stream.size())};
  const StreamIdText least{add.options.trim.id};
  const bool by_id = add.options.trim.by == Stream::Trim::By::id && !add.options.trim.approximate;
  if (by_id) logged.insert(logged.end(), {"MINID", "=", least.view()});
  if (!by_id && add.options.wanted()) logged.insert(logged.end(), {"MAXLEN", "=", length.view()});
  logged.push_back(id.view());
  const auto fields = words.subspan(add.id_at + 1);
  logged.insert(logged.end(), fields.begin(), fields.end());
  context.log_instead(Words{logged});
}

void xadd(Context& context, Words words, Reply& reply) {
  auto add = read_add(words);
  auto* stream = find_as<Stream>(context, words[1]);
  if (!stream && !add.make_stream) return reply.null();
  if (stream && stream->last_id == StreamId::max())
    return reply.error(
        "ERR The stream has exhausted the last possible ID, unable to add more items");
  static const Stream empty;
  settle_id(stream ? *stream : empty, context, add);
  if (!stream) stream = &make<Stream>(context, words[1]);

  stream->append(add.id, words.subspan(add.id_at + 1), context.undo());
  stream->trim(add.options.trim, context.undo());
  context.changed();
  context.signal(words[1]);
  if (add.any_id || add.any_seq || add.options.wanted()) log_add(context, words, add, *stream);
  reply_id(reply, add.id);
}

/// COUNT n behind the range; -1 where it is not given.
std::int64_t read_range_count(Words words) {
  std::int64_t count = -1;
  for (std::size_t at = 4; at < words.size(); at += 2) {
    if (!is_word(words[at], "count") || at + 1 >= words.size()) refuse(syntax_error);
    count = std::max<std::int64_t>(read_integer(words[at + 1]), 0);
  }
  return count;
}

template <bool backward>
void xrange(Context& context, Words words, Reply& reply) {
  const auto first = read_range_start(words[backward ? 3 : 2]);
  const auto last = read_range_end(words[backward ? 2 : 3]);
  const auto count = read_range_count(words);
  auto* stream = find_as<Stream>(context, words[1]);
  if (!stream) return reply.array(0);
  if (count == 0) return reply.null_array();

  const auto most = count < 0 ? all_entries : static_cast<std::size_t>(count);
  reply_entries(reply, entries_of(*stream, first, last, most, backward));
}

void xdel(Context& context, Words words, Reply& reply) {
  std::vector<StreamId> ids(words.size() - 2);
  auto* stream = find_as<Stream>(context, words[1]);
  if (!stream) return reply.integer(0);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = read_stream_id(words[i + 2]);
  std::int64_t deleted = 0;
  stream->expect_count(context.undo());
  for (const auto id : ids) {
    if (!stream->erase(id, context.undo())) continue;
    stream->max_deleted_id = std::max(stream->max_deleted_id, id);
    ++deleted;
  }
  context.changed(static_cast<std::size_t>(deleted));
  reply.integer(deleted);
}

void xtrim(Context& context, Words words, Reply& reply) {
  TrimOptions options;
  for (std::size_t at = 2; at < words.size();) {
    if (!TrimOptions::begins(words, at)) return reply.error(syntax_error);
    options.read(words, at);
  }
  options.settle();
  if (!options.wanted())
    return reply.error("ERR syntax error, XTRIM must be called with either MAXLEN or MINID");
  auto* stream = find_as<Stream>(context, words[1]);
  const auto deleted = stream ? stream->trim(options.trim, context.undo()) : 0;
  context.changed(deleted);
  if (deleted > 0 && options.trim.approximate) {
    const IntegerText length{static_cast<std::int64_t>(stream->size())};
    context.log_instead({words[0], words[1], "MAXLEN", "=", length});
  }
  reply.count(deleted);
}

struct SetId {
  StreamId id;
  std::int64_t added = -1;
  StreamId max_deleted;
};

SetId read_set_id(Words words) {
  SetId set{.id = read_stream_id(words[2]), .max_deleted = {}};
  for (std::size_t at = 3; at < words.size(); at += 2) {
    if (at + 1 >= words.size()) refuse(syntax_error);
    if (is_word(words[at], "entriesadded")) {
      set.added = read_integer(words[at + 1]);
      if (set.added < 0) refuse("ERR entries_added must be positive");
    } else if (is_word(words[at], "maxdeletedid")) {
      set.max_deleted = read_stream_id(words[at + 1]);
      if (set.id < set.max_deleted)
        refuse("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id");
    } else {
      refuse(syntax_error);
    }
  }
  return set;
}

void xsetid(Context& context, Words words, Reply& reply) {
  const auto set = read_set_id(words);
  auto& stream = find_stream(context, words[1]);
  if (stream.size() > 0) {
    if (set.id < entries_of(stream, {}, StreamId::max(), 1, true).front().id())
      return reply.error(
          "ERR The ID specified in XSETID is smaller than the target stream top item");
    if (set.added >= 0 && static_cast<std::size_t>(set.added) < stream.size())
      return reply.error(
          "ERR The entries_added specified in XSETID is smaller than the target stream length");
  }
  stream.expect_count(context.undo());
  stream.last_id = set.id;
  if (set.added >= 0) stream.entries_added = static_cast<std::uint64_t>(set.added);
  if (set.max_deleted != StreamId{}) stream.max_deleted_id = set.max_deleted;
  context.changed();
  reply.ok();
}

}  // namespace

CommandRows stream_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"xadd", xadd},
      {"xdel", xdel},
      {"xlen", on<Stream, reply_size>},
      {"xrange", xrange<false>},
      {"xrevrange", xrange<true>},
      {"xsetid", xsetid},
      {"xtrim", xtrim},
  };
  return rows;
}

}  // namespace sluice::engine
