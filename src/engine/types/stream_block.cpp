#include "engine/types/stream_block.hpp"

#include <algorithm>

namespace sluice::engine {
namespace {

void add_number(std::string& bytes, std::size_t value) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
}

void add_text(std::string& bytes, std::string_view text) {
  add_number(bytes, text.size());
  bytes += text;
}

}  // namespace

std::size_t StreamBlock::lower_bound(StreamId id) const noexcept {
  const auto found =
      std::lower_bound(entries_.begin(), entries_.end(), id,
                       [](const Entry& entry, StreamId wanted) { return entry.id < wanted; });
  return static_cast<std::size_t>(found - entries_.begin());
}

bool StreamBlock::has_names(Words fields) const noexcept {
  if (fields.size() != 2 * name_count_) return false;
  Reader names{names_.data()};
  for (std::size_t i = 0; i < fields.size(); i += 2)
    if (names.text() != fields[i]) return false;
  return true;
}

void StreamBlock::append(StreamId id, Words fields) {
  if (entries_.empty() && bytes_.empty()) {
    for (std::size_t i = 0; i < fields.size(); i += 2) add_text(names_, fields[i]);
    name_count_ = fields.size() / 2;
  }
  const bool same = has_names(fields);
  const auto place = static_cast<std::uint32_t>(bytes_.size());
  add_number(bytes_, fields.size() / 2);
  for (std::size_t i = same ? 1 : 0; i < fields.size(); i += same ? 2 : 1)
    add_text(bytes_, fields[i]);
  entries_.push_back({id, place, same});
}

void StreamBlock::erase(std::size_t first, std::size_t count) {
  // Their bytes stay until the whole block goes; a block is small.
  const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(first);
  entries_.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
}

std::size_t StreamBlock::field_count(std::size_t index) const noexcept {
  return Reader{bytes_.data() + entries_[index].place}.number();
}

}  // namespace sluice::engine
