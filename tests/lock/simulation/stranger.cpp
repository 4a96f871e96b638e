#include "lock/simulation/stranger.hpp"

#include "redisson/fair_acquire.lua.hpp"
#include "redisson/fair_release.lua.hpp"
#include "redisson/lock_acquire.lua.hpp"
#include "redisson/lock_release.lua.hpp"
#include "redisson/permit_acquire.lua.hpp"
#include "redisson/permit_release.lua.hpp"
#include "redisson/semaphore_acquire.lua.hpp"
#include "redisson/semaphore_release.lua.hpp"
#include "redisson/write_acquire.lua.hpp"
#include "redisson/write_release.lua.hpp"
#include "store/key_name.hpp"

namespace sluice::simulation {

using namespace std::chrono_literals;

namespace {

constexpr std::string_view lease = "30000";

std::string channel_of(std::string_view primitive, const std::string& name) {
  if (primitive == "mutex" || primitive == "multi")
    return key_with_prefix("redisson_lock__channel", name);
  if (primitive == "shared") return key_with_prefix("redisson_rwlock", name);
  return key_with_prefix("redisson_sc", name);
}

}  // namespace

Stranger::Stranger(std::size_t number, std::string_view primitive, const std::string& name,
                   VirtualClock& clock, SimServer& server, Journal& journal, Dice dice,
                   std::chrono::seconds ahead)
    : who_(fmt::format("{:08}-0000-4000-8000-000000000000:1", number)),
      primitive_(primitive),
      name_(name),
      clock_(clock),
      server_(server),
      journal_(journal),
      dice_(dice),
      ahead_(ahead) {}

void Stranger::start() {
  const auto rest = dice_.upto(40ms);
  timer_ = clock_.after(rest, [this] { ask(); });
}

/// A permit of Redisson's has no lease: of a program that dies with it, it would be lost for ever.
void Stranger::give_back() {
  if (is_in_ && (primitive_ == "semaphore" || primitive_ == "permit")) leave();
}

void Stranger::stand_still() {
  give_back();
  still_ = true;
  clock_.cancel(timer_);
}

void Stranger::forget() {
  give_back();
  stop();
  clock_.cancel(timer_);
  listener_ = {};
}

std::string Stranger::now_text() const {
  return std::to_string((clock_.wall() + ahead_).time_since_epoch().count() / 1000);
}

std::optional<std::chrono::milliseconds> Stranger::try_to_enter() {
  if (primitive_ == "fair") {
    const std::string queue = key_with_prefix("redisson_lock_queue", name_);
    const std::string deadlines = key_with_prefix("redisson_lock_timeout", name_);
    const std::string now = now_text();
    const std::string_view keys[] = {name_, queue, deadlines};
    const std::string_view args[] = {lease, who_, "300000", now, "queue"};
    const Value reply = server_.look(scripts::redisson_fair_acquire, keys, args);
    if (reply.is_null()) return std::nullopt;
    return std::chrono::milliseconds{reply.as_integer()};
  }
  if (primitive_ != "semaphore" && primitive_ != "permit") {
    const bool plain = primitive_ != "shared";
    const std::string_view keys[] = {name_};
    const std::string writer = who_ + ":write";
    const std::string_view args[] = {lease, plain ? std::string_view{who_} : writer};
    const Value reply = server_.look(
        plain ? scripts::redisson_lock_acquire : scripts::redisson_write_acquire, keys, args);
    if (reply.is_null()) return std::nullopt;
    return std::chrono::milliseconds{reply.as_integer()};
  }
  const std::string_view keys[] = {name_};
  const std::string_view args[] = {"1"};
  const Value reply = server_.look(scripts::redisson_semaphore_acquire, keys, args);
  if (reply.as_integer() == 1) return std::nullopt;
  return 30s;
}

void Stranger::ask() {
  if (!goes_on_) {
    listener_ = {};
    return;
  }
  const auto left = try_to_enter();
  if (!left) return enter();
  if (!std::exchange(waits_, true))
    listener_ = server_.store()
                    .listen(primitive_ == "fair" ? channel_of("mutex", name_) + ':' + who_
                                                 : channel_of(primitive_, name_),
                            [this](const Message&) { ask_soon(); })
                    .get();
  clock_.cancel(timer_);
  timer_ = clock_.after(std::max(*left, 1ms), [this] { ask(); });
}

void Stranger::ask_soon() {
  if (still_) return;
  clock_.cancel(timer_);
  timer_ = clock_.after(1ms + dice_.upto(2ms), [this] { ask(); });
}

void Stranger::enter() {
  ++entries_;
  is_in_ = true;
  clock_.cancel(timer_);
  waits_ = false;
  listener_ = {};
  journal_.note("stranger {} is in {}", who_.substr(0, 8), name_);
  timer_ = clock_.after(10ms, [this] { leave(); });
}

void Stranger::leave() {
  is_in_ = false;
  const std::string channel = channel_of(primitive_, name_);
  if (primitive_ == "fair") {
    const std::string queue = key_with_prefix("redisson_lock_queue", name_);
    const std::string deadlines = key_with_prefix("redisson_lock_timeout", name_);
    const std::string channels = key_with_prefix("redisson_lock__channel", name_);
    const std::string latch =
        key_with_prefix("redisson_unlock_latch", name_) + fmt::format(":{}-{}", who_, ++visits_);
    const std::string now = now_text();
    const std::string_view keys[] = {name_, queue, deadlines, channels, latch};
    const std::string_view args[] = {who_, lease, "16000", now};
    server_.look(scripts::redisson_fair_release, keys, args);
  } else if (primitive_ != "semaphore" && primitive_ != "permit") {
    const std::string latch =
        key_with_prefix("redisson_unlock_latch", name_) + fmt::format(":{}-{}", who_, ++visits_);
    const std::string_view keys[] = {name_, channel, latch};
    const std::string writer = who_ + ":write";
    const bool plain = primitive_ != "shared";
    const std::string_view args[] = {plain ? std::string_view{who_} : writer, lease, "16000"};
    server_.look(plain ? scripts::redisson_lock_release : scripts::redisson_write_release, keys,
                 args);
    server_.look({"DEL", latch});
  } else {
    const std::string_view keys[] = {name_, channel};
    const std::string_view args[] = {"1"};
    server_.look(scripts::redisson_semaphore_release, keys, args);
  }
  journal_.note("stranger {} leaves {}", who_.substr(0, 8), name_);
  start();
}

}  // namespace sluice::simulation
