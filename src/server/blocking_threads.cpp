#include "server/blocking_threads.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/thread.hpp"

namespace sluice::server {

BlockingThreads::BlockingThreads(std::string orders_url, BlockingLimits limits)
    : orders_url_(std::move(orders_url)), limits_(limits) {
  threads_.reserve(limits_.threads + 1);
  while (threads_.size() < limits_.threads)
    threads_.push_back(
        start_stoppable_thread([this](const std::stop_token& stop) { serve(stop); }));
  threads_.push_back(
      start_stoppable_thread([this](const std::stop_token& stop) { oversee(stop); }));
}

BlockingThreads::~BlockingThreads() { stop(); }

void BlockingThreads::stop() {
  std::unordered_map<std::string, Subject> dropped;  // destroyed without the lock
  std::multimap<SteadyTime, SharedPiece> not_due;
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
    for (auto& [name, subject] : subjects_) dropped[name].pieces.swap(subject.pieces);
    ready_.clear();
    due_.swap(not_due);
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
    const std::string& sale, std::optional<std::size_t> most_waiting,
    std::optional<std::chrono::milliseconds> within) {
  auto piece = std::make_shared<Piece>(Piece{std::move(work), std::move(failed), sale});
  const auto now = system_clock().steady();
  // What may take long has to begin in time: then it ends in time where nothing answers.
  const bool is_long = within.value_or(limits_.answer) > limits_.answer;
  if (within) piece->due = now + *within;
  const auto looked_at = is_long ? now + (limits_.answer - limits_.call) : piece->due;
  const std::lock_guard lock{mutex_};
  if (stopping_) return Accepted::stopping;
  if (waiting_ >= limits_.waiting) return Accepted::full;
  auto& asked = subjects_[subject];
  if (asked.pieces.size() >= most_waiting.value_or(limits_.waiting_of_one))
    return Accepted::subject_has_too_many;
  if (!asked.busy && asked.pieces.empty()) ready_.push_back(subject);
  if (within) {
    const auto place = due_.emplace(looked_at, piece);
    if (place == due_.begin()) due_there_.notify_one();
  }
  asked.pieces.push_back(std::move(piece));
  ++waiting_;
  ready_there_.notify_one();
  return Accepted::yes;
}

/// Whether the next piece of this subject is of a sale that has a thread left.
bool BlockingThreads::may_begin(const std::string& subject) const {
  const auto& sale = subjects_.at(subject).pieces.front()->sale;
  const auto busy = threads_of_.find(sale);
  return sale.empty() || busy == threads_of_.end() || busy->second < limits_.threads_of_a_sale;
}

/// After a failure the connection is made anew: a session that failed may be of no use.
void BlockingThreads::serve(const std::stop_token& stop) {
  std::unique_ptr<OrderStore> orders;
  const Orders connected = [&]() -> OrderStore& {
    if (!orders)
      orders = open_order_store(orders_url_, {.answer = limits_.call, .makes_file = false});
    return *orders;
  };
  for (;;) {
    std::string name;
    SharedPiece piece;
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
      ++threads_of_[piece->sale];
      --waiting_;
    }
    try {
      piece->work(connected);
    } catch (const std::exception& failure) {
      orders.reset();
      piece->failed(failure);
    }
    finish(name, *piece);
  }
}

void BlockingThreads::finish(const std::string& name, const Piece& piece) {
  SharedPiece done;  // destroyed without the lock
  const std::lock_guard lock{mutex_};
  const auto due =
      std::ranges::find_if(due_, [&](const auto& one) { return one.second.get() == &piece; });
  if (due != due_.end()) {
    done = std::move(due->second);
    due_.erase(due);
  }
  if (const auto busy = threads_of_.find(piece.sale); --busy->second == 0) threads_of_.erase(busy);
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

/// Answers for work that takes too long, by a thread that waits for no database.
void BlockingThreads::oversee(const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  while (due_there_.wait(lock, stop, [this] { return !due_.empty(); })) {
    const auto next = due_.begin()->first;
    if (system_clock().steady() < next) {
      due_there_.wait_until(lock, stop, next,
                            [&] { return due_.empty() || due_.begin()->first < next; });
      continue;
    }
    auto late = std::move(due_.begin()->second);
    due_.erase(due_.begin());
    const auto effect = take_back(late) ? Effect::none : Effect::unknown;
    if (effect == Effect::unknown && late->due > next) {
      const auto ends = late->due;
      due_.emplace(ends, std::move(late));
      continue;
    }
    lock.unlock();
    late->failed(Error{limits_.late, "store or database have not answered in time", effect});
    late.reset();
    lock.lock();
  }
}

/// False: it has begun.
bool BlockingThreads::take_back(const SharedPiece& piece) {
  for (auto& [name, subject] : subjects_) {
    if (std::erase(subject.pieces, piece) == 0) continue;
    --waiting_;
    if (!subject.busy && subject.pieces.empty()) {
      std::erase(ready_, name);
      subjects_.erase(name);
    }
    return true;
  }
  return false;
}

}  // namespace sluice::server
