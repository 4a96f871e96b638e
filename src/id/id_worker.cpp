#include <fmt/format.h>

#include <limits>

#include "id/next.lua.hpp"
#include "sluice/id.hpp"
#include "sluice/metrics.hpp"
#include "store/combiner.hpp"

namespace sluice {

class IdWorker::Impl {
 public:
  Impl(Store& store, std::string name)
      : store_(store),
        name_(std::move(name)),
        combiner_(store.driver(), most_together,
                  [this](std::vector<Ask> asks) { return draw(asks.size()); }) {}

  Task<std::int64_t> next() { return combiner_.call(Ask{}); }

 private:
  struct Ask {};
  static constexpr std::size_t most_together = 4096;

  Task<std::vector<std::int64_t>> draw(std::size_t count) {
    const Value reply = co_await ask(count);
    const auto& items = reply.as_items();
    const auto& outcome = items.at(0).as_text();
    if (outcome != "issued") fail(outcome, items.at(1).as_integer());
    const IdParts first{epoch + std::chrono::seconds{items.at(1).as_integer()},
                        static_cast<std::uint32_t>(items.at(2).as_integer())};
    std::vector<std::int64_t> ids(count);
    for (std::size_t i = 0; i < count; ++i) ids[i] = compose(first) + static_cast<std::int64_t>(i);
    latest_ = parts(ids.back());
    sluice::count(metrics().ids_issued, count);
    co_return ids;
  }

  Task<Value> ask(std::size_t count) {
    const std::string key = name_;
    const std::string how_many = fmt::to_string(count);
    const std::string start = fmt::to_string(epoch.time_since_epoch().count());
    const std::string largest = fmt::to_string(std::numeric_limits<std::uint32_t>::max());
    const std::string second = fmt::to_string(latest_.issued_at.time_since_epoch().count());
    const std::string sequence = fmt::to_string(latest_.sequence);
    return store_.run(scripts::id_next, {key}, {how_many, start, largest, second, sequence});
  }

  [[noreturn]] void fail(const std::string& outcome, std::int64_t now) const {
    if (outcome == "full")
      throw Error{Errc::server,
                  fmt::format("ids of '{}' are used up for today: 2^32 - 1 were given", name_)};
    throw Error{Errc::server, fmt::format("the clock of {} says {} s since 1970, outside the "
                                          "layout of ids (2024-01-01 to 2092-01-19): "
                                          "set the server's clock",
                                          store_.describe(), now)};
  }

  Store& store_;
  const std::string name_;
  IdParts latest_{};  // used by one batch at a time
  Combiner<Ask, std::int64_t> combiner_;
};

IdWorker::IdWorker(Store& store, std::string name) {
  if (name.empty()) throw Error{Errc::bad_argument, "an id worker needs a name"};
  impl_ = std::make_unique<Impl>(store, std::move(name));
}

IdWorker::~IdWorker() = default;
IdWorker::IdWorker(IdWorker&&) noexcept = default;
IdWorker& IdWorker::operator=(IdWorker&&) noexcept = default;

Task<std::int64_t> IdWorker::next() { return impl_->next(); }

}  // namespace sluice
