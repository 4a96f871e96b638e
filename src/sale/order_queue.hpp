/// Orders on their way: an order as an entry of a stream, and the consumer's side of that stream.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sale/records.hpp"

namespace sluice::sale {

/// An entry of the orders stream.
struct OrderEntry {
  std::string id;                  ///< "1795243971762-0"
  std::optional<SaleOrder> order;  ///< empty: poison, its fields make no order
};

/// `entry` is an item of an XRANGE or XREADGROUP reply: [id, [field, value, ...]].
OrderEntry entry_of(const Value& entry);
DeadLetter dead_letter_of(const Value& entry);

/// One consumer of the group. Every function is one round trip, blocks unless it returns a Task,
/// and throws what the store throws. What a lost reply had delivered stays pending for this
/// consumer: reread() finds it.
class OrderQueue {
 public:
  OrderQueue(Store& store, const std::string& sale, std::string consumer)
      : store_(store), keys_(sale), consumer_(std::move(consumer)) {}

  const std::string& consumer() const noexcept { return consumer_; }

  /// `mark`: how far the database has come, which the store keeps.
  void acknowledge(std::span<const std::string> done, std::string_view mark);
  /// Acknowledges `done` and reads what is there, without waiting; for entries_read(). REQUIRES:
  /// `done` lives on.
  Task<Value> acknowledge_and_read(std::span<const std::string> done, std::string mark,
                                   std::size_t most);
  static std::vector<OrderEntry> entries_read(const Value& reply);
  /// Waits up to `wait` for entries.
  std::vector<OrderEntry> read(std::size_t most, std::chrono::milliseconds wait);

  /// Ids of entries of which workers may die, those first that were tried alone least often.
  using Suspects = std::multimap<std::int64_t, std::string>;
  struct Claimed {
    std::vector<OrderEntry> entries;
    Suspects suspects;  ///< delivered `most_deliveries` times or more before
    std::string next;   ///< where to go on; "0-0": the end was reached
  };
  /// Takes over entries that nobody touched for `idle`, from `start` on. Counts a delivery of each
  /// entry, and none of the suspects.
  Claimed claim(std::chrono::milliseconds idle, const std::string& start, std::size_t most,
                std::int64_t most_deliveries);
  /// Counts a try of a suspect alone, after so many. Empty: another worker has dealt with it.
  std::optional<OrderEntry> deliver_alone(const std::string& id, std::int64_t tries);

  struct Adopted {
    std::vector<OrderEntry> entries;
    std::string next;  ///< where to go on; empty: the end was reached
  };
  /// Takes entries that were handed to nobody, from `start` on; looks at `most`.
  Adopted adopt(const std::string& start, std::size_t most);

  /// Entries that are pending for this consumer, from `start` on, but suspects; looks at `most`.
  Adopted reread(const std::string& start, std::size_t most, std::int64_t most_deliveries);

  /// Tells the group that these are still being worked on, and that it is not they what fails:
  /// their deliveries so far count as one.
  void keep(std::span<const std::string> ids);

  /// False: another worker has dealt with the entry.
  bool bury(const std::string& id, const std::string& reason);
  /// Leaves the group, if nothing is pending.
  void leave();
  /// Removes consumers that have nothing pending and were not seen for `idle`.
  void tidy(std::chrono::milliseconds idle);
  /// Makes a group that was lost. False: the store does not know the sale.
  bool make_group();

 private:
  Store& store_;
  const SaleKeys keys_;
  const std::string consumer_;
};

/// The consumer group, or its stream, is not there.
bool is_group_lost(const Error& failure);

}  // namespace sluice::sale
