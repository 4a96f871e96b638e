#include "lock/chaos/shop.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lock/chaos/names.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/sale_audit.hpp"
#include "sluice/sale_recovery.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t more_stock = 500;
constexpr auto pause = 20ms;

SaleDefinition definition() {
  return {.name = "sale", .stock = more_stock, .limit = 0, .number_type = "MT", .digits = 9};
}

OrderWorkerOptions worker_options() {
  return {.idle_wait = 50ms,
          .claim_after = 2s,
          .most_deliveries = 1000,
          .longest_pause = 200ms,
          .recovers = true};
}

/// What was told when a server had lost something, or was about to.
bool is_explained(const Section& told, const std::vector<Trouble>& troubles) {
  constexpr Stamp on_its_way = 10s;  // to the database
  return std::ranges::any_of(troubles, [&](const Trouble& trouble) {
    const bool is_loss =
        trouble.kind == Trouble::Kind::promotion || trouble.kind == Trouble::Kind::snapshot;
    return is_loss && trouble.begin <= *told.came + on_its_way && *told.came <= trouble.end + lease;
  });
}

}  // namespace

Shop::Shop(const std::filesystem::path& database, std::function<std::unique_ptr<Store>()> open)
    : database_("sqlite:" + database.string()), open_(std::move(open)) {}

std::unique_ptr<Store> Shop::open_patiently(const std::stop_token& stop) const {
  while (!stop.stop_requested()) {
    try {
      return open_();
    } catch (const Error&) {
      std::this_thread::sleep_for(pause);
    }
  }
  return nullptr;
}

std::jthread Shop::repeat(
    std::function<void(Store&, Sale&, OrderStore&, const std::stop_token&)> what) {
  return std::jthread{[this, what = std::move(what)](const std::stop_token& stop) {
    const auto orders = open_order_store(database_);
    while (const auto store = open_patiently(stop)) {
      try {
        auto sale = Sale::load(*store, "sale").get();
        if (!sale) {  // somebody decides that the store that came back empty is the sale's
          recover(*store, "sale", *orders, {.new_store = true});
          continue;
        }
        for (; !stop.stop_requested(); std::this_thread::sleep_for(pause))
          what(*store, *sale, *orders, stop);
      } catch (const Error&) {  // anew
        std::this_thread::sleep_for(pause);
      }
    }
  }};
}

void Shop::open() {
  const auto store = open_();
  Sale::create(*store, definition(), *open_order_store(database_));
  for (int i = 0; i < 2; ++i)
    staff_.push_back(
        repeat([this](Store& at, Sale& sale, OrderStore& orders, const std::stop_token& stop) {
          OrderWorker worker{at, sale, orders, worker_options()};
          worker.run(stop);
          recoveries_ += worker.progress().recoveries;
        }));
  staff_.push_back(repeat([](Store&, Sale& sale, OrderStore& orders, const auto&) {
    const auto status = sale.status().get();
    if (status.state == SaleState::sold_out) sale.change_stock(orders, status.stock + more_stock);
  }));
}

/// A worker that was stopped or killed may have left entries that another one may take only when
/// they are old enough.
void Shop::bring_in_all(Store& store, Sale& sale, OrderStore& orders) {
  const Stamp patience = stamp() + 30s;
  do {
    OrderWorker{store, sale, orders, worker_options()}.drain();
    if (sale.status().get().waiting == 0) return;
    std::this_thread::sleep_for(pause);
  } while (stamp() < patience);
}

std::vector<Finding> Shop::close(const std::vector<Section>& sections,
                                 const std::vector<Trouble>& troubles) {
  staff_.clear();
  std::vector<Finding> findings;
  const auto store = open_();
  const auto orders = open_order_store(database_);
  recover(*store, "sale", *orders, {.new_store = true});
  auto sale = Sale::load(*store, "sale").get().value();
  bring_in_all(*store, sale, *orders);
  const auto found = audit(*store, sale, *orders);
  if (found.on_the_way > 0)
    findings.push_back({"sale",
                        fmt::format("{} orders do not arrive in the database", found.on_the_way),
                        stamp()});
  for (const auto& check : found.checks)
    if (!check.ok)
      findings.push_back({"sale",
                          fmt::format("audit: {} is {} and should be {}: {}", check.name,
                                      check.figure, check.expected, check.detail),
                          stamp()});
  for (const auto& told : sections) {
    if (told.mode != Mode::order || !told.entered) continue;
    const auto order = orders->find_request("sale", {buyer_of(told.who)}, {told.who});
    if (order && order->id == static_cast<std::int64_t>(told.token)) continue;
    findings.push_back({"sale",
                        fmt::format("order {} was told to {}, and {}", told.token, told.who,
                                    order ? fmt::format("{} is recorded", order->id) : "is lost"),
                        *told.came, is_explained(told, troubles)});
  }
  return findings;
}

}  // namespace sluice::chaos
