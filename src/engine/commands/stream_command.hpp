/// What the stream commands have in common.
#pragma once

#include <optional>
#include <string_view>

#include "engine/core/command.hpp"
#include "engine/types/stream.hpp"

namespace sluice::engine {

inline constexpr std::string_view invalid_stream_id =
    "ERR Invalid stream ID specified as stream command argument";

void add_stream_read_commands(Handlers& handlers);
void add_stream_group_commands(Handlers& handlers);
void add_stream_claim_commands(Handlers& handlers);
void add_stream_info_commands(Handlers& handlers);

/// "ms-seq" or "ms"; false: refused.
bool read_stream_id(std::string_view word, StreamId& id, Reply& reply,
                    std::uint64_t missing_seq = 0);

/// A range as XRANGE takes it: - and + for the ends, ( before an id that is not part of it.
bool read_range_start(std::string_view word, StreamId& id, Reply& reply);
bool read_range_end(std::string_view word, StreamId& id, Reply& reply);

/// MAXLEN or MINID with what follows them. `at` is the place of that word and moves behind the last
/// one that was read.
bool read_trim(Words words, std::size_t& at, Stream::Trim& trim, Reply& reply);
/// LIMIT, if it is there, and whether it fits.
bool read_trim_limit(Words words, std::size_t& at, Stream::Trim& trim, Reply& reply);

void reply_id(Reply& reply, StreamId id);
/// [id, [name, value, ...]]
void reply_entry(Reply& reply, const Stream::Entry& entry);

/// The stream and the group of it; false: one is not there or is something else, and that was
/// refused.
bool find_group(Context& context, std::string_view key, std::string_view name, Stream*& stream,
                StreamGroup*& group, Reply& reply);

}  // namespace sluice::engine
