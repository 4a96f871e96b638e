#include "server/blocking_threads.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/thread.hpp"

namespace sluice::server {

BlockingThreads::BlockingThreads(std::string orders_url, BlockingLimits limits)
    : orders_url_(std::move(orders_url)), limits_(limits) {
  threads_.reserve(limits_.threads);
  while (threads_.size() < limits_.threads)
    threads_.push_back(
        start_stoppable_thread([this](const std::stop_token& stop) { serve(stop); }));
}

BlockingThreads::~BlockingThreads() { stop(); }

void BlockingThreads::stop() {
  std::unordered_map<std::string, Subject> dropped;  // destroyed without the lock
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
    for (auto& [name, subject] : subjects_) dropped[name].pieces.swap(subject.pieces);
    ready_.clear();
    waiting_ = 0;
  }
  for (auto& thread : threads_) thread.request_stop();
}

BlockingThreads::Accepted BlockingThreads::run(const std::string& subject, Work work,
                                               std::function<void(const std::exception&)> failed,
                                               const std::string& sale,
                                               std::optional<std::size_t> most_waiting) {
  return run_lazily(
      subject, [work = std::move(work)](const Orders& orders) { work(orders()); },
      std::move(failed), sale, most_waiting);
}

BlockingThreads::Accepted BlockingThreads::run_lazily(
    const std::string& subject, LazyWork work, std::function<void(const std::exception&)> failed,
    const std::string& sale, std::optional<std::size_t> most_waiting) {
  const std::lock_guard lock{mutex_};
  if (stopping_) return Accepted::stopping;
  if (waiting_ >= limits_.waiting) return Accepted::full;
  auto& asked = subjects_[subject];
  if (asked.pieces.size() >= most_waiting.value_or(limits_.waiting_of_one))
    return Accepted::subject_has_too_many;
  if (!asked.busy && asked.pieces.empty()) ready_.push_back(subject);
  asked.pieces.push_back({std::move(work), std::move(failed), sale});
  ++waiting_;
  ready_there_.notify_one();
  return Accepted::yes;
}

/// Whether the next piece of this subject is of a sale that has a thread left.
bool BlockingThreads::may_begin(const std::string& subject) const {
  const auto& sale = subjects_.at(subject).pieces.front().sale;
  const auto busy = threads_of_.find(sale);
  return sale.empty() || busy == threads_of_.end() || busy->second < limits_.threads_of_a_sale;
}

/// After a failure the connection is made anew: a session that failed may be of no use.
void BlockingThreads::serve(const std::stop_token& stop) {
  std::unique_ptr<OrderStore> orders;
  const Orders connected = [&]() -> OrderStore& {
    if (!orders) orders = open_order_store(orders_url_);
    return *orders;
  };
  for (;;) {
    std::string name;
    Piece piece;
    {
      std::unique_lock lock{mutex_};
      auto next = ready_.end();
      const auto find_next = [&] {
        next = std::ranges::find_if(ready_, [&](const auto& one) { return may_begin(one); });
        return next != ready_.end();
      };
      if (!ready_there_.wait(lock, stop, find_next)) return;
      name = std::move(*next);
      ready_.erase(next);
      auto& subject = subjects_[name];
      piece = std::move(subject.pieces.front());
      subject.pieces.pop_front();
      subject.busy = true;
      ++threads_of_[piece.sale];
      --waiting_;
    }
    try {
      piece.work(connected);
    } catch (const std::exception& failure) {
      orders.reset();
      piece.failed(failure);
    }
    const auto sale = std::move(piece.sale);
    piece = {};
    finish(name, sale);
  }
}

void BlockingThreads::finish(const std::string& name, const std::string& sale) {
  const std::lock_guard lock{mutex_};
  if (const auto busy = threads_of_.find(sale); --busy->second == 0) threads_of_.erase(busy);
  if (!ready_.empty()) ready_there_.notify_one();  // those of this sale may have waited for it
  const auto subject = subjects_.find(name);
  subject->second.busy = false;
  if (subject->second.pieces.empty()) {
    subjects_.erase(subject);
    return;
  }
  ready_.push_back(name);
  ready_there_.notify_one();
}

}  // namespace sluice::server
