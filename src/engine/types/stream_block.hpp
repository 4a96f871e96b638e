/// Up to a hundred neighbouring entries of a stream in one piece of memory.
///
/// An entry's fields lie one after another in `bytes`: their count, then lengths and texts. Where
/// an entry has the same field names as the block's first one, as most streams' entries do, only
/// its values are there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/types/stream_id.hpp"
#include "sluice/store.hpp"

namespace sluice::engine {

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
  struct Entry {
    StreamId id;
    std::uint32_t place;  ///< in `bytes_`
    bool same_names;
  };

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

}  // namespace sluice::engine
