#include "bloom/shared/local_filter.hpp"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "sluice/log.hpp"
#include "sluice/metrics.hpp"

namespace sluice::bloom {
namespace {

constexpr std::size_t most_together = 1'000'000;  // callers of refresh()
constexpr std::size_t key_bytes = 16;             // of a message

std::uint64_t half_of(std::string_view bytes) noexcept {
  std::uint64_t half = 0;
  for (std::size_t i = 0; i < 8; ++i)
    half |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
  return half;
}

}  // namespace

LocalFilter::LocalFilter(std::shared_ptr<SharedFilter> filter, LocalBloomOptions options)
    : filter_(std::move(filter)),
      options_(options),
      clock_(filter_->store().clock()),
      refreshes_(filter_->store().driver(), most_together,
                 [this](const std::vector<Ask>& asks) { return read(asks.size()); }) {}

LocalFilter::Stripe& LocalFilter::own_stripe() const {
  static std::atomic<unsigned> threads{0};
  static thread_local const unsigned mine = threads.fetch_add(1, std::memory_order_relaxed);
  return stripes_[mine % stripes_.size()];
}

bool LocalFilter::contains(const BloomKey& key) const {
  if (forks_ != fork_count()) throw closed_by_fork();  // nothing keeps the copy of a child up
  const KeyHash hash = hash_of(key, filter_->codec());
  const std::shared_lock lock{own_stripe().mutex};
  if (!bits_)
    throw Error{Errc::closed, fmt::format("Bloom filter {} was removed, or has expired",
                                          quoted(filter_->names().bits))};
  return bits_->contains(hash);
}

std::chrono::milliseconds LocalFilter::age() const {
  const std::lock_guard lock{mutex_};
  return std::chrono::floor<std::chrono::milliseconds>(clock_.steady() - read_at_);
}

std::uint64_t LocalFilter::bytes() const {
  const std::shared_lock lock{own_stripe().mutex};
  return bits_ ? bits_->bytes() : 0;
}

void LocalFilter::put(Bits bits) {
  for (auto& stripe : stripes_) stripe.mutex.lock();
  bits_.swap(bits);
  for (auto& stripe : stripes_) stripe.mutex.unlock();
}

Task<void> LocalFilter::start() {
  const auto self = shared_from_this();
  const std::weak_ptr<LocalFilter> weak = self;
  auto listening =
      filter_->store().subscribe(filter_->names().channel, [weak](const Message& message) {
        if (const auto alive = weak.lock()) alive->hear(message);
      });
  Listener listener = co_await listening;
  {
    const std::lock_guard lock{mutex_};
    listener_ = std::move(listener);
  }
  co_await refresh();
}

void LocalFilter::end() {
  Listener listener;
  const std::lock_guard lock{mutex_};
  ended_ = true;
  std::swap(listener, listener_);  // it ends without the mutex, for which its handler may wait
}

Task<void> LocalFilter::refresh() {
  const auto self = shared_from_this();
  co_await refreshes_.call({});
}

Task<std::vector<bool>> LocalFilter::read(std::size_t asked) {
  const auto self = shared_from_this();
  std::exception_ptr failure;
  bool is_gone = false;
  try {
    co_await read_bits();
  } catch (const Error& error) {
    is_gone = error.errc() == Errc::closed;
    failure = std::current_exception();
  }
  bool is_first = false;
  {
    const std::lock_guard lock{mutex_};
    coming_ = nullptr;
    const bool is_old = failure && !is_gone && !ended_ && bits_;
    is_first = !std::exchange(told_, is_old) && is_old;
    if (is_gone) put(nullptr);
  }
  if (failure && !is_gone) count(metrics().bloom_copy_failures);
  if (is_first)
    log(LogLevel::warning,
        fmt::format("the local copy of Bloom filter {} is not refreshed, and gets older",
                    quoted(filter_->names().bits)));
  wake_at(Clock::add(clock_.steady(), options_.refresh));
  if (failure) std::rethrow_exception(failure);
  co_return std::vector<bool>(asked);
}

Task<void> LocalFilter::read_bits() {
  const auto self = shared_from_this();
  SteadyTime began{};
  const auto begin = [this, &began](const Definition& definition) -> SharedFilter::Sink {
    if (FilterBits::bytes_of(definition) > options_.max_bytes)
      throw Error{Errc::out_of_space,
                  fmt::format("Bloom filter {} has {} bytes, more than the {} that a local copy "
                              "may have: raise max_bytes, or ask the store",
                              quoted(filter_->names().bits), FilterBits::bytes_of(definition),
                              options_.max_bytes)};
    const auto bits = std::make_shared<FilterBits>(definition);
    const std::lock_guard lock{mutex_};
    if (ended_) throw Error{Errc::closed, "the local copy of a Bloom filter has ended"};
    began = clock_.steady();
    coming_ = bits;
    return [bits](std::size_t link, std::uint64_t offset, std::string_view bytes) {
      bits->add_bytes(link, offset, bytes);
    };
  };
  co_await filter_->download(begin);
  const std::lock_guard lock{mutex_};
  put(std::exchange(coming_, nullptr));
  read_at_ = began;
}

void LocalFilter::hear(const Message& message) {
  if (message.kind == Message::Kind::gap || message.payload.empty()) {
    wake_at(clock_.steady());
    return;
  }
  const std::lock_guard lock{mutex_};
  std::string_view keys = message.payload;
  for (; keys.size() >= key_bytes; keys.remove_prefix(key_bytes)) {
    const KeyHash key{half_of(keys), half_of(keys.substr(8))};
    if (bits_) bits_->add(key);  // nobody exchanges it but under the mutex
    if (coming_) coming_->add(key);
  }
}

/// A timer that comes too late to count is let go.
void LocalFilter::wake_at(SteadyTime when) {
  const std::lock_guard lock{mutex_};
  if (ended_ || when >= wakes_at_) return;
  clock_.at(when, [weak = weak_from_this(), number = wake_ + 1] {
    const auto self = weak.lock();
    if (!self) return;
    {
      const std::lock_guard lock{self->mutex_};
      if (self->ended_ || number != self->wake_) return;
      self->wakes_at_ = SteadyTime::max();
    }
    self->refresh_in_background();
  });
  wakes_at_ = when;
  ++wake_;
}

void LocalFilter::refresh_in_background() {
  spawn(refresh(), [](const std::exception_ptr&) {});  // read() has told of it
}

}  // namespace sluice::bloom
