#include "engine/types/stream.hpp"

#include <algorithm>
#include <charconv>

#include "base/integer.hpp"

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

std::optional<StreamId> parse_stream_id(std::string_view text, std::uint64_t missing_seq) noexcept {
  const auto dash = text.find('-');
  const auto ms = sluice::parse_integer<std::uint64_t>(text.substr(0, dash));
  if (!ms) return std::nullopt;
  if (dash == std::string_view::npos) return StreamId{*ms, missing_seq};
  const auto seq = sluice::parse_integer<std::uint64_t>(text.substr(dash + 1));
  if (!seq) return std::nullopt;
  return StreamId{*ms, *seq};
}

StreamIdText::StreamIdText(StreamId id) noexcept {
  char* const end = text_.data() + text_.size();
  char* at = std::to_chars(text_.data(), end, id.ms).ptr;
  *at++ = '-';
  at = std::to_chars(at, end, id.seq).ptr;
  size_ = static_cast<std::size_t>(at - text_.data());
}

// --- a block ---

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

// --- a group ---

StreamGroup::StreamGroup(const StreamGroup& other)
    : last_id(other.last_id), entries_read(other.entries_read) {
  for (const auto& [name, consumer] : other.consumers_) add_consumer(name, consumer.seen_ms);
  for (const auto& [id, pending] : other.pending_)
    assign(id, *find_consumer(pending.consumer->name), pending.delivered_ms, pending.deliveries);
}

StreamGroup::Consumer* StreamGroup::find_consumer(std::string_view name) {
  const auto found = consumers_.find(name);
  return found == consumers_.end() ? nullptr : &found->second;
}

StreamGroup::Consumer& StreamGroup::add_consumer(std::string_view name, std::int64_t now_ms) {
  return consumers_.try_emplace(std::string{name}, Consumer{std::string{name}, now_ms})
      .first->second;
}

std::size_t StreamGroup::erase_consumer(std::string_view name) {
  const auto found = consumers_.find(name);
  if (found == consumers_.end()) return 0;
  const auto count = found->second.pending.size();
  for (const auto& [id, pending] : found->second.pending) pending_.erase(id);
  consumers_.erase(found);
  return count;
}

StreamGroup::Pending* StreamGroup::find_pending(StreamId id) {
  const auto found = pending_.find(id);
  return found == pending_.end() ? nullptr : &found->second;
}

StreamGroup::Pending& StreamGroup::assign(StreamId id, Consumer& consumer,
                                          std::int64_t delivered_ms, std::uint64_t deliveries) {
  const auto size = pending_.size();
  const auto place =
      pending_.empty() || pending_.rbegin()->first < id ? pending_.end() : pending_.lower_bound(id);
  auto& pending =
      pending_.try_emplace(place, id, Pending{&consumer, delivered_ms, deliveries})->second;
  if (pending_.size() == size && pending.consumer != &consumer) pending.consumer->pending.erase(id);
  pending = {&consumer, delivered_ms, deliveries};
  consumer.pending.insert_or_assign(consumer.pending.end(), id, &pending);
  return pending;
}

bool StreamGroup::acknowledge(StreamId id) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return false;
  found->second.consumer->pending.erase(id);
  pending_.erase(found);
  return true;
}

// --- the stream ---

/// The first block that may hold `id` or something after it.
std::size_t Stream::block_of(StreamId id) const noexcept {
  if (!blocks_.empty() && blocks_.back().id(0) <= id)  // where readers are, most of the time
    return blocks_.back().last() >= id ? blocks_.size() - 1 : blocks_.size();
  const auto found = std::lower_bound(
      blocks_.begin(), blocks_.end(), id,
      [](const StreamBlock& block, StreamId wanted) { return block.last() < wanted; });
  return static_cast<std::size_t>(found - blocks_.begin());
}

void Stream::append(StreamId id, Words fields) {
  if (blocks_.empty() || blocks_.back().full()) blocks_.emplace_back();
  blocks_.back().append(id, fields);
  last_id = id;
  ++size_;
  ++entries_added;
}

std::optional<Stream::Entry> Stream::find(StreamId id) const {
  const auto b = block_of(id);
  if (b == blocks_.size()) return std::nullopt;
  const auto i = blocks_[b].lower_bound(id);
  if (i == blocks_[b].size() || blocks_[b].id(i) != id) return std::nullopt;
  return Entry{blocks_[b], i};
}

bool Stream::erase(StreamId id) {
  const auto b = block_of(id);
  if (b == blocks_.size()) return false;
  auto& block = blocks_[b];
  const auto i = block.lower_bound(id);
  if (i == block.size() || block.id(i) != id) return false;
  block.erase(i, 1);
  if (block.size() == 0) blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(b));
  --size_;
  return true;
}

bool Stream::may_go(const StreamBlock& block, const Trim& trim) const noexcept {
  return trim.by == Trim::By::length ? size_ - block.size() >= trim.length : block.last() < trim.id;
}

std::size_t Stream::trim(const Trim& trim) {
  if (trim.by == Trim::By::nothing) return 0;
  std::size_t deleted = 0;
  const auto allowed = [&](std::size_t more) {
    return trim.limit == 0 || deleted + more <= trim.limit;
  };
  while (!blocks_.empty() && may_go(blocks_.front(), trim) && allowed(blocks_.front().size())) {
    size_ -= blocks_.front().size();
    deleted += blocks_.front().size();
    blocks_.pop_front();
  }
  if (trim.approximate || blocks_.empty()) return deleted;

  auto& block = blocks_.front();
  std::size_t count = trim.by == Trim::By::length ? (size_ > trim.length ? size_ - trim.length : 0)
                                                  : block.lower_bound(trim.id);
  if (trim.limit != 0) count = std::min(count, trim.limit - deleted);
  if (count == 0) return deleted;
  block.erase(0, count);
  size_ -= count;
  return deleted + count;
}

bool Stream::has_gap_after(StreamId id) const noexcept {
  return size_ != 0 && max_deleted_id != StreamId{} && id <= max_deleted_id;
}

std::int64_t Stream::added_up_to(StreamId id) const noexcept {
  const auto added = static_cast<std::int64_t>(entries_added);
  const auto gone = added - static_cast<std::int64_t>(size_);
  if (added == 0) return 0;
  if (id == last_id || (size_ == 0 && id < last_id)) return added;
  if (id > last_id) return StreamGroup::unknown;
  const bool whole = max_deleted_id == StreamId{} || max_deleted_id < first_id();
  if (whole && id < first_id()) return gone;
  if (whole && id == first_id()) return gone + 1;
  return StreamGroup::unknown;
}

std::optional<std::int64_t> Stream::lag(const StreamGroup& group) const noexcept {
  const auto added = static_cast<std::int64_t>(entries_added);
  if (added == 0) return 0;
  const bool counted = group.entries_read != StreamGroup::unknown && !has_gap_after(group.last_id);
  const auto read = counted ? group.entries_read : added_up_to(group.last_id);
  if (read == StreamGroup::unknown) return std::nullopt;
  return added - read;
}

}  // namespace sluice::engine
