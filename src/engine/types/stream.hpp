/// A stream: entries in the order of their ids, and the groups that read them.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/types/text.hpp"
#include "engine/types/undo.hpp"
#include "sluice/store.hpp"

namespace sluice::engine {

/// The id of an entry: milliseconds and a number within them, "1700000000000-3".
struct StreamId {
  std::uint64_t ms = 0;
  std::uint64_t seq = 0;

  static constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  static constexpr StreamId max() noexcept { return {most, most}; }

  friend auto operator<=>(const StreamId&, const StreamId&) = default;

  /// The id after or before this one; empty: there is none.
  std::optional<StreamId> next() const noexcept {
    if (*this == max()) return std::nullopt;
    return seq == most ? StreamId{ms + 1, 0} : StreamId{ms, seq + 1};
  }
  std::optional<StreamId> previous() const noexcept {
    if (*this == StreamId{}) return std::nullopt;
    return seq == 0 ? StreamId{ms - 1, most} : StreamId{ms, seq - 1};
  }
};

/// "ms-seq", or "ms" alone with `missing_seq` for the rest.
std::optional<StreamId> parse_stream_id(std::string_view text, std::uint64_t missing_seq);

/// The text of an id.
class StreamIdText : public ShortText<41> {
 public:
  explicit StreamIdText(StreamId id) noexcept;
};

/// Up to a hundred neighbouring entries in one piece of memory.
///
/// An entry's fields lie one after another in `bytes`: their count, then lengths and texts. Where
/// an entry has the same field names as the block's first one, as most streams' entries do, only
/// its values are there.
class StreamBlock {
 public:
  static constexpr std::size_t most_entries = 100;   // as Redis's stream-node-max-entries
  static constexpr std::size_t enough_bytes = 4096;  // and its stream-node-max-bytes

  bool full() const noexcept {
    return entries_.size() >= most_entries || bytes_.size() >= enough_bytes;
  }
  std::size_t size() const noexcept { return entries_.size(); }
  StreamId id(std::size_t index) const noexcept { return entries_[index].id; }
  StreamId last() const noexcept { return entries_.back().id; }

  /// The first entry that is not before `id`; size(): there is none.
  std::size_t lower_bound(StreamId id) const noexcept;

  /// `fields`: names and values in turn. REQUIRES: `id` is after the last.
  void append(StreamId id, Words fields);
  void erase(std::size_t first, std::size_t count);
  void erase_last();  ///< what append() added

  struct Entry {
    StreamId id;
    std::uint32_t place;  ///< in `bytes_`
    bool same_names;
  };
  /// The entries [first, first + count), whose bytes stay when they are erased, and back again.
  std::vector<Entry> entries(std::size_t first, std::size_t count) const {
    const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(first);
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }
  void put_back(std::size_t first, const std::vector<Entry>& entries) {
    entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(first), entries.begin(),
                    entries.end());
  }
  std::size_t bytes() const noexcept { return bytes_.size() + entries_.size() * sizeof(Entry); }

  /// How many fields an entry has.
  std::size_t field_count(std::size_t index) const noexcept;
  /// Calls visit(name, value) for each field.
  template <class Visit>
  void visit_fields(std::size_t index, Visit&& visit) const {
    const auto& entry = entries_[index];
    Reader values{bytes_.data() + entry.place};
    Reader names{names_.data()};
    for (auto left = values.number(); left > 0; --left) {
      const auto name = entry.same_names ? names.text() : values.text();
      visit(name, values.text());
    }
  }

 private:
  /// Reads what append() wrote. Lengths take seven bits a byte, the low ones first.
  struct Reader {
    const char* at;

    std::size_t number() noexcept {
      std::size_t value = 0;
      for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(*at++);
        value |= static_cast<std::size_t>(byte & 0x7F) << shift;
        if (byte < 0x80) return value;
      }
    }
    std::string_view text() noexcept {
      const auto size = number();
      const std::string_view text{at, size};
      at += size;
      return text;
    }
  };

  bool has_names(Words fields) const noexcept;

  std::vector<Entry> entries_;
  std::string names_;
  std::size_t name_count_ = 0;
  std::string bytes_;
};

/// A consumer group: how far it has read, and what was delivered but not acknowledged (the pending
/// entries).
class StreamGroup {
 public:
  struct Consumer;
  struct Pending {
    Consumer* consumer;
    std::int64_t delivered_ms;
    std::uint64_t deliveries;
  };
  using AllPending = std::map<StreamId, Pending>;
  struct Consumer {
    std::string name;
    std::int64_t seen_ms;
    std::map<StreamId, Pending*> pending = {};
  };
  using Consumers = std::map<std::string, Consumer, std::less<>>;

  static constexpr std::int64_t unknown = -1;

  StreamGroup(StreamId last, std::int64_t read) : last_id(last), entries_read(read) {}
  StreamGroup(const StreamGroup& other);
  StreamGroup(StreamGroup&&) = default;
  StreamGroup& operator=(const StreamGroup&) = delete;

  StreamId last_id;           ///< of the last entry delivered
  std::int64_t entries_read;  ///< how many were delivered since the stream's first; or unknown

  const AllPending& pending() const noexcept { return pending_; }
  const Consumers& consumers() const noexcept { return consumers_; }

  Consumer* find_consumer(std::string_view name);
  Consumer& add_consumer(std::string_view name, std::int64_t now_ms, Undo* undo);
  /// How many pending entries went with it.
  std::size_t erase_consumer(std::string_view name, Undo* undo);

  Pending* find_pending(StreamId id);
  /// The entry is pending for `consumer` from now on; no longer for another.
  Pending& assign(StreamId id, Consumer& consumer, std::int64_t delivered_ms,
                  std::uint64_t deliveries, Undo* undo);
  bool acknowledge(StreamId id, Undo* undo);

  /// `last_id` and `entries_read` are about to change.
  void expect_move(Undo* undo);
  static void expect_sight(Consumer& consumer, Undo* undo);  ///< `seen_ms`
  /// The time and number of its deliveries.
  void expect_delivery(StreamId id, const Pending& pending, Undo* undo);

 private:
  struct Inverse;

  AllPending pending_;
  Consumers consumers_;
};

class Stream {
 public:
  /// An entry where it lies; good until the stream changes.
  class Entry {
   public:
    Entry(const StreamBlock& block, std::size_t index) noexcept : block_(&block), index_(index) {}
    StreamId id() const noexcept { return block_->id(index_); }
    std::size_t field_count() const noexcept { return block_->field_count(index_); }
    template <class Visit>
    void visit_fields(Visit&& visit) const {
      block_->visit_fields(index_, visit);
    }

   private:
    const StreamBlock* block_;
    std::size_t index_;
  };

  std::size_t size() const noexcept { return size_; }
  std::size_t block_count() const noexcept { return blocks_.size(); }
  StreamId first_id() const noexcept { return size_ == 0 ? StreamId{} : blocks_.front().id(0); }

  /// REQUIRES: `id` is after last_id. Amortised O(fields).
  void append(StreamId id, Words fields, Undo* undo);
  std::optional<Entry> find(StreamId id) const;
  bool contains(StreamId id) const { return find(id).has_value(); }
  bool erase(StreamId id, Undo* undo);

  /// Calls visit(Entry) for the entries from `first` to `last`, forward or backward, until it gives
  /// false.
  template <class Visit>
  void visit(StreamId first, StreamId last, Visit&& visit) const;
  template <class Visit>
  void visit_backward(StreamId first, StreamId last, Visit&& visit) const;

  struct Trim {
    enum class By { nothing, length, id };
    By by = By::nothing;
    std::size_t length = 0;    ///< keep at most so many
    StreamId id;               ///< delete what is before it
    bool approximate = false;  ///< only whole blocks: cheaper
    std::size_t limit = 0;     ///< delete at most so many, 0: any number
  };
  /// Deletes from the front; the number deleted.
  std::size_t trim(const Trim& trim, Undo* undo);

  /// Null: a group of that name is there.
  StreamGroup* add_group(std::string_view name, StreamId last, std::int64_t read, Undo* undo);
  bool erase_group(std::string_view name, Undo* undo);
  /// The ids below and `entries_added` are about to change.
  void expect_count(Undo* undo);

  StreamId last_id;         ///< of the last entry ever added, or what XSETID says
  StreamId max_deleted_id;  ///< the largest id that XDEL has deleted; trimming leaves no gap
  std::uint64_t entries_added = 0;
  std::map<std::string, StreamGroup, std::less<>> groups;

  /// An entry was deleted after `id` that a reader at `id` has not seen.
  bool has_gap_after(StreamId id) const noexcept;
  /// How many entries were ever added up to `id`; StreamGroup::unknown where that cannot be told.
  std::int64_t added_up_to(StreamId id) const noexcept;
  /// How many entries `group` has still to read; empty: unknown.
  std::optional<std::int64_t> lag(const StreamGroup& group) const noexcept;

 private:
  struct Inverse;

  std::size_t block_of(StreamId id) const noexcept;
  bool may_go(const StreamBlock& block, const Trim& trim) const noexcept;
  void erase_entries(std::size_t block, std::size_t first, std::size_t count, Undo* undo);

  std::deque<StreamBlock> blocks_;  // none is empty
  std::size_t size_ = 0;
};

template <class Visit>
void Stream::visit(StreamId first, StreamId last, Visit&& visit) const {
  for (std::size_t b = block_of(first); b < blocks_.size(); ++b) {
    const auto& block = blocks_[b];
    for (std::size_t i = block.lower_bound(first); i < block.size(); ++i)
      if (block.id(i) > last || !visit(Entry{block, i})) return;
  }
}

template <class Visit>
void Stream::visit_backward(StreamId first, StreamId last, Visit&& visit) const {
  const auto after = last.next();
  std::size_t b = block_of(last);
  if (b < blocks_.size()) ++b;
  for (; b > 0; --b) {
    const auto& block = blocks_[b - 1];
    for (std::size_t i = after ? block.lower_bound(*after) : block.size(); i > 0; --i)
      if (block.id(i - 1) < first || !visit(Entry{block, i - 1})) return;
  }
}

}  // namespace sluice::engine
