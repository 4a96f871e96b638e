/// What the stream commands have in common.
#pragma once

#include <string_view>
#include <vector>

#include "engine/core/command.hpp"

namespace sluice::engine {

inline constexpr std::string_view invalid_stream_id =
    "ERR Invalid stream ID specified as stream command argument";

/// "ms-seq" or "ms".
StreamId read_stream_id(std::string_view word, std::uint64_t missing_seq = 0);
/// A range as XRANGE takes it: - and + for the ends, ( before an id that is not part of it.
StreamId read_range_start(std::string_view word);
StreamId read_range_end(std::string_view word);

/// MAXLEN, MINID and LIMIT.
struct TrimOptions {
  Stream::Trim trim;
  bool limited = false;

  /// Whether one of them begins at words[at].
  static bool begins(Words words, std::size_t at);
  /// Reads the one that begins at words[at] and moves `at` behind it.
  void read(Words words, std::size_t& at);
  /// After all options: LIMIT only goes with "~", which has a limit of its own.
  void settle();
  bool wanted() const noexcept { return trim.by != Stream::Trim::By::nothing; }
};

/// The stream at a key; where there is none, `missing` is the error.
Stream& find_stream(Context& context, std::string_view key, std::string_view missing = no_such_key);
/// A group of it; null: there is none.
StreamGroup* group_of(Stream* stream, std::string_view name);
/// XCLAIM, XPENDING, XREADGROUP: the stream and the group; `suffix` ends the error.
struct FoundGroup {
  Stream& stream;
  StreamGroup& group;
};
FoundGroup find_group(Context& context, std::string_view key, std::string_view name,
                      std::string_view suffix = "");
/// XGROUP, XINFO: the group words[3] of a stream at words[2].
StreamGroup& find_named_group(Words words, Stream& stream);

/// The consumer of a group, made where there is none; it was seen now.
StreamGroup::Consumer& consumer_of(Context& context, StreamGroup& group, std::string_view key,
                                   std::string_view group_name, std::string_view name);

/// Up to `most` entries from `first` to `last`; `backward`: the last ones, from the end.
inline constexpr auto all_entries = ~std::size_t{0};
std::vector<Stream::Entry> entries_of(const Stream& stream, StreamId first = {},
                                      StreamId last = StreamId::max(),
                                      std::size_t most = all_entries, bool backward = false);

void reply_id(Reply& reply, StreamId id);
/// [id, [name, value, ...]]
void reply_entry(Reply& reply, const Stream::Entry& entry);
void reply_entries(Reply& reply, const std::vector<Stream::Entry>& entries);

/// Entries that a consumer was given, as the log says it: one XCLAIM tells all of them.
struct LoggedClaim {
  std::string_view key;
  std::string_view group_name;
  std::string_view consumer;
  std::int64_t delivered_ms = 0;
  std::uint64_t deliveries = 1;
};
void log_claim(Context& context, const LoggedClaim& claim, const std::vector<StreamIdText>& ids,
               StreamId last_id);
/// How far a group has read.
void log_position(Context& context, std::string_view key, std::string_view group_name,
                  const StreamGroup& group);

}  // namespace sluice::engine
