#include "sluice/shared_bloom_filter.hpp"

#include <fmt/format.h>

#include <utility>

#include "bloom/shared/local_filter.hpp"
#include "bloom/shared/shared_file.hpp"
#include "bloom/shared/shared_filter.hpp"

namespace sluice {

using bloom::KeyHash;
using bloom::SharedFilter;
using std::chrono::milliseconds;
using Verb = SharedFilter::Verb;

namespace {

constexpr milliseconds longest_time = std::chrono::days{7};

void check_time(std::string_view what, milliseconds time, milliseconds least, milliseconds most) {
  if (time < least || time > most)
    throw Error{Errc::bad_argument, fmt::format("{} must be {} to {} ms, not {}", what,
                                                least.count(), most.count(), time.count())};
}

template <class Key>
std::vector<KeyHash> hashes_of(std::span<const Key> keys, BloomCodec codec) {
  std::vector<KeyHash> hashes;
  hashes.reserve(keys.size());
  for (const auto& key : keys) hashes.push_back(bloom::hash_of(BloomKey{key}, codec));
  return hashes;
}

Task<void> without_answers(Task<std::vector<bool>> added) { co_await added; }

}  // namespace

namespace bloom {

/// The two filters of a rebuild.
class RebuildTarget {
 public:
  RebuildTarget(std::shared_ptr<SharedFilter> filter, std::shared_ptr<SharedFilter> next)
      : filter_(std::move(filter)), next_(std::move(next)) {}
  ~RebuildTarget() {
    if (!finished_) spawn(next_->give_up(filter_), [](const std::exception_ptr&) {});
  }

  SharedFilter& next() noexcept { return *next_; }
  static Task<void> finish(std::shared_ptr<RebuildTarget> self) {
    co_await self->next_->finish(self->filter_);
    self->finished_ = true;
  }

 private:
  const std::shared_ptr<SharedFilter> filter_;
  const std::shared_ptr<SharedFilter> next_;
  bool finished_ = false;
};

BloomRebuild SharedFilter::rebuild_of(std::shared_ptr<SharedFilter> next) {
  return BloomRebuild{std::make_shared<RebuildTarget>(shared_from_this(), std::move(next))};
}

LocalBloomFilter SharedFilter::local(std::shared_ptr<LocalFilter> copy) {
  return LocalBloomFilter{std::move(copy)};
}

}  // namespace bloom

// BloomRebuild

BloomRebuild::BloomRebuild(std::shared_ptr<bloom::RebuildTarget> target)
    : target_(std::move(target)) {}
BloomRebuild::BloomRebuild(BloomRebuild&&) noexcept = default;
BloomRebuild& BloomRebuild::operator=(BloomRebuild&&) noexcept = default;
BloomRebuild::~BloomRebuild() = default;

Task<void> BloomRebuild::add(std::span<const BloomKey> keys) {
  auto& next = target_->next();
  return without_answers(next.ask(Verb::add, hashes_of(keys, next.codec())));
}

Task<void> BloomRebuild::add(std::span<const std::string_view> keys) {
  auto& next = target_->next();
  return without_answers(next.ask(Verb::add, hashes_of(keys, next.codec())));
}

Task<void> BloomRebuild::finish() { return bloom::RebuildTarget::finish(target_); }

// LocalBloomFilter

LocalBloomFilter::LocalBloomFilter(std::shared_ptr<bloom::LocalFilter> copy)
    : copy_(std::move(copy)) {}
LocalBloomFilter::LocalBloomFilter(LocalBloomFilter&&) noexcept = default;
LocalBloomFilter& LocalBloomFilter::operator=(LocalBloomFilter&& other) noexcept {
  if (this != &other) {
    if (copy_) copy_->end();
    copy_ = std::move(other.copy_);
  }
  return *this;
}
LocalBloomFilter::~LocalBloomFilter() {
  if (copy_) copy_->end();
}

bool LocalBloomFilter::contains(const BloomKey& key) const { return copy_->contains(key); }
Task<void> LocalBloomFilter::refresh() { return copy_->refresh(); }
milliseconds LocalBloomFilter::age() const { return copy_->age(); }
std::uint64_t LocalBloomFilter::bytes() const { return copy_->bytes(); }

// SharedBloomFilter

SharedBloomFilter::SharedBloomFilter(Store& store, std::string name, SharedBloomOptions options)
    : filter_(std::make_shared<SharedFilter>(store, std::move(name), options)) {}
SharedBloomFilter::~SharedBloomFilter() = default;
SharedBloomFilter::SharedBloomFilter(SharedBloomFilter&&) noexcept = default;
SharedBloomFilter& SharedBloomFilter::operator=(SharedBloomFilter&&) noexcept = default;

const std::string& SharedBloomFilter::name() const noexcept { return filter_->names().bits; }

Task<bool> SharedBloomFilter::try_create(SharedBloomSize size) {
  return filter_->create(size, false);
}

namespace {

Task<void> create_same(std::shared_ptr<SharedFilter> filter, SharedBloomSize size) {
  co_await filter->create(size, true);
}

Task<bool> is_there(std::shared_ptr<SharedFilter> filter) {
  const bloom::Definition found = co_await filter->read();
  co_return found.exists();
}

Task<std::optional<BloomRebuild>> rebuild(std::shared_ptr<SharedFilter> filter,
                                          SharedBloomSize size, milliseconds lease) {
  check_time("the lease of a rebuild", lease, std::chrono::seconds{1}, longest_time);
  const auto made = bloom::Definition::made(size);
  auto begun = filter->begin(made, bloom::terms_of(size), lease, true);
  const std::shared_ptr<SharedFilter> next = co_await begun;
  std::optional<BloomRebuild> rebuilding;
  if (next) rebuilding.emplace(filter->rebuild_of(next));
  co_return rebuilding;
}

Task<LocalBloomFilter> copy_of(std::shared_ptr<SharedFilter> filter, LocalBloomOptions options) {
  check_time("the refresh of a local copy", options.refresh, milliseconds{10}, longest_time);
  const auto copy = std::make_shared<bloom::LocalFilter>(std::move(filter), options);
  LocalBloomFilter made = SharedFilter::local(copy);  // ends it if it cannot start
  co_await copy->start();
  co_return made;
}

}  // namespace

Task<void> SharedBloomFilter::ensure_created(SharedBloomSize size) {
  return create_same(filter_, size);
}

Task<bool> SharedBloomFilter::exists() { return is_there(filter_); }

Task<bool> SharedBloomFilter::add(BloomKey key) {
  return filter_->ask(Verb::add, bloom::hash_of(key, filter_->codec()));
}

Task<bool> SharedBloomFilter::contains(BloomKey key) {
  return filter_->ask(Verb::contains, bloom::hash_of(key, filter_->codec()));
}

Task<std::vector<bool>> SharedBloomFilter::add(std::span<const BloomKey> keys) {
  return filter_->ask(Verb::add, hashes_of(keys, filter_->codec()));
}

Task<std::vector<bool>> SharedBloomFilter::add(std::span<const std::string_view> keys) {
  return filter_->ask(Verb::add, hashes_of(keys, filter_->codec()));
}

Task<std::vector<bool>> SharedBloomFilter::contains(std::span<const BloomKey> keys) {
  return filter_->ask(Verb::contains, hashes_of(keys, filter_->codec()));
}

Task<std::vector<bool>> SharedBloomFilter::contains(std::span<const std::string_view> keys) {
  return filter_->ask(Verb::contains, hashes_of(keys, filter_->codec()));
}

Task<SharedBloomInfo> SharedBloomFilter::info() { return filter_->info(); }

Task<void> SharedBloomFilter::merge(std::vector<std::string> others) {
  return filter_->merge(std::move(others));
}

Task<bool> SharedBloomFilter::remove() { return filter_->remove(); }

Task<bool> SharedBloomFilter::expire(milliseconds ttl) {
  check_time("the time to live of a Bloom filter", ttl, milliseconds{1},
             std::chrono::days{366'000});
  return filter_->set_ttl(ttl);
}

Task<bool> SharedBloomFilter::persist() { return filter_->set_ttl(milliseconds{0}); }

Task<bool> SharedBloomFilter::rename(std::string to) { return filter_->rename(std::move(to)); }

Task<std::optional<BloomRebuild>> SharedBloomFilter::try_rebuild(SharedBloomSize size,
                                                                 BloomRebuildOptions options) {
  return rebuild(filter_, size, options.lease);
}

Task<LocalBloomFilter> SharedBloomFilter::local_copy(LocalBloomOptions options) {
  return copy_of(filter_, options);
}

Task<void> SharedBloomFilter::save(std::string path) {
  return bloom::save(filter_, std::move(path));
}

Task<void> SharedBloomFilter::load(std::string path) {
  return bloom::load(filter_, std::move(path));
}

}  // namespace sluice
