/// Checkers of fencing tokens, to stand in front of the data that a lock protects: in memory, in
/// Redis, in SQL.
///
/// A lease cannot stop a holder that was paused between its check and its write. A checker can: it
/// keeps the largest token that it has seen, and refuses a smaller one (M. Kleppmann, "How to do
/// distributed locking", 2016). A token equal to the largest is admitted: it is of the same hold.
/// Token 0 is of no hold and is an Error (bad_argument) everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "sluice/expected.hpp"
#include "sluice/held.hpp"
#include "sluice/store.hpp"

namespace sluice {

/// The refusal: a newer hold was here already.
struct StaleToken {
  FencingToken largest;  ///< that was seen
  friend bool operator==(const StaleToken&, const StaleToken&) = default;
};

/// A checker in the memory of the one process that does the writing: a server in front of files or
/// devices.
///
/// Guarantee: once a token was admitted for a resource, no smaller one is, until `forget`. The
///   tests that hold it: docs/fencing.md#guarantee.
/// Not guaranteed: anything across a restart of the process, or between two of them: use Fence or
///   SQL.
/// Threads: any. Memory: some 100 bytes and the name for each resource, of which there are at most
///   `most`; it never forgets one by itself, since that would let an old token in.
///
///     FenceGate gate;
///     if (gate.admit("books", token)) write(page);
class FenceGate {
 public:
  /// Throws Error (bad_argument) for 0.
  explicit FenceGate(std::size_t most = 1'000'000);

  /// Nothing, or StaleToken. Never blocks on I/O; O(1). Throws Error: bad_argument for token 0;
  /// out_of_space (effect none) for a new resource beyond `most`.
  Expected<void, StaleToken> admit(std::string_view resource, FencingToken token);

  /// Forgets a resource that is not written any more. False: it was not known.
  bool forget(std::string_view resource);
  std::size_t size() const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept;  // KeyedHash
  };

  const std::size_t most_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, FencingToken, Hash, std::equal_to<>> largest_;
};

/// A checker in Redis, for data that lies there too.
///
/// Guarantee: once a token was admitted no smaller one is, and `run` checks and writes in one
///   atomic step, while the server keeps its data.
/// Not guaranteed: that what is written after `admit` by another command is still in time: that is
///   what `run` is for. That a server which lost its data remembers the largest token; the tokens
///   of its locks are then younger too.
/// Threads: any. The Store must outlive the Fence, the Fence its Tasks.
/// In Redis: string sluice_fence:{NAME}, the largest token in decimal, no TTL. One round trip.
///
///     Fence fence{*store, "books"};
///     const auto written =
///         fence.run(token, {"{books}:total"}, {"SET", "{books}:total", "42"}).get();
///     if (!written) return yield_to(written.error().largest);
class Fence {
 public:
  /// Throws Error (bad_argument): a name that is empty, above 1 MiB or refused by
  /// docs/lock.md#names.
  Fence(Store& store, std::string name);

  /// Tokens of Sluice and of Redisson lie below: scripts compare them as doubles, exact up to here.
  static constexpr FencingToken largest_token{std::uint64_t{1} << 53};

  /// Nothing, or StaleToken. A lost reply is asked for again, which is no harm. O(1). Throws Error:
  /// bad_argument for a token of 0 or above `largest_token`; what the store throws.
  Task<Expected<void, StaleToken>> admit(FencingToken token);

  /// Runs a command if the token is admitted, in the same atomic step: its reply, or StaleToken and
  /// nothing was done. `keys`: all keys of the command; on a cluster they lie in the slot of the
  /// name (write them with its {tag}). Not for commands that block, subscribe, run scripts, or have
  /// more than 7,000 words. O(1) beside the command. Throws as `admit`, and the command's own error
  /// (effect unknown: it may have done a part). A lost reply is an Error with effect unknown unless
  /// `options.repeatable` says that twice is no harm.
  Task<Expected<Value, StaleToken>> run(FencingToken token, Words keys, Words command,
                                        CallOptions options = {});
  Task<Expected<Value, StaleToken>> run(FencingToken token,
                                        std::initializer_list<std::string_view> keys,
                                        std::initializer_list<std::string_view> command,
                                        CallOptions options = {}) {
    return run(token, Words{keys.begin(), keys.size()}, Words{command.begin(), command.size()},
               options);
  }

  /// The key of the largest token, for scripts of your own; docs/fencing.md has the lines to paste.
  const std::string& key() const noexcept { return key_; }

 private:
  static Task<Expected<Value, StaleToken>> answer(Task<Value> asked);

  Store& store_;
  std::string name_;
  std::string key_;
};

/// Text of SQL statements that refuse an old token, for SQLite, PostgreSQL and MariaDB. The token
/// is the parameter `:token`, to be bound as a 64-bit integer. A statement that changed no row was
/// refused, or found no row: `SELECT token` tells which, and what the largest is.
///
/// Guarantee: the statement is one atomic step of the database, so that no check is needed before
///   it.
/// Not guaranteed by MariaDB: that a row which an admitted statement leaves as it was is counted as
///   changed; its client needs CLIENT_FOUND_ROWS for that.
/// Threads: any; nothing is kept.
namespace fenced_sql {

/// For the table: `CREATE TABLE books (..., token BIGINT NOT NULL DEFAULT 0)`.
inline constexpr std::string_view column = "token BIGINT NOT NULL DEFAULT 0";
/// For SET.
inline constexpr std::string_view assignment = "token = :token";
/// For WHERE.
inline constexpr std::string_view condition = "token <= :token";

/// UPDATE table SET assignments, token = :token WHERE (where) AND token <= :token
/// with a line end behind your text. Throws Error (bad_argument) for a table that is no identifier;
/// for assignments that are not `column = value, ...`, or set the token; for text that is empty, or
/// could end or change what stands behind it: comments, ';', parentheses or quotes that are not
/// closed, a '\' between quotes, '#', text in '$'. It cannot tell a condition that you meant from
/// one that a stranger wrote: never put input into it but by parameters.
std::string update(std::string_view table, std::string_view assignments, std::string_view where);

/// INSERT of a row, or its update if the key is there and the token admits it. Parameters are named
/// as the columns. SQLite 3.24 and PostgreSQL 9.5 or later; MariaDB has no such condition: insert
/// there, and use `update` when the key exists. Throws as `update`, also for no columns.
std::string upsert(std::string_view table, std::span<const std::string_view> keys,
                   std::span<const std::string_view> columns);
std::string upsert(std::string_view table, std::initializer_list<std::string_view> keys,
                   std::initializer_list<std::string_view> columns);

/// For transactions over many tables, which need no column then: a table of the largest tokens ...
inline constexpr std::string_view create_fences =
    "CREATE TABLE IF NOT EXISTS sluice_fences "
    "(name VARCHAR(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL)";
/// ... and the first statement of each transaction, parameters `:name` and `:token`: one row
/// changed: go on, the row is locked until the commit; none: roll back, a newer hold was here.
/// SQLite and PostgreSQL.
inline constexpr std::string_view advance_fence =
    "INSERT INTO sluice_fences (name, token) VALUES (:name, :token) "
    "ON CONFLICT (name) DO UPDATE SET token = excluded.token "
    "WHERE sluice_fences.token <= excluded.token";

}  // namespace fenced_sql
}  // namespace sluice
