/// A sale as the service sells it: one stock, or one in several buckets (sluice/bucketed_sale.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sluice/bucketed_sale.hpp"

namespace sluice::server {

/// Its functions are those of Sale, and who asks need not know which it is. What concerns rows of
/// the database, dead letters and workers is asked of its parts: the sale itself, or its buckets.
///
/// Threads: any. REQUIRES: the store lives longer, and it longer than its Tasks.
class OfferedSale {
 public:
  explicit OfferedSale(Sale sale) : any_(std::move(sale)) {}
  explicit OfferedSale(BucketedSale sale) : any_(std::move(sale)) {}

  /// Of the whole sale.
  const SaleDefinition& definition() const noexcept;
  const std::string& name() const noexcept { return definition().name; }
  /// Null: it has no buckets.
  BucketedSale* bucketed() noexcept { return std::get_if<BucketedSale>(&any_); }

  /// One at least.
  std::vector<Sale*> parts();
  /// The one that a buyer is in.
  Sale& part_of(const BuyerId& buyer);
  /// Under which name the database has the orders of a buyer.
  const std::string& rows_of(const BuyerId& buyer) { return part_of(buyer).definition().name; }

  /// A place within a part, as texts outside have it: "3:PLACE" of bucket 3, and PLACE alone where
  /// there are no buckets.
  struct Place {
    std::size_t part = 0;
    std::string within;
  };
  std::string text_of(const Place& place) const;
  /// Empty: there is no such part. Of no text: the first place.
  std::optional<Place> place_of(std::string_view text) const;

  Task<Admission> buy(BuyerId buyer, RequestId request, std::int64_t units = 1);
  /// Sale::gather() for those who buy where this one does.
  std::shared_ptr<void> gather(const BuyerId& buyer) { return part_of(buyer).gather(); }
  Task<std::optional<SaleOrder>> find(BuyerId buyer, RequestId request);
  Task<std::optional<SaleOrder>> latest(BuyerId buyer);
  Task<SaleStatus> status();
  /// With its buckets; none where it has none.
  Task<BucketedStatus> status_of_buckets();
  /// How orders of all parts are on their way, with up to `most` workers of each.
  Task<OrderFlow> flow(std::size_t most);
  Task<void> close();

  // As those of Sale these block the thread.

  void close(OrderStore& orders);
  EndedOrder cancel(OrderStore& orders, const BuyerId& buyer, const RequestId& request,
                    std::string reason);
  UnitsResult cancel_units(OrderStore& orders, const BuyerId& buyer, const RequestId& request,
                           std::int64_t units, std::string key, std::string reason = {});
  PaymentResult pay(OrderStore& orders, const Payment& payment);
  bool change_stock(OrderStore& orders, std::int64_t stock);
  void settle(OrderStore& orders);
  SaleAudit audit(Store& store, OrderStore& orders);

 private:
  std::size_t count() const noexcept;

  std::variant<Sale, BucketedSale> any_;
};

}  // namespace sluice::server
