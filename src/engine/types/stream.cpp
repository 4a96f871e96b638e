#include "engine/types/stream.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>

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

constexpr std::size_t longest_id = 127;

/// As Redis reads it: by strtoull(), which takes blanks and signs; a plain negative number is none.
std::optional<std::uint64_t> id_number(std::string_view text) {
  if (const auto plain = sluice::parse_integer<std::uint64_t>(text)) return plain;
  const auto negative = sluice::parse_integer<std::int64_t>(text);
  if (text.empty() || (negative && text[1] != '0')) return std::nullopt;
  const std::string copy{text};
  char* end = nullptr;
  errno = 0;
  const auto number = std::strtoull(copy.c_str(), &end, 10);
  if (errno != 0 || *end != '\0') return std::nullopt;
  return number;
}

}  // namespace

std::optional<StreamId> parse_stream_id(std::string_view text, std::uint64_t missing_seq) {
  if (text.size() > longest_id) return std::nullopt;
  text = text.substr(0, text.find('\0'));
  const auto dash = text.find('-');
  const auto ms = id_number(text.substr(0, dash));
  if (!ms) return std::nullopt;
  if (dash == std::string_view::npos) return StreamId{*ms, missing_seq};
  const auto seq = id_number(text.substr(dash + 1));
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

void StreamBlock::erase_last() {
  bytes_.resize(entries_.back().place);
  entries_.pop_back();
}

std::size_t StreamBlock::field_count(std::size_t index) const noexcept {
  return Reader{bytes_.data() + entries_[index].place}.number();
}

// --- a group ---

StreamGroup::StreamGroup(const StreamGroup& other)
    : last_id(other.last_id), entries_read(other.entries_read) {
  for (const auto& [name, consumer] : other.consumers_)
    add_consumer(name, consumer.seen_ms, nullptr);
  for (const auto& [id, pending] : other.pending_)
    assign(id, *find_consumer(pending.consumer->name), pending.delivered_ms, pending.deliveries,
           nullptr);
}

StreamGroup::Consumer* StreamGroup::find_consumer(std::string_view name) {
  const auto found = consumers_.find(name);
  return found == consumers_.end() ? nullptr : &found->second;
}

/// The steps that take changes of a group back.
struct StreamGroup::Inverse {
  static StreamGroup& of(Undo::Step& step) { return *static_cast<StreamGroup*>(step.target); }
  static StreamId id(const Undo::Step& step) { return {step.numbers[0], step.numbers[1]}; }
  static Undo::Numbers numbers(StreamId id, const Pending& pending) {
    return {id.ms, id.seq, static_cast<std::uint64_t>(pending.delivered_ms), pending.deliveries};
  }
  /// A consumer that was erased, with what it had pending.
  struct Erased {
    Consumers::node_type consumer;
    std::vector<AllPending::node_type> pending;
  };

  static void add_consumer(Undo&, Undo::Step& step, Undo::Way) {
    of(step).consumers_.erase(static_cast<Consumer*>(step.other)->name);
  }
  static void erase_consumer(Undo&, Undo::Step& step, Undo::Way way) {
    const std::unique_ptr<Erased> erased{static_cast<Erased*>(step.other)};
    if (way == Undo::Way::forget) return;
    of(step).consumers_.insert(std::move(erased->consumer));
    for (auto& node : erased->pending) of(step).pending_.insert(std::move(node));
  }
  static void assign_new(Undo&, Undo::Step& step, Undo::Way) {
    of(step).acknowledge(id(step), nullptr);
  }
  /// Also of acknowledge() and of a delivery: `other` had it. Finds the entry by its id: one that
  /// comes back lies elsewhere than the one that went.
  static void assign(Undo&, Undo::Step& step, Undo::Way) {
    of(step).assign(id(step), *static_cast<Consumer*>(step.other),
                    static_cast<std::int64_t>(step.numbers[2]), step.numbers[3], nullptr);
  }
  static void move(Undo&, Undo::Step& step, Undo::Way) {
    of(step).last_id = id(step);
    of(step).entries_read = static_cast<std::int64_t>(step.numbers[2]);
  }
  static void see(Undo&, Undo::Step& step, Undo::Way) {
    static_cast<Consumer*>(step.target)->seen_ms = static_cast<std::int64_t>(step.numbers[0]);
  }
};

StreamGroup::Consumer& StreamGroup::add_consumer(std::string_view name, std::int64_t now_ms,
                                                 Undo* undo) {
  if (undo) undo->expect();
  const auto [place, made] =
      consumers_.try_emplace(std::string{name}, Consumer{std::string{name}, now_ms});
  if (undo && made) undo->add(Inverse::add_consumer, this, &place->second);
  return place->second;
}

std::size_t StreamGroup::erase_consumer(std::string_view name, Undo* undo) {
  const auto found = consumers_.find(name);
  if (found == consumers_.end()) return 0;
  const auto count = found->second.pending.size();
  if (!undo) {
    for (const auto& [id, pending] : found->second.pending) pending_.erase(id);
    consumers_.erase(found);
    return count;
  }
  undo->expect();
  auto erased = std::make_unique<Inverse::Erased>();
  erased->pending.reserve(count);
  for (const auto& [id, pending] : found->second.pending)
    erased->pending.push_back(pending_.extract(id));
  erased->consumer = consumers_.extract(found);
  const auto bytes = count * (sizeof(AllPending::value_type) + sizeof(Inverse::Erased));
  undo->add_keeping(Inverse::erase_consumer, this, erased.release(), bytes);
  return count;
}

StreamGroup::Pending* StreamGroup::find_pending(StreamId id) {
  const auto found = pending_.find(id);
  return found == pending_.end() ? nullptr : &found->second;
}

StreamGroup::Pending& StreamGroup::assign(StreamId id, Consumer& consumer,
                                          std::int64_t delivered_ms, std::uint64_t deliveries,
                                          Undo* undo) {
  if (undo) undo->expect();
  const auto size = pending_.size();
  const auto place =
      pending_.empty() || pending_.rbegin()->first < id ? pending_.end() : pending_.lower_bound(id);
  auto& pending =
      pending_.try_emplace(place, id, Pending{&consumer, delivered_ms, deliveries})->second;
  const bool known = pending_.size() == size;
  if (undo)
    undo->add(known ? Inverse::assign : Inverse::assign_new, this, pending.consumer,
              Inverse::numbers(id, pending));
  if (known && pending.consumer != &consumer) pending.consumer->pending.erase(id);
  pending = {&consumer, delivered_ms, deliveries};
  consumer.pending.insert_or_assign(consumer.pending.end(), id, &pending);
  return pending;
}

bool StreamGroup::acknowledge(StreamId id, Undo* undo) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return false;
  if (undo) {
    undo->expect();
    undo->add(Inverse::assign, this, found->second.consumer, Inverse::numbers(id, found->second));
  }
  found->second.consumer->pending.erase(id);
  pending_.erase(found);
  return true;
}

void StreamGroup::expect_move(Undo* undo) {
  if (!undo) return;
  undo->expect();
  undo->add(Inverse::move, this, nullptr,
            {last_id.ms, last_id.seq, static_cast<std::uint64_t>(entries_read)});
}

void StreamGroup::expect_sight(Consumer& consumer, Undo* undo) {
  if (!undo) return;
  undo->expect();
  undo->add(Inverse::see, &consumer, nullptr, {static_cast<std::uint64_t>(consumer.seen_ms)});
}

void StreamGroup::expect_delivery(StreamId id, const Pending& pending, Undo* undo) {
  if (!undo) return;
  undo->expect();
  undo->add(Inverse::assign, this, pending.consumer, Inverse::numbers(id, pending));
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

/// The steps that take changes of a stream back.
struct Stream::Inverse {
  using Groups = std::map<std::string, StreamGroup, std::less<>>;
  struct Count {
    StreamId last_id;
    StreamId max_deleted_id;
    std::uint64_t entries_added;
  };

  static Stream& of(Undo::Step& step) { return *static_cast<Stream*>(step.target); }
  static std::ptrdiff_t place(const Undo::Step& step) {
    return static_cast<std::ptrdiff_t>(step.numbers[0]);
  }

  static void append(Undo&, Undo::Step& step, Undo::Way) {
    auto& stream = of(step);
    stream.blocks_.back().erase_last();
    if (stream.blocks_.back().size() == 0) stream.blocks_.pop_back();
    stream.last_id = {step.numbers[0], step.numbers[1]};
    --stream.size_;
    --stream.entries_added;
  }
  /// `other`: a whole block, which was number `numbers[0]`.
  static void erase_block(Undo&, Undo::Step& step, Undo::Way way) {
    const std::unique_ptr<StreamBlock> block{static_cast<StreamBlock*>(step.other)};
    if (way == Undo::Way::forget) return;
    of(step).size_ += block->size();
    auto& blocks = of(step).blocks_;
    blocks.insert(blocks.begin() + place(step), std::move(*block));
  }
  /// `other`: entries of block `numbers[0]`, the first of which was number `numbers[1]` in it.
  static void erase_entries(Undo&, Undo::Step& step, Undo::Way way) {
    using Entries = std::vector<StreamBlock::Entry>;
    const std::unique_ptr<Entries> entries{static_cast<Entries*>(step.other)};
    if (way == Undo::Way::forget) return;
    of(step).size_ += entries->size();
    of(step).blocks_[step.numbers[0]].put_back(step.numbers[1], *entries);
  }
  static void add_group(Undo&, Undo::Step& step, Undo::Way) {
    auto& groups = of(step).groups;
    std::erase_if(groups, [&](const auto& named) { return &named.second == step.other; });
  }
  static void erase_group(Undo&, Undo::Step& step, Undo::Way way) {
    const std::unique_ptr<Groups::node_type> group{static_cast<Groups::node_type*>(step.other)};
    if (way == Undo::Way::back) of(step).groups.insert(std::move(*group));
  }
  static void count(Undo&, Undo::Step& step, Undo::Way way) {
    const std::unique_ptr<Count> count{static_cast<Count*>(step.other)};
    if (way == Undo::Way::forget) return;
    of(step).last_id = count->last_id;
    of(step).max_deleted_id = count->max_deleted_id;
    of(step).entries_added = count->entries_added;
  }
};

void Stream::append(StreamId id, Words fields, Undo* undo) {
  if (undo) undo->expect();
  if (blocks_.empty() || blocks_.back().full()) blocks_.emplace_back();
  blocks_.back().append(id, fields);
  if (undo) undo->add(Inverse::append, this, nullptr, {last_id.ms, last_id.seq});
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

void Stream::erase_entries(std::size_t b, std::size_t first, std::size_t count, Undo* undo) {
  auto& block = blocks_[b];
  const bool whole = count == block.size();
  if (undo && whole) {
    undo->expect();
    const auto bytes = block.bytes();
    undo->add_keeping(Inverse::erase_block, this, new StreamBlock(std::move(block)), bytes, {b});
  } else if (undo) {
    undo->expect();
    undo->add_keeping(Inverse::erase_entries, this,
                      new std::vector<StreamBlock::Entry>(block.entries(first, count)),
                      count * sizeof(StreamBlock::Entry), {b, first});
  }
  if (whole)
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(b));
  else
    block.erase(first, count);
  size_ -= count;
}

bool Stream::erase(StreamId id, Undo* undo) {
  const auto b = block_of(id);
  if (b == blocks_.size()) return false;
  const auto i = blocks_[b].lower_bound(id);
  if (i == blocks_[b].size() || blocks_[b].id(i) != id) return false;
  erase_entries(b, i, 1, undo);
  return true;
}

bool Stream::may_go(const StreamBlock& block, const Trim& trim) const noexcept {
  return trim.by == Trim::By::length ? size_ - block.size() >= trim.length : block.last() < trim.id;
}

std::size_t Stream::trim(const Trim& trim, Undo* undo) {
  if (trim.by == Trim::By::nothing) return 0;
  std::size_t deleted = 0;
  const auto allowed = [&](std::size_t more) {
    return trim.limit == 0 || deleted + more <= trim.limit;
  };
  while (!blocks_.empty() && may_go(blocks_.front(), trim) && allowed(blocks_.front().size())) {
    deleted += blocks_.front().size();
    erase_entries(0, 0, blocks_.front().size(), undo);
  }
  if (trim.approximate || blocks_.empty()) return deleted;

  std::size_t count = trim.by == Trim::By::length ? (size_ > trim.length ? size_ - trim.length : 0)
                                                  : blocks_.front().lower_bound(trim.id);
  if (trim.limit != 0) count = std::min(count, trim.limit - deleted);
  if (count == 0) return deleted;
  erase_entries(0, 0, count, undo);
  return deleted + count;
}

StreamGroup* Stream::add_group(std::string_view name, StreamId last, std::int64_t read,
                               Undo* undo) {
  if (undo) undo->expect();
  const auto [place, made] = groups.try_emplace(std::string{name}, last, read);
  if (!made) return nullptr;
  if (undo) undo->add(Inverse::add_group, this, &place->second);
  return &place->second;
}

bool Stream::erase_group(std::string_view name, Undo* undo) {
  const auto found = groups.find(name);
  if (found == groups.end()) return false;
  if (!undo) return groups.erase(found), true;
  undo->expect();
  auto kept = std::make_unique<Inverse::Groups::node_type>();
  const auto bytes = found->second.pending().size() * sizeof(StreamGroup::AllPending::value_type);
  *kept = groups.extract(found);
  undo->add_keeping(Inverse::erase_group, this, kept.release(), bytes);
  return true;
}

void Stream::expect_count(Undo* undo) {
  if (!undo) return;
  undo->expect();
  undo->add_keeping(Inverse::count, this,
                    new Inverse::Count{last_id, max_deleted_id, entries_added},
                    sizeof(Inverse::Count));
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
