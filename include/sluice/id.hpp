/// 64-bit ids for rows and messages: sign 0, 31 bits of seconds since 2024-01-01T00:00:00Z, 32 bits
/// of sequence.
///
/// Guarantee: unique and strictly rising in real time over all instances, while the store keeps its
///   data: an id asked for after another was returned is larger. Time is the store's TIME and never
///   goes back.
///   A store that lost its data is told by each IdWorker what it has given: no id that this object
///   got comes again, and none smaller.
/// Not guaranteed: that ids which other processes alone got do not come again after the store lost
///   its data, within the same second or while its clock is behind. Ids fit a signed 64-bit column,
///   but not a JavaScript number: send them as text.
/// End of life: 2092-01-19T03:14:08Z, by an Error and not by a negative id. At most 2^32 - 1 ids a
/// (UTC) day.
/// Threads: any. Calls made at the same time travel together, one round trip for all.
/// In Redis: hash NAME {last, day, sequence}, no TTL. One round trip, one script.
///
///     IdWorker ids{*store, "order-id"};
///     std::int64_t id = ids.next().get();
#pragma once

#include <cstdint>
#include <string>

#include "sluice/store.hpp"

namespace sluice {

/// The parts of an id.
struct IdParts {
  std::chrono::sys_seconds issued_at;
  std::uint32_t sequence;
};

class IdWorker {
 public:
  static constexpr std::chrono::sys_seconds epoch{std::chrono::seconds{1'704'067'200}};

  /// Throws Error{bad_argument} for an empty name.
  IdWorker(Store& store, std::string name);
  ~IdWorker();
  IdWorker(IdWorker&&) noexcept;
  IdWorker& operator=(IdWorker&&) noexcept;

  /// Throws what the store throws (with effect `unknown` an id may have been skipped, which does no
  /// harm), and Error: server when the store's clock is outside the layout or the day's sequence
  /// is used up; wrong_type (effect none) when the key of this name is something else.
  Task<std::int64_t> next();

  static std::int64_t compose(IdParts parts) noexcept {
    return ((parts.issued_at - epoch).count() << 32) | static_cast<std::int64_t>(parts.sequence);
  }
  static IdParts parts(std::int64_t id) noexcept {
    return {epoch + std::chrono::seconds{id >> 32}, static_cast<std::uint32_t>(id & 0xffff'ffff)};
  }

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
