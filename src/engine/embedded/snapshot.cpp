#include "engine/embedded/snapshot.hpp"

#include <algorithm>
#include <limits>

#include "engine/core/object.hpp"
#include "engine/log/record.hpp"
#include "engine/types/text.hpp"

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
    append_record(out_, command);
    words_.clear();
    elements_ = 0;
  }

  std::string& out_;
  std::string_view command_;
  std::string_view key_;
  std::vector<std::string> words_;
  std::size_t elements_ = 0;
};

struct Writer {
  std::string& out;
  const Entry& entry;

  void operator()(const std::string& text) const {
    if (entry.expiry_ms == Keyspace::never) return append_record(out, {"SET", entry.key(), text});
    append_record(out, {"SET", entry.key(), text, "PXAT", std::to_string(entry.expiry_ms)});
  }
  void operator()(const std::unique_ptr<Hash>& hash) const {
    begin();
    {
      Chunks chunks{out, "HSET", entry.key()};
      hash->for_each([&](const Hash::Field& field) { chunks.add(field.name, field.value); });
    }
    end();
  }
  void operator()(const std::unique_ptr<List>& list) const {
    begin();
    {
      Chunks chunks{out, "RPUSH", entry.key()};
      for (std::size_t i = 0; i < list->size(); ++i) chunks.add((*list)[i]);
    }
    end();
  }
  void operator()(const std::unique_ptr<Set>& set) const {
    begin();
    {
      Chunks chunks{out, "SADD", entry.key()};
      set->for_each([&](std::string_view member) { chunks.add(member); });
    }
    end();
  }
  void operator()(const std::unique_ptr<SortedSet>& sorted) const {
    begin();
    {
      Chunks chunks{out, "ZADD", entry.key()};
      sorted->for_each(
          [&](const Scored& scored) { chunks.add(DoubleText{scored.score}, scored.member); });
    }
    end();
  }
  void operator()(const std::unique_ptr<Stream>& stream) const {
    begin();
    append_stream(out, entry.key(), *stream);
    end();
  }

 private:
  void begin() const { append_record(out, {"DEL", entry.key()}); }
  void end() const {
    if (entry.expiry_ms != Keyspace::never)
      append_record(out, {"PEXPIREAT", entry.key(), std::to_string(entry.expiry_ms)});
  }
};

}  // namespace

void append_entry(std::string& out, const Entry& entry) {
  std::visit(Writer{out, entry}, entry.object);
}

void Snapshot::before_write(const resp::CommandSpec& spec, Words words) {
  if (!resp::keys_of(spec, words, positions_)) return;  // it will be refused
  if (positions_.empty()) spoilt_ = true;               // FLUSHALL, SWAPDB
  for (const auto position : positions_) copy_before_write(words[position]);
}

/// In every database: COPY and MOVE name a key of another one, and a copy too many does no harm.
void Snapshot::copy_before_write(std::string_view key) {
  if (written_.contains(key)) return;
  written_.emplace(key);
  constexpr auto before_all_time =
      std::numeric_limits<std::int64_t>::min();  // expired ones stay where they are
  for (int database = 0; database < Engine::databases; ++database)
    if (const Entry* const entry = engine_.keyspace(database).find_entry(key, before_all_time))
      copy(database, *entry);
}

bool Snapshot::collect(std::size_t enough) {
  while (records_.size() < enough && scanned_ < Engine::databases) {
    cursor_ = engine_.keyspace(scanned_).scan(cursor_, [&](const Entry& entry) {
      if (!written_.contains(entry.key())) copy(scanned_, entry);
    });
    if (cursor_ == 0) ++scanned_;
  }
  return scanned_ < Engine::databases;
}

void Snapshot::copy(int database, const Entry& entry) {
  if (database != selected_) append_record(records_, {"SELECT", std::to_string(database)});
  selected_ = database;
  append_entry(records_, entry);
}

}  // namespace sluice::engine
