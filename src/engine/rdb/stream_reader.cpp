#include "engine/rdb/stream_reader.hpp"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/integer.hpp"
#include "engine/rdb/packed.hpp"

namespace sluice::engine {
namespace {

using EntryId = std::pair<std::uint64_t, std::uint64_t>;  // milliseconds, number in them

std::string text_of_id(EntryId id) { return fmt::format("{}-{}", id.first, id.second); }

EntryId raw_id(std::string_view bytes) {
  return {big_endian<8>(bytes), big_endian<8>(bytes.substr(8))};
}

struct PendingEntry {
  EntryId id;
  std::string consumer;
  std::int64_t delivered_ms = 0;
  std::uint64_t deliveries = 0;
};
struct GroupOfStream {
  std::string name;
  EntryId last;
  std::int64_t entries_read = -1;  // not known
  std::vector<std::string> consumers;
  std::vector<PendingEntry> pending;
};

/// The entries of one listpack: the first has the names of fields that others may leave out.
class StreamNode {
 public:
  StreamNode(EntryId first, std::string_view listpack) : first_(first) {
    visit_listpack(listpack, [this](std::string_view text) { elements_.emplace_back(text); });
    next();  // how many entries
    next();  // how many of them were deleted
    for (auto left = number(); left > 0; --left) names_.push_back(next());
    next();  // where it ends, for one who reads backwards
  }

  /// `visit(EntryId, Words fields)`: what was not deleted.
  template <class Visit>
  void visit(Visit&& visit) {
    while (at_ < elements_.size()) {
      const auto flags = number();
      const EntryId id{first_.first + number(), first_.second + number()};
      const auto fields = read_fields(flags);
      next();
      if (!(flags & deleted)) visit(id, Words{fields});
    }
  }

 private:
  static constexpr std::uint64_t deleted = 1;
  static constexpr std::uint64_t same_names = 2;

  std::string_view next() {
    if (at_ == elements_.size()) refuse_damaged("a stream that ends within an entry");
    return elements_[at_++];
  }
  /// A difference may be negative: it is added as it is.
  std::uint64_t number() {
    const auto value = parse_integer<std::int64_t>(next());
    if (!value) refuse_damaged("an entry of a stream with a text for a number");
    return static_cast<std::uint64_t>(*value);
  }
  std::vector<std::string_view> read_fields(std::uint64_t flags) {
    std::vector<std::string_view> fields;
    if (flags & same_names) {
      for (const auto name : names_) fields.insert(fields.end(), {name, next()});
    } else {
      for (auto left = number(); left > 0; --left) {
        fields.push_back(next());
        fields.push_back(next());
      }
    }
    return fields;
  }

  EntryId first_;
  std::vector<std::string> elements_;
  std::size_t at_ = 0;
  std::vector<std::string_view> names_;
};

constexpr auto greatest = std::numeric_limits<std::uint64_t>::max();

class StreamReader {
 public:
  StreamReader(SnapshotFields& fields, StreamForm form, const std::string& key,
               const RunCommand& run)
      : fields_(fields), form_(form), key_(key), run_(run) {}

  void read() {
    for (auto left = fields_.length(); left > 0; --left) {
      const auto first = fields_.text();
      if (first.size() != 16) refuse_damaged("a block of a stream without an id");
      blocks_.emplace_back(raw_id(first), fields_.text());
    }
    read_counts();
    for (auto left = fields_.length(); left > 0; --left) read_group();
    write();
  }

 private:
  EntryId read_id() {
    const auto ms = fields_.length();
    return {ms, fields_.length()};
  }

  void read_counts() {
    size_ = added_ = fields_.length();
    last_ = read_id();
    if (form_ == StreamForm::redis_5) return;
    read_id();  // the first, which the entries tell
    deleted_ = read_id();
    added_ = fields_.length();
  }

  void read_group() {
    GroupOfStream group{.name = fields_.text(), .last = read_id()};
    if (form_ != StreamForm::redis_5)
      group.entries_read = static_cast<std::int64_t>(fields_.length());
    std::map<EntryId, PendingEntry> unowned;
    for (auto left = fields_.length(); left > 0; --left) {
      PendingEntry pending{.id = raw_id(fields_.take(16))};
      pending.delivered_ms = signed_little_endian<8>(fields_.take(8));
      pending.deliveries = fields_.length();
      pending_.insert(pending.id);
      unowned.emplace(pending.id, pending);
    }
    for (auto left = fields_.length(); left > 0; --left) read_consumer(group, unowned);
    if (!unowned.empty()) refuse_damaged("an entry that is pending with no consumer");
    groups_.push_back(std::move(group));
  }

  void read_consumer(GroupOfStream& group, std::map<EntryId, PendingEntry>& unowned) {
    const auto& name = group.consumers.emplace_back(fields_.text());
    fields_.take(form_ == StreamForm::redis_7_2 ? 16 : 8);  // when it was seen, and was active
    for (auto left = fields_.length(); left > 0; --left) {
      auto found = unowned.extract(raw_id(fields_.take(16)));
      if (found.empty()) refuse_damaged("a consumer's pending entry that its group does not have");
      found.mapped().consumer = name;
      group.pending.push_back(std::move(found.mapped()));
    }
  }

  void write() {
    for (auto& [first, listpack] : blocks_)
      StreamNode{first, std::exchange(listpack, {})}.visit([&](EntryId id, Words fields) {
        add_ghosts_before(id);
        pending_.erase(id);
        add(id, fields);
        if (entries_++ == 0) first_ = id;
      });
    if (entries_ != size_) refuse_damaged("a stream with more or fewer entries than it says");
    add_ghosts_before({greatest, greatest});
    if (entries_ == 0 && !trimmed_) run({"XADD", key_, "MAXLEN", "0", "0-1", "x", "y"});
    for (const auto& group : groups_) write(group);
    if (trimmed_) run({"XTRIM", key_, "MINID", text_of_id(behind(*trimmed_))});
    for (const auto& ghost : deleted_ghosts_) run({"XDEL", key_, text_of_id(ghost)});
    run({"XSETID", key_, text_of_id(last_), "ENTRIESADDED", fmt::format("{}", added_),
         "MAXDELETEDID", text_of_id(deleted_)});
  }

  void add(EntryId id, Words fields) {
    if (id <= newest_ || id > last_) refuse_damaged("a stream with an entry out of order");
    newest_ = id;
    const auto text = text_of_id(id);
    std::vector<std::string_view> words{"XADD", key_, text};
    words.insert(words.end(), fields.begin(), fields.end());
    run_(words);
  }

  /// XCLAIM takes an entry that is there alone. What is pending and was trimmed (it was before all
  /// others) or deleted is added for that, and goes the same way again at the end.
  void add_ghosts_before(EntryId id) {
    while (!pending_.empty() && *pending_.begin() < id) {
      const auto ghost = pending_.extract(pending_.begin()).value();
      add(ghost, std::vector<std::string_view>{"x", "y"});
      if (entries_ > 0)
        deleted_ghosts_.push_back(ghost);
      else
        trimmed_ = ghost;
    }
  }

  static EntryId behind(EntryId id) noexcept {
    return id.second == greatest ? EntryId{id.first + 1, 0} : EntryId{id.first, id.second + 1};
  }

  /// As a later server makes it of what Redis 5 has written.
  std::int64_t entries_read(const GroupOfStream& group) const noexcept {
    if (form_ != StreamForm::redis_5) return group.entries_read;
    if (added_ == 0 || group.last < first_) return 0;
    if (group.last == last_) return static_cast<std::int64_t>(added_);
    return group.last == first_ ? 1 : -1;
  }

  void write(const GroupOfStream& group) {
    run({"XGROUP", "CREATE", key_, group.name, text_of_id(group.last), "ENTRIESREAD",
         fmt::format("{}", entries_read(group))});
    for (const auto& consumer : group.consumers)
      run({"XGROUP", "CREATECONSUMER", key_, group.name, consumer});
    for (const auto& pending : group.pending)
      run({"XCLAIM", key_, group.name, pending.consumer, "0", text_of_id(pending.id), "TIME",
           fmt::format("{}", pending.delivered_ms), "RETRYCOUNT",
           fmt::format("{}", pending.deliveries), "JUSTID", "FORCE"});
  }

  void run(const std::vector<std::string>& words) {
    const std::vector<std::string_view> views{words.begin(), words.end()};
    run_(views);
  }

  SnapshotFields& fields_;
  const StreamForm form_;
  const std::string& key_;
  const RunCommand& run_;
  std::vector<std::pair<EntryId, std::string>> blocks_;
  std::uint64_t size_ = 0, entries_ = 0;
  std::uint64_t added_ = 0;
  EntryId first_, last_, deleted_, newest_;
  std::vector<GroupOfStream> groups_;
  std::set<EntryId> pending_;  // of any group, which no entry was found for yet
  std::optional<EntryId> trimmed_;
  std::vector<EntryId> deleted_ghosts_;
};

}  // namespace

void read_stream(SnapshotFields& fields, StreamForm form, const std::string& key,
                 const RunCommand& run) {
  StreamReader{fields, form, key, run}.read();
}

}  // namespace sluice::engine
