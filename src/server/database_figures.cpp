#include "server/database_figures.hpp"

#include <algorithm>
#include <utility>

#include "base/thread.hpp"

namespace sluice::server {
namespace {

constexpr std::chrono::seconds keeps_connection{30};
constexpr std::chrono::seconds longest_count{60};

SteadyTime steady_now() { return system_clock().steady(); }

}  // namespace

DatabaseFigures::DatabaseFigures(std::string orders_url, std::chrono::milliseconds every)
    : orders_url_(std::move(orders_url)),
      every_(every),
      known_(std::make_shared<const Known>()),
      thread_(start_stoppable_thread([this](const std::stop_token& stop) { work(stop); })) {}

DatabaseFigures::~DatabaseFigures() { stop(); }

void DatabaseFigures::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void DatabaseFigures::want(std::vector<std::string> sales) {
  const std::lock_guard lock{mutex_};
  if (steady_now() < next_) return;
  wanted_ = std::move(sales);
  wanted_there_.notify_one();
}

namespace {

const auto& nothing_known() {
  static const auto nothing = std::make_shared<const DatabaseFigures::Known>();
  return nothing;
}

}  // namespace

std::shared_ptr<const DatabaseFigures::Known> DatabaseFigures::known() const {
  const std::lock_guard lock{mutex_};
  return steady_now() < good_until_ ? known_ : nothing_known();
}

std::shared_ptr<const DatabaseFigures::Known> DatabaseFigures::latest() const {
  const std::lock_guard lock{mutex_};
  return steady_now() < ended_ + std::chrono::minutes{5} ? known_ : nothing_known();
}

void DatabaseFigures::work(const std::stop_token& stop) {
  std::unique_ptr<OrderStore> orders;
  for (;;) {
    std::vector<std::string> sales;
    {
      std::unique_lock lock{mutex_};
      const auto is_wanted = [this] { return !wanted_.empty(); };
      if (!orders)
        wanted_there_.wait(lock, stop, is_wanted);
      else if (!wanted_there_.wait_for(lock, stop, keeps_connection, is_wanted))
        orders.reset();
      if (stop.stop_requested()) return;
      sales = std::exchange(wanted_, {});
    }
    if (!sales.empty()) ask(orders, sales);
  }
}

void DatabaseFigures::ask(std::unique_ptr<OrderStore>& orders,
                          const std::vector<std::string>& sales) {
  const auto began = steady_now();
  auto found = std::make_shared<Known>();
  try {
    if (!orders) orders = open_order_store(orders_url_, {.answer = longest_count});
    for (const auto& sale : sales) found->sales.emplace(sale, orders->figures(sale));
    found->strays = orders->payments().payments_of_no_sale();
  } catch (const std::exception& failure) {
    orders.reset();
    found->sales.clear();
    found->trouble = failure.what();
  }
  const auto ended = steady_now();
  const auto pause = std::max<std::chrono::nanoseconds>(every_, 10 * (ended - began));
  const std::lock_guard lock{mutex_};
  known_ = std::move(found);
  ended_ = ended;
  next_ = ended + pause;
  // Until the next round has ended, if that is asked for at once and takes as long.
  good_until_ = next_ + std::chrono::seconds{2} + 2 * (ended - began);
}

}  // namespace sluice::server
