/// The sale of a play: its workers bring the orders into a database and recover it when its store
/// has lost something; its stock grows when it is sold out.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "lock/chaos/findings.hpp"
#include "sluice/order_store.hpp"
#include "sluice/sale.hpp"

namespace sluice::chaos {

class Shop {
 public:
  /// `open`: throws Error where it cannot now.
  Shop(const std::filesystem::path& database, std::function<std::unique_ptr<Store>()> open);

  void open();
  /// When all is well and nobody buys: whether store and database agree to the last unit, and each
  /// order that was told stands in them. One that was lost with a server's data is explained.
  std::vector<Finding> close(const std::vector<Section>& sections,
                             const std::vector<Trouble>& troubles);
  std::uint64_t recoveries() const noexcept { return recoveries_; }

 private:
  /// Does it again and again, with a Store and a connection to the database of its own.
  std::jthread repeat(std::function<void(Store&, Sale&, OrderStore&, const std::stop_token&)> what);
  static void bring_in_all(Store& store, Sale& sale, OrderStore& orders);
  std::unique_ptr<Store> open_patiently(const std::stop_token& stop) const;

  const std::string database_;
  const std::function<std::unique_ptr<Store>()> open_;
  std::atomic<std::uint64_t> recoveries_{0};
  std::vector<std::jthread> staff_;
};

}  // namespace sluice::chaos
