/// One record of the append-only file: a command as the client sends it, resp::append_command().
/// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "resp/request_parser.hpp"

namespace sluice::engine {

/// What stands at the beginning of some bytes.
struct ParsedRecord {
  enum class Kind {
    record,
    comment,     ///< as "#TS:1700000000\r\n", to be skipped
    incomplete,  ///< right as far as it goes
    damaged,
  };
  Kind kind = Kind::incomplete;
  std::size_t size = 0;     ///< of a record or comment; where what is damaged begins
  std::string_view damage;  ///< what is wrong, for a message; good as long as the parser
};

/// For the parser of records: a word has at most 512 MiB, as in Redis.
resp::RequestLimits record_limits() noexcept;
/// Looks at the beginning of `bytes`. `parser` then has the words of a record, which point into it;
/// after an incomplete one it goes on where it was, with more bytes behind the same ones.
ParsedRecord parse_record(std::string_view bytes, resp::RequestParser& parser);

/// The engine's time in seconds, in the comment that Redis makes of it: "#TS:1700000000\r\n".
void append_timestamp(std::string& out, std::int64_t second);
/// Of such a comment.
std::optional<std::int64_t> timestamp_of(std::string_view comment) noexcept;

/// Whether `bytes` are the beginning of one.
bool may_become_timestamp(std::string_view bytes) noexcept;

/// A redis-server that begins to append selects a database, in upper case. We write it in lower
/// case, which it reads as well, so that it is known where its writes begin.
inline constexpr std::string_view select_of_redis = "SELECT";
inline constexpr std::string_view our_select = "select";

/// The effects of one execution: a single one bare, several as MULTI ... EXEC, so that a torn tail
/// takes all or none. A SELECT beside a single effect needs no MULTI.
void append_execution(std::string& out, const std::vector<std::vector<std::string>>& effects);

}  // namespace sluice::engine
