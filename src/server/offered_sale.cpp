#include "server/offered_sale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/integer.hpp"

namespace sluice::server {

const SaleDefinition& OfferedSale::definition() const noexcept {
  return std::visit([](const auto& sale) -> const SaleDefinition& { return sale.definition(); },
                    any_);
}

std::size_t OfferedSale::count() const noexcept {
  const auto* const sale = std::get_if<BucketedSale>(&any_);
  return sale ? static_cast<std::size_t>(sale->buckets()) : 1;
}

std::vector<Sale*> OfferedSale::parts() {
  if (auto* const whole = std::get_if<Sale>(&any_)) return {whole};
  auto& sale = std::get<BucketedSale>(any_);
  std::vector<Sale*> buckets;
  for (std::int64_t i = 0; i < sale.buckets(); ++i) buckets.push_back(&sale.bucket(i));
  return buckets;
}

Sale& OfferedSale::part_of(const BuyerId& buyer) {
  auto* const sale = bucketed();
  return sale ? sale->bucket_of(buyer) : std::get<Sale>(any_);
}

std::string OfferedSale::text_of(const Place& place) const {
  return count() == 1 ? place.within : fmt::format("{}:{}", place.part, place.within);
}

std::optional<OfferedSale::Place> OfferedSale::place_of(std::string_view text) const {
  if (count() == 1 || text.empty()) return Place{.part = 0, .within = std::string{text}};
  const auto colon = text.find(':');
  if (colon == text.npos) return std::nullopt;
  const auto part = parse_integer<std::size_t>(text.substr(0, colon));
  if (!part || *part >= count()) return std::nullopt;
  return Place{.part = *part, .within = std::string{text.substr(colon + 1)}};
}

Task<Admission> OfferedSale::buy(BuyerId buyer, RequestId request, std::int64_t units) {
  return std::visit(
      [&](auto& sale) { return sale.buy(std::move(buyer), std::move(request), units); }, any_);
}

Task<std::optional<SaleOrder>> OfferedSale::find(BuyerId buyer, RequestId request) {
  auto& part = part_of(buyer);
  return part.find(std::move(buyer), std::move(request));
}

Task<std::optional<SaleOrder>> OfferedSale::latest(BuyerId buyer) {
  auto& part = part_of(buyer);
  return part.latest(std::move(buyer));
}

Task<SaleStatus> OfferedSale::status() {
  auto asked = status_of_buckets();
  const BucketedStatus status = co_await asked;
  co_return status.whole;
}

Task<BucketedStatus> OfferedSale::status_of_buckets() {
  if (auto* const sale = bucketed()) {
    auto asked = sale->status();
    co_return co_await asked;
  }
  auto asked = std::get<Sale>(any_).status();
  BucketedStatus status;
  status.whole = co_await asked;
  co_return status;
}

Task<OrderFlow> OfferedSale::flow(std::size_t most) {
  OrderFlow all;
  for (auto* const part : parts()) {
    auto asked = part->flow(most);
    OrderFlow flow = co_await asked;
    all.entries += flow.entries;
    all.oldest = std::max(all.oldest, flow.oldest);
    std::ranges::move(flow.workers, std::back_inserter(all.workers));
  }
  co_return all;
}

Task<void> OfferedSale::close() {
  return std::visit([](auto& sale) { return sale.close(); }, any_);
}

void OfferedSale::close(OrderStore& orders) {
  std::visit([&](auto& sale) { sale.close(orders); }, any_);
}

EndedOrder OfferedSale::cancel(OrderStore& orders, const BuyerId& buyer, const RequestId& request,
                               std::string reason) {
  return part_of(buyer).cancel(orders, buyer, request, std::move(reason));
}

UnitsResult OfferedSale::cancel_units(OrderStore& orders, const BuyerId& buyer,
                                      const RequestId& request, std::int64_t units, std::string key,
                                      std::string reason) {
  return part_of(buyer).cancel_units(orders, buyer, request, units, std::move(key),
                                     std::move(reason));
}

PaymentResult OfferedSale::pay(OrderStore& orders, const Payment& payment) {
  return std::visit([&](auto& sale) { return sale.pay(orders, payment); }, any_);
}

bool OfferedSale::change_stock(OrderStore& orders, std::int64_t stock) {
  return std::visit([&](auto& sale) { return sale.change_stock(orders, stock); }, any_);
}

void OfferedSale::settle(OrderStore& orders) {
  std::visit([&](auto& sale) { sale.settle(orders); }, any_);
}

SaleAudit OfferedSale::audit(Store& store, OrderStore& orders) {
  return std::visit([&](auto& sale) { return sluice::audit(store, sale, orders); }, any_);
}

}  // namespace sluice::server
