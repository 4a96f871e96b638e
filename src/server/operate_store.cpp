/// What operators see of the store: locks, numbers.
#include <memory>

#include "server/operate_calls.hpp"
#include "server/operate_text.hpp"
#include "server/paced_answer.hpp"
#include "sluice/lock_watch.hpp"
#include "sluice/number.hpp"

namespace sluice::server {
namespace {

constexpr const char* any_list = R"({"type":"object"})";
constexpr std::size_t most_locks = 500;
constexpr std::size_t most_series = 500;
constexpr std::size_t most_holders = 20;  // of a lock

/// "label@host (pid 7, t9)", or the owner where a program that is not ours holds it.
std::string holder_name(const LockInfo::Holder& holder) {
  return to_string(LockActor{holder.owner.text, holder.data});
}

Json lock_json(const WatchedLock& lock) {
  auto holders = Json::array();
  for (std::size_t i = 0; i < lock.info.holders.size() && i < most_holders; ++i) {
    const auto& holder = lock.info.holders[i];
    holders.add(
        Json::object({{"owner", cut(holder_name(holder))}, {"left_ms", holder.left.count()}}));
  }
  return Json::object({{"name", lock.name},
                       {"kind", to_string(lock.kind)},
                       {"holders", holders},
                       {"held", lock.info.holders.size()},
                       {"waiting", lock.info.waiters.size()}});
}

std::string list_locks(Store& store) {
  const auto found = LockWatch{store, {.most = most_locks}}.list().get();
  auto all = Json::array();
  for (const auto& lock : found.locks) all.add(lock_json(lock));
  return Json::object({{"locks", all}, {"truncated", !found.complete}}).text();
}

std::string list_numbers(Store& store) {
  const auto found = Series::list(store, most_series).get();
  auto all = Json::array();
  for (const auto& series : found.series)
    all.add(Json::object({{"name", series.name},
                          {"period", series.period},
                          {"last", series.last},
                          {"left", series.left}}));
  return Json::object({{"series", all}, {"truncated", !found.complete}}).text();
}

}  // namespace

std::vector<OperateCall> store_calls(Store& store) {
  const auto call = [&store](const char* path, const char* operation, const char* summary,
                             std::string (*list)(Store&)) {
    const auto paced = std::make_shared<PacedAnswer>(system_clock());  // it looks at all keys
    return OperateCall{.method = "GET",
                       .path = path,
                       .operation = operation,
                       .summary = summary,
                       .answer = {200, summary, any_list},
                       .subject = operation,
                       .asks_database = false,
                       .serve = [&store, list, paced](Asked&, const BlockingThreads::Orders&) {
                         return http::json(200, Json::raw(paced->get([&] { return list(store); })));
                       }};
  };
  return {
      call("/v1/operate/locks", "console_locks", "Locks that are held or waited for", list_locks),
      call("/v1/operate/numbers", "console_numbers", "Series of numbers, and their last ones",
           list_numbers)};
}

std::vector<OperateCall> operate_calls(Store& store, const QueueApi& queue, Proxies& proxies) {
  auto all = sale_calls(store);
  for (auto& some : {order_calls(), money_calls(store), room_calls(queue), store_calls(store)})
    all.insert(all.end(), some.begin(), some.end());
  all.push_back(proxies.call());
  return all;
}

}  // namespace sluice::server
