#include "engine/embedded/snapshot.hpp"

#include "engine/log/record.hpp"
#include "engine/lua/scripts.hpp"
#include "engine/types/text.hpp"
#include "resp/writer.hpp"

namespace sluice::engine {
namespace {

constexpr std::size_t elements_a_command = 64;

/// One command after another with up to 64 elements of `words` words each.
class Chunks {
 public:
  Chunks(std::string& out, std::string_view command, std::string_view key)
      : out_(out), command_(command), key_(key) {}
  ~Chunks() { flush(); }
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;

  void add(std::string_view word) {
    words_.emplace_back(word);
    if (++elements_ == elements_a_command) flush();
  }
  void add(std::string_view first, std::string_view second) {
    words_.emplace_back(first);
    add(second);
  }

 private:
  void flush() {
    if (elements_ == 0) return;
    std::vector<std::string_view> command{command_, key_};
    command.insert(command.end(), words_.begin(), words_.end());
    resp::append_command(out_, command);
    words_.clear();
    elements_ = 0;
  }

  std::string& out_;
  std::string_view command_;
  std::string_view key_;
  std::vector<std::string> words_;
  std::size_t elements_ = 0;
};

/// Writes a stream: its entries, what it counts, its groups, and what each consumer has pending.
class StreamWriter {
 public:
  static void write(std::string& out, std::string_view key, const Stream& stream) {
    StreamWriter writer{out, key};
    writer.entries(stream);
    writer.counts(stream);
    for (const auto& [name, group] : stream.groups) writer.group(name, group);
  }

 private:
  StreamWriter(std::string& out, std::string_view key) : out_(out), key_(key) {}

  void entries(const Stream& stream) {
    std::vector<std::string_view> words;
    stream.visit({}, StreamId::max(), [&](const Stream::Entry& entry) {
      const StreamIdText id{entry.id()};
      words.assign({"XADD", key_, id.view()});
      entry.visit_fields([&](std::string_view name, std::string_view value) {
        words.push_back(name);
        words.push_back(value);
      });
      resp::append_command(out_, words);
      return true;
    });
    // One without entries is made by adding one that is trimmed away at once.
    if (stream.size() == 0)
      resp::append_command(out_, {"XADD", key_, "MAXLEN", "0", "0-1", "x", "y"});
  }

  void counts(const Stream& stream) {
    resp::append_command(out_, {"XSETID", key_, StreamIdText{stream.last_id}, "ENTRIESADDED",
                                std::to_string(stream.entries_added), "MAXDELETEDID",
                                StreamIdText{stream.max_deleted_id}});
  }

  void group(std::string_view name, const StreamGroup& group) {
    resp::append_command(out_, {"XGROUP", "CREATE", key_, name, StreamIdText{group.last_id},
                                "ENTRIESREAD", IntegerText{group.entries_read}});
    for (const auto& [consumer, state] : group.consumers())
      resp::append_command(out_, {"XGROUP", "CREATECONSUMER", key_, name, consumer});
    for (const auto& [id, pending] : group.pending())
      resp::append_command(
          out_, {"XCLAIM", key_, name, pending.consumer->name, "0", StreamIdText{id}, "TIME",
                 IntegerText{pending.delivered_ms}, "RETRYCOUNT",
                 std::to_string(pending.deliveries), "JUSTID", "FORCE"});
  }

  std::string& out_;
  std::string_view key_;
};

/// Writes the value of a key.
struct Writer {
  std::string& out;
  const Entry& entry;

  void operator()(const std::string& text) const {
    if (entry.expiry_ms == Keyspace::never)
      return resp::append_command(out, {"SET", entry.key(), text});
    resp::append_command(out, {"SET", entry.key(), text, "PXAT", std::to_string(entry.expiry_ms)});
  }
  void operator()(const std::unique_ptr<Hash>& hash) const {
    write("HSET", [&](Chunks& chunks) {
      hash->for_each([&](const Hash::Field& field) { chunks.add(field.name, field.value); });
    });
  }
  void operator()(const std::unique_ptr<List>& list) const {
    write("RPUSH", [&](Chunks& chunks) {
      for (std::size_t i = 0; i < list->size(); ++i) chunks.add((*list)[i]);
    });
  }
  void operator()(const std::unique_ptr<Set>& set) const {
    write("SADD", [&](Chunks& chunks) {
      set->for_each([&](std::string_view member) { chunks.add(member); });
    });
  }
  void operator()(const std::unique_ptr<SortedSet>& sorted) const {
    write("ZADD", [&](Chunks& chunks) {
      sorted->for_each(
          [&](const Scored& scored) { chunks.add(DoubleText{scored.score}, scored.member); });
    });
  }
  void operator()(const std::unique_ptr<Stream>& stream) const {
    begin();
    StreamWriter::write(out, entry.key(), *stream);
    end();
  }

 private:
  template <class Fill>
  void write(std::string_view command, Fill&& fill) const {
    begin();
    {
      Chunks chunks{out, command, entry.key()};
      fill(chunks);
    }
    end();
  }
  void begin() const { resp::append_command(out, {"DEL", entry.key()}); }
  void end() const {
    if (entry.expiry_ms != Keyspace::never)
      resp::append_command(out, {"PEXPIREAT", entry.key(), std::to_string(entry.expiry_ms)});
  }
};

}  // namespace

void Snapshot::before_write(const resp::CommandSpec& spec, Words words) {
  if (!resp::keys_of(spec, words, positions_)) return;  // it will be refused
  if (spec.name.starts_with("function|")) return copy_libraries();
  if (positions_.empty()) spoilt_ = true;  // FLUSHALL, SWAPDB
  for (const auto position : positions_) copy_before_write(words[position]);
}

/// In every database: COPY and MOVE name a key of another one, and a copy too many does no harm.
void Snapshot::copy_before_write(std::string_view key) {
  if (written_.contains(key)) return;
  written_.emplace(key);
  // Looked up so, expired keys stay where they are.
  constexpr auto before_all_time = std::numeric_limits<std::int64_t>::min();
  for (int database = 0; database < Engine::databases; ++database)
    if (const Entry* const entry = engine_.keyspace(database).find_entry(key, before_all_time))
      copy(database, *entry);
}

void Snapshot::copy_libraries() {
  if (std::exchange(has_libraries_, true)) return;
  for (const auto& [name, library] : engine_.scripts().functions().all())
    resp::append_command(records_, {"FUNCTION", "LOAD", "REPLACE", library.code});
}

bool Snapshot::collect(std::size_t enough) {
  copy_libraries();
  while (records_.size() < enough && scanned_ < Engine::databases) {
    cursor_ = engine_.keyspace(scanned_).scan(cursor_, [&](const Entry& entry) {
      if (!written_.contains(entry.key())) copy(scanned_, entry);
    });
    if (cursor_ == 0) ++scanned_;
  }
  return scanned_ < Engine::databases;
}

void Snapshot::copy(int database, const Entry& entry) {
  if (database != selected_) resp::append_command(records_, {our_select, std::to_string(database)});
  selected_ = database;
  std::visit(Writer{records_, entry}, entry.object);
}

}  // namespace sluice::engine
