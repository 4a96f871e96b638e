#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/thread.hpp"
#include "sale/progress.hpp"
#include "sluice/bucketed_sale.hpp"

namespace sluice {

class BucketedWorker::Impl {
 public:
  Impl(Store& store, const BucketedSale& sale, OpenOrders open_orders, OrderWorkerOptions options)
      : store_(store), sale_(sale), open_orders_(std::move(open_orders)), options_(options) {}

  void run(const std::stop_token& stop);
  void drain(const std::stop_token& stop);
  WorkerProgress progress() const;

 private:
  template <class Work>
  void with_worker(std::int64_t bucket, const Work& work);

  Store& store_;
  const BucketedSale& sale_;
  const OpenOrders open_orders_;
  const OrderWorkerOptions options_;
  mutable std::mutex mutex_;
  std::vector<const OrderWorker*> working_;  // guarded by mutex_
  WorkerProgress ended_;                     // guarded by mutex_; of those that ended
  std::exception_ptr failure_;               // guarded by mutex_; the first
};

template <class Work>
void BucketedWorker::Impl::with_worker(std::int64_t bucket, const Work& work) {
  const auto orders = open_orders_();
  OrderWorker worker{store_, sale_.bucket(bucket), *orders, options_};
  {
    const std::lock_guard lock{mutex_};
    working_.push_back(&worker);
  }
  std::exception_ptr failure;
  try {
    work(worker);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock{mutex_};
  std::erase(working_, &worker);
  sale::add(ended_, worker.progress());
  if (failure) std::rethrow_exception(failure);
}

void BucketedWorker::Impl::run(const std::stop_token& stop) {
  std::stop_source end;
  const std::stop_callback pass_on{stop, [&] { end.request_stop(); }};
  {
    std::vector<std::jthread> threads;
    for (std::int64_t i = 0; i < sale_.buckets(); ++i)
      threads.push_back(start_stoppable_thread([this, i, &end](const std::stop_token&) {
        try {
          with_worker(i, [&](OrderWorker& worker) { worker.run(end.get_token()); });
        } catch (...) {
          const std::lock_guard lock{mutex_};
          if (!failure_) failure_ = std::current_exception();
          end.request_stop();
        }
      }));
  }
  const std::lock_guard lock{mutex_};
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void BucketedWorker::Impl::drain(const std::stop_token& stop) {
  for (std::int64_t i = 0; i < sale_.buckets() && !stop.stop_requested(); ++i)
    with_worker(i, [&](OrderWorker& worker) { worker.drain(stop); });
}

WorkerProgress BucketedWorker::Impl::progress() const {
  const std::lock_guard lock{mutex_};
  auto sum = ended_;
  for (const auto* const worker : working_) sale::add(sum, worker->progress());
  return sum;
}

BucketedWorker::BucketedWorker(Store& store, const BucketedSale& sale, OpenOrders open_orders,
                               OrderWorkerOptions options)
    : impl_(std::make_unique<Impl>(store, sale, std::move(open_orders), options)) {}
BucketedWorker::~BucketedWorker() = default;
void BucketedWorker::run(std::stop_token stop) { impl_->run(stop); }
void BucketedWorker::drain(std::stop_token stop) { impl_->drain(stop); }
WorkerProgress BucketedWorker::progress() const { return impl_->progress(); }

}  // namespace sluice
