// DUMP and RESTORE: values in the form of Redis's snapshots.
#include <algorithm>
#include <bit>
#include <optional>

#include "engine/commands/families.hpp"
#include "engine/core/command.hpp"
#include "engine/rdb/snapshot_reader.hpp"
#include "engine/rdb/snapshot_writer.hpp"
#include "engine/types/text.hpp"
#include "resp/letters.hpp"
#include "sluice/error.hpp"

namespace sluice::engine {
namespace {

using resp::is_word;

constexpr std::string_view bad_data = "ERR Bad data format";

/// Writes a value in the plainest form of its type, which every server since Redis 7.0 reads.
class ValueWriter {
 public:
  explicit ValueWriter(std::string& out) : out_(out) {}

  void operator()(const std::string& text) {
    begin(0);
    append_text(out_, text);
  }
  void operator()(const std::unique_ptr<List>& list) {
    begin(1, list->size());
    for (std::size_t i = 0; i < list->size(); ++i) append_text(out_, (*list)[i]);
  }
  void operator()(const std::unique_ptr<Set>& set) {
    begin(2, set->size());
    set->for_each([&](std::string_view member) { append_text(out_, member); });
  }
  void operator()(const std::unique_ptr<Hash>& hash) {
    begin(4, hash->size());
    hash->for_each([&](const Hash::Field& field) {
      append_text(out_, field.name);
      append_text(out_, field.value);
    });
  }
  void operator()(const std::unique_ptr<SortedSet>& sorted) {
    begin(5, sorted->size());
    sorted->for_each([&](const Scored& scored) {
      append_text(out_, scored.member);
      append_little_endian(out_, std::bit_cast<std::uint64_t>(scored.score), 8);
    });
  }
  void operator()(const std::unique_ptr<Stream>& stream) {
    begin(19);
    write_entries(*stream);
    append_length(out_, stream->size());
    append_id(stream->last_id);
    append_id(stream->first_id());
    append_id(stream->max_deleted_id);
    append_length(out_, stream->entries_added);
    append_length(out_, stream->groups.size());
    for (const auto& [name, group] : stream->groups) write_group(name, group);
  }

 private:
  void begin(unsigned form) { out_ += static_cast<char>(form); }
  void begin(unsigned form, std::size_t size) {
    begin(form);
    append_length(out_, size);
  }
  void append_id(StreamId id) {
    append_length(out_, id.ms);
    append_length(out_, id.seq);
  }

  void write_entries(const Stream& stream) {
    append_length(out_, (stream.size() + entries_a_node - 1) / entries_a_node);
    ListpackWriter node;
    StreamId first;
    std::size_t left = 0;  // in the node
    std::size_t behind = stream.size();
    stream.visit({}, StreamId::max(), [&](const Stream::Entry& entry) {
      if (left == 0) {
        first = entry.id();
        left = std::min(behind, entries_a_node);
        node = begin_node(left);
      }
      write_entry(node, first, entry);
      --behind;
      if (--left > 0) return true;
      append_length(out_, 16);
      append_raw_id(out_, first.ms, first.seq);
      append_text(out_, node.finish());
      return true;
    });
  }

  /// Its entries name their fields themselves.
  static ListpackWriter begin_node(std::size_t entries) {
    ListpackWriter node;
    for (const auto number : {entries, std::size_t{0}, std::size_t{0}, std::size_t{0}})
      node.add(static_cast<std::int64_t>(number));  // entries, deleted ones, names, its end
    return node;
  }

  static void write_entry(ListpackWriter& node, StreamId first, const Stream::Entry& entry) {
    const auto fields = static_cast<std::int64_t>(entry.field_count());
    node.add(std::int64_t{0});
    node.add(static_cast<std::int64_t>(entry.id().ms - first.ms));
    node.add(static_cast<std::int64_t>(entry.id().seq - first.seq));
    node.add(fields);
    entry.visit_fields([&](std::string_view name, std::string_view value) {
      node.add(name);
      node.add(value);
    });
    node.add(2 * fields + 4);
  }

  void write_group(std::string_view name, const StreamGroup& group) {
    append_text(out_, name);
    append_id(group.last_id);
    append_length(out_, static_cast<std::uint64_t>(group.entries_read));
    append_length(out_, group.pending().size());
    for (const auto& [id, pending] : group.pending()) {
      append_raw_id(out_, id.ms, id.seq);
      append_little_endian(out_, static_cast<std::uint64_t>(pending.delivered_ms), 8);
      append_length(out_, pending.deliveries);
    }
    append_length(out_, group.consumers().size());
    for (const auto& [consumer, state] : group.consumers()) {
      append_text(out_, consumer);
      append_little_endian(out_, static_cast<std::uint64_t>(state.seen_ms), 8);
      append_length(out_, state.pending.size());
      for (const auto& [id, pending] : state.pending) append_raw_id(out_, id.ms, id.seq);
    }
  }

  static constexpr std::size_t entries_a_node = 100;

  std::string& out_;
};

void dump(Context& context, Words words, Reply& reply) {
  const Entry* const entry = context.keys().find_entry(words[1], context.now_ms());
  if (!entry) return reply.null();
  context.spend(size_about(entry->object) / 64);
  std::string value;
  std::visit(ValueWriter{value}, entry->object);
  seal_value(value);
  reply.bulk(value);
}

/// All of them are read before the first runs: a value that is damaged changes nothing.
std::vector<std::vector<std::string>> commands_of(std::string_view value, std::string_view key) {
  std::vector<std::vector<std::string>> commands;
  TextSource source{value};
  try {
    read_value(source, std::string{key},
               [&](Words words) { commands.emplace_back(words.begin(), words.end()); });
  } catch (const Error&) {
    commands.clear();
  }
  if (commands.empty() || !source.is_at_end()) refuse(bad_data);
  return commands;
}

/// What the commands log of themselves is dropped: one RESTORE says it all. False: they cannot make
/// such a value, and a part of it may be there.
bool run_all(Context& context, const std::vector<std::vector<std::string>>& commands) {
  const auto before = context.mark();
  const bool is_made = std::ranges::all_of(commands, [&](const auto& command) {
    const std::vector<std::string_view> words{command.begin(), command.end()};
    ValueReply reply;
    context.engine().execute(context, words, reply);
    context.take_replaced();
    return !reply.take().is_error();
  });
  context.effects().resize(before.effects);
  context.engine().log_database = before.log_database;
  return is_made;
}

/// The old value stays at the key where the new one is damaged.
void replace_value(Context& context, std::string_view key, Entry* old,
                   const std::vector<std::vector<std::string>>& commands) {
  auto& keys = context.keys();
  std::optional<Object> kept;
  const auto expiry_ms = old ? old->expiry_ms : Keyspace::never;
  if (old) kept = copy_of(old->object);
  const auto before = context.mark();
  keys.erase(key);
  if (run_all(context, commands) && keys.find(key, context.now_ms())) return;
  context.return_to(before);
  keys.erase(key);
  if (kept) {
    keys.put(key, std::move(*kept));
    keys.set_expiry_ms(key, expiry_ms);
  }
  refuse(bad_data);
}

struct RestoreOptions {
  bool replace = false;
  bool is_absolute = false;
};

RestoreOptions read_restore_options(Words words) {
  RestoreOptions options;
  for (std::size_t i = 4; i < words.size(); ++i) {
    const bool has_value = i + 1 < words.size();
    if (is_word(words[i], "replace"))
      options.replace = true;
    else if (is_word(words[i], "absttl"))
      options.is_absolute = true;
    else if (is_word(words[i], "idletime") && has_value)
      read_integer_between(words[++i], 0, largest_integer,
                           "ERR Invalid IDLETIME value, must be >= 0");
    else if (is_word(words[i], "freq") && has_value)
      read_integer_between(words[++i], 0, 255, "ERR Invalid FREQ value, must be >= 0 and <= 255");
    else
      refuse(syntax_error);
  }
  return options;
}

void restore(Context& context, Words words, Reply& reply) {
  const auto options = read_restore_options(words);
  const auto key = words[1];
  auto& keys = context.keys();
  Entry* const old = keys.find_entry(key, context.now_ms());
  if (old && !options.replace) refuse("BUSYKEY Target key name already exists.");
  auto at_ms = read_integer(words[2]);
  if (at_ms < 0) refuse("ERR Invalid TTL value, must be >= 0");
  const auto value = sealed_value(words[3]);
  if (value.empty()) refuse("ERR DUMP payload version or checksum are wrong");
  context.spend(value.size() / 64);
  replace_value(context, key, old, commands_of(value, key));
  reply.ok();
  context.changed();
  if (at_ms != 0 && !options.is_absolute && __builtin_add_overflow(at_ms, context.now_ms(), &at_ms))
    at_ms = largest_integer;
  if (at_ms != 0 && at_ms <= context.now_ms() && !context.engine().loading) {
    keys.erase(key);
    return context.log_instead({"DEL", key});
  }
  if (at_ms != 0) keys.set_expiry_ms(key, at_ms);
  const IntegerText at{at_ms};
  context.log_instead({"RESTORE", key, at.view(), words[3], "REPLACE", "ABSTTL"});
}

}  // namespace

CommandRows dump_commands() noexcept {
  static constexpr CommandRow rows[] = {
      {"dump", dump}, {"restore", restore}, {"restore-asking", restore}};
  return rows;
}

}  // namespace sluice::engine
