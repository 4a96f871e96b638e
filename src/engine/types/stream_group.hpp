/// A consumer group: how far it has read, and what was delivered but not acknowledged (the pending
/// entries).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "engine/types/stream_id.hpp"

namespace sluice::engine {

class StreamGroup {
 public:
  struct Consumer;
  struct Pending {
    Consumer* consumer;
    std::int64_t delivered_ms;
    std::uint64_t deliveries;
  };
  using AllPending = std::map<StreamId, Pending>;
  struct Consumer {
    std::string name;
    std::int64_t seen_ms;
    std::map<StreamId, Pending*> pending = {};
  };
  using Consumers = std::map<std::string, Consumer, std::less<>>;

  static constexpr std::int64_t unknown = -1;

  StreamGroup(StreamId last, std::int64_t read) : last_id(last), entries_read(read) {}
  StreamGroup(const StreamGroup& other);
  StreamGroup(StreamGroup&&) = default;
  StreamGroup& operator=(const StreamGroup&) = delete;

  StreamId last_id;           ///< of the last entry delivered
  std::int64_t entries_read;  ///< how many were delivered since the stream's first; or unknown

  const AllPending& pending() const noexcept { return pending_; }
  const Consumers& consumers() const noexcept { return consumers_; }

  Consumer* find_consumer(std::string_view name);
  Consumer& add_consumer(std::string_view name, std::int64_t now_ms);
  /// How many pending entries went with it.
  std::size_t erase_consumer(std::string_view name);

  Pending* find_pending(StreamId id);
  /// The entry is pending for `consumer` from now on; no longer for another.
  Pending& assign(StreamId id, Consumer& consumer, std::int64_t delivered_ms,
                  std::uint64_t deliveries);
  bool acknowledge(StreamId id);

 private:
  AllPending pending_;
  Consumers consumers_;
};

}  // namespace sluice::engine
