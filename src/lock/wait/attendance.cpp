#include "lock/wait/attendance.hpp"

#include <algorithm>

#include "lock/per_store.hpp"
#include "lock/wait/attend.lua.hpp"
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

Attendance::Attendance(Store& store)
    : store_(store), clock_(store.clock()), inbox_(shared_of<Inbox>(store)) {}

Attendance::~Attendance() {
  if (ticking_) clock_.cancel(timer_);
}

Attendance::Seat::Seat(Attendance& attendance, const std::string& key, const Identity& who)
    : attendance_(attendance), key_(key), who_(who) {
  attendance_.sit(*this);
}

Attendance::Seat::~Seat() { attendance_.leave(*this); }

/// The seats that were taken before a fork are the parent's.
void Attendance::forget_parent() {
  if (forks_ == fork_count()) return;
  forks_ = fork_count();
  first_ = nullptr;
  ticking_ = sending_ = false;
  come_.clear();
  gone_.clear();
}

void Attendance::set_timer() {
  timer_ = clock_.after(beat, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tick();
  });
}

void Attendance::sit(Seat& seat) {
  const std::lock_guard lock{mutex_};
  forget_parent();
  seat.forks_ = forks_;
  seat.tick_ = ticks_;
  seat.after_ = first_;
  if (first_) first_->before_ = &seat;
  first_ = &seat;
  if (!std::exchange(ticking_, true)) set_timer();
}

void Attendance::leave(Seat& seat) {
  {
    const std::lock_guard lock{mutex_};
    forget_parent();
    if (seat.forks_ != forks_) return;
    (seat.before_ ? seat.before_->after_ : first_) = seat.after_;
    if (seat.after_) seat.after_->before_ = seat.before_;
    if (!seat.told_) return;
    gone_.push_back({.key = seat.key_, .request = seat.who_.request, .person = {}});
    if (!begin_to_send()) return;
  }
  spawn(send());
}

void Attendance::tick() {
  {
    const std::lock_guard lock{mutex_};
    forget_parent();
    ticking_ = first_ != nullptr;
    if (!ticking_) return;
    ++ticks_;
    set_timer();
    for (Seat* seat = first_; seat; seat = seat->after_) {
      const std::uint64_t waited = ticks_ - seat->tick_;
      if (waited < told_after || (waited - told_after) % told_again_after != 0) continue;
      seat->told_ = true;
      come_.push_back({.key = seat->key_,
                       .request = seat->who_.request,
                       .person = seat->who_.owner + ' ' + seat->who_.holder,
                       .seconds = waited - 1});
    }
    std::ranges::reverse(come_);  // first come first
    if (come_.empty() || !begin_to_send()) return;
  }
  spawn(send());
}

bool Attendance::begin_to_send() { return !std::exchange(sending_, true); }

Task<void> Attendance::send() {
  const auto self = shared_from_this();
  for (;;) {
    AllNews come;
    AllNews gone;
    {
      const std::lock_guard lock{mutex_};
      come.swap(come_);
      gone.swap(gone_);
      sending_ = !come.empty() || !gone.empty();
      if (!sending_) co_return;
    }
    try {
      auto telling = tell(std::move(come), std::move(gone));
      co_await telling;
    } catch (const Error& failure) {
      if (failure.errc() == Errc::closed)
        co_return;  // the Store may be gone: nothing is sent again
      log(LogLevel::info, "who waits for a lock was not told to the server: " + failure.message());
    }
  }
}

Task<void> Attendance::tell(AllNews come, AllNews gone) {
  std::ranges::stable_sort(come, {}, &News::key);
  Batch batch;
  for (auto next = come.begin(); next != come.end();) {
    const std::string_view key = next->key;
    std::vector<std::string> words{inbox_->channel()};
    for (std::size_t told = 0; told < news_at_once && next != come.end() && next->key == key;
         ++told, ++next) {
      words.insert(words.end(),
                   {next->request, std::to_string(next->seconds * 1000), next->person});
    }
    const std::vector<std::string_view> args{words.begin(), words.end()};
    batch.add(scripts::lock_wait_attend, {&key, 1}, args);
  }
  for (const News& news : gone) batch.add({"HDEL", news.key, news.request});
  auto asked = store_.run(std::move(batch), {.repeatable = true});
  const std::vector<Value> replies = co_await asked;
  for (const Value& reply : replies)
    if (reply.is_error()) throw error_of_reply(reply.as_text());
}

}  // namespace sluice::lock
