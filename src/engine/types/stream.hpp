/// A stream: entries in the order of their ids, and the groups that read them.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "engine/types/stream_block.hpp"
#include "engine/types/stream_group.hpp"
#include "engine/types/stream_id.hpp"

namespace sluice::engine {

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
  void append(StreamId id, Words fields);
  std::optional<Entry> find(StreamId id) const;
  bool contains(StreamId id) const { return find(id).has_value(); }
  bool erase(StreamId id);

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
  std::size_t trim(const Trim& trim);

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
  std::size_t block_of(StreamId id) const noexcept;
  bool may_go(const StreamBlock& block, const Trim& trim) const noexcept;

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
