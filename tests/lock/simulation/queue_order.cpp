#include "lock/simulation/queue_order.hpp"

#include <algorithm>
#include <ranges>

#include "store/key_name.hpp"

namespace sluice::simulation {
namespace {

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

std::vector<std::string> texts_of(const Value& reply) {
  std::vector<std::string> texts;
  for (const auto& item : reply.as_items())
    if (!item.as_text().starts_with("sluice:")) texts.push_back(item.as_text());
  return texts;
}

/// Those of `all` that `others` have too.
std::vector<std::string> common(const std::vector<std::string>& all,
                                const std::vector<std::string>& others) {
  std::vector<std::string> both;
  std::ranges::copy_if(all, std::back_inserter(both),
                       [&](const std::string& one) { return contains(others, one); });
  return both;
}

}  // namespace

QueueOrder::QueueOrder(const std::string& name)
    : lock_(name), queue_(key_with_prefix("redisson_lock_queue", name)) {}

void QueueOrder::look(SimServer& server, Journal& journal) {
  auto waits = texts_of(server.look({"LRANGE", queue_, "0", "-1"}));
  auto holds = texts_of(server.look({"HKEYS", lock_}));
  const auto still = common(waits_, waits);
  if (!std::ranges::equal(still, waits | std::views::take(still.size())))
    journal.violate(fmt::format("{}: those who wait have lost their places", lock_));
  if (!holds.empty() && holds != holds_) {
    const auto mine = std::ranges::find(waits_, holds.front());
    const bool passed = std::any_of(
        waits_.begin(), mine, [&](const std::string& other) { return contains(waits, other); });
    if (passed)
      journal.violate(
          fmt::format("{}: {} got in before others who came first", lock_, holds.front()));
  }
  waits_ = std::move(waits);
  holds_ = std::move(holds);
}

}  // namespace sluice::simulation
