#include "lock/wait/waiter_registry.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lock/per_store.hpp"
#include "lock/wait/report_waiters.lua.hpp"
#include "sluice/log.hpp"

namespace sluice::lock {
namespace {

constexpr std::chrono::seconds beat{1};
/// The first tick may come at once, so that the second is the first that says "a second".
constexpr std::uint64_t told_after = 2;
constexpr std::uint64_t told_again_after = 20;
/// How many waits one script is told of.
constexpr std::size_t news_at_once = 100;

}  // namespace

WaiterRegistry::WaiterRegistry(Store& store)
    : store_(store), clock_(store.clock()), inboxes_(shared_of<Inboxes>(store)) {}

WaiterRegistry::~WaiterRegistry() {
  if (ticking_) clock_.cancel(timer_);
}

WaiterRegistry::Entry::Entry(WaiterRegistry& registry, const std::string& name, const Identity& who)
    : waiters_(registry), name_(name), who_(who) {
  waiters_.add(*this);
}

WaiterRegistry::Entry::~Entry() { waiters_.remove(*this); }

/// The entries that were taken before a fork are the parent's.
void WaiterRegistry::forget_parent() {
  if (forks_ == fork_count()) return;
  forks_ = fork_count();
  first_ = nullptr;
  ticking_ = sending_ = false;
  come_.clear();
  gone_.clear();
}

void WaiterRegistry::set_timer() {
  timer_ = clock_.after(beat, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tick();
  });
  ticking_ = true;
}

void WaiterRegistry::add(Entry& entry) {
  const std::lock_guard lock{mutex_};
  forget_parent();
  if (!ticking_) set_timer();  // before anything is noted: it may throw
  entry.forks_ = forks_;
  entry.tick_ = ticks_;
  entry.after_ = first_;
  if (first_) first_->before_ = &entry;
  first_ = &entry;
}

void WaiterRegistry::remove(Entry& entry) {
  {
    const std::lock_guard lock{mutex_};
    forget_parent();
    if (entry.forks_ != forks_) return;
    (entry.before_ ? entry.before_->after_ : first_) = entry.after_;
    if (entry.after_) entry.after_->before_ = entry.before_;
    if (!entry.told_) return;
    gone_.push_back({.key = waiters_key(entry.name_),
                     .request = std::string{entry.who_.request()},
                     .person = {}});
    if (!begin_to_send()) return;
  }
  spawn(send());
}

void WaiterRegistry::tick() {
  {
    const std::lock_guard lock{mutex_};
    forget_parent();
    ticking_ = false;
    if (!first_) return;
    ++ticks_;
    set_timer();
    for (Entry* entry = first_; entry; entry = entry->after_) {
      const std::uint64_t waited = ticks_ - entry->tick_;
      if (waited < told_after || (waited - told_after) % told_again_after != 0) continue;
      entry->told_ = true;
      come_.push_back({.key = waiters_key(entry->name_),
                       .request = std::string{entry->who_.request()},
                       .person = fmt::format("{} {}", entry->who_.owner(), entry->who_.holder()),
                       .seconds = waited - 1});
    }
    std::ranges::reverse(come_);  // first come first
    if (come_.empty() || !begin_to_send()) return;
  }
  spawn(send());
}

bool WaiterRegistry::begin_to_send() { return !std::exchange(sending_, true); }

Task<void> WaiterRegistry::send() {
  const auto self = shared_from_this();
  for (;;) {
    Reports come;
    Reports gone;
    {
      const std::lock_guard lock{mutex_};
      come.swap(come_);
      gone.swap(gone_);
      sending_ = !come.empty() || !gone.empty();
      if (!sending_) co_return;
    }
    try {
      co_await tell(std::move(come), std::move(gone));
    } catch (const Error& failure) {
      if (failure.errc() == Errc::closed)
        co_return;  // the Store may be gone: nothing is sent again
      log(LogLevel::info, "who waits for a lock was not told to the server: " + failure.message());
    }
  }
}

Task<void> WaiterRegistry::tell(Reports come, Reports gone) {
  std::vector<const Report*> by_key;
  for (const auto& report : come) by_key.push_back(&report);
  std::ranges::stable_sort(by_key, {}, &Report::key);
  Batch batch;
  for (auto at = by_key.begin(); at != by_key.end();) {
    const std::string_view key = (*at)->key;
    std::vector<std::string> words{inboxes_->channel_of(key)};
    for (std::size_t told = 0; told < news_at_once && at != by_key.end() && (*at)->key == key;
         ++told, ++at) {
      const Report& next = **at;
      words.insert(words.end(), {next.request, std::to_string(next.seconds * 1000), next.person});
    }
    const std::vector<std::string_view> args{words.begin(), words.end()};
    batch.add(scripts::lock_wait_report_waiters, {&key, 1}, args);
  }
  for (const Report& news : gone) batch.add({"HDEL", news.key, news.request});
  const std::vector<Value> replies = co_await store_.run(std::move(batch), {.repeatable = true});
  for (const Value& reply : replies)
    if (reply.is_error()) throw error_of_reply(reply.as_text());
}

}  // namespace sluice::lock
