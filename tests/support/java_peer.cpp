#include "support/java_peer.hpp"

#include <algorithm>
#include <thread>

#include "base/random.hpp"
#include "store/key_name.hpp"

namespace sluice::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

}  // namespace

Ear::Ear(std::uint16_t port, std::string_view channel) : line_(port) {
  line_.command({"SUBSCRIBE", channel});
}

std::optional<std::string> Ear::hear(milliseconds patience) {
  const auto message = line_.read_for(std::max(patience, milliseconds{0}));
  if (!message) return std::nullopt;
  return message->as_items().at(2).as_text();
}

bool Ear::hears(std::string_view payload, milliseconds patience) {
  const auto until = steady_clock::now() + patience;
  while (const auto heard = hear(std::chrono::ceil<milliseconds>(until - steady_clock::now())))
    if (*heard == payload) return true;
  return false;
}

JavaPeer::JavaPeer(std::uint16_t port, std::uint64_t thread, std::string uuid)
    : port_(port),
      thread_(thread),
      uuid_(uuid.empty() ? random_uuid() : std::move(uuid)),
      line_(port) {}

milliseconds JavaPeer::now() const {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::floor<milliseconds>(wall) + clock_skew;
}

Value JavaPeer::Object::run(const Script& script, Strings keys, Strings args) const {
  Strings words{"EVAL", std::string{script.text}, std::to_string(keys.size())};
  std::ranges::move(keys, std::back_inserter(words));
  std::ranges::move(args, std::back_inserter(words));
  return peer_.line().command(words);
}

Value JavaPeer::Object::with_latch(
    const std::function<Value(const std::string& latch)>& release) const {
  const auto latch = key_with_prefix("redisson_unlock_latch", name_) + ':' + random_hex_128();
  Value reply = release(latch);
  peer_.line().command({"DEL", latch});
  return reply;
}

bool JavaPeer::Object::wait_in(
    const std::string& channel, Milliseconds patience,
    const std::function<bool(std::optional<Milliseconds>& sleep)>& attempt) const {
  const auto until = steady_clock::now() + patience;
  std::optional<Milliseconds> sleep;
  if (attempt(sleep)) return true;
  Ear ear{peer_.port(), channel};
  while (!attempt(sleep)) {
    const auto left = std::chrono::ceil<Milliseconds>(until - steady_clock::now());
    if (left <= Milliseconds{0}) return false;
    if (ear.hear(sleep ? std::min(left, *sleep) : left))
      std::this_thread::sleep_for(peer_.reaction);
    sleep.reset();
  }
  return true;
}

bool JavaPeer::Object::wait_for_null(const std::string& channel, Milliseconds patience,
                                     const std::function<Value()>& acquire) const {
  return wait_in(channel, patience, [&](std::optional<Milliseconds>& sleep) {
    const Value reply = acquire();
    if (reply.is_null()) return true;
    if (reply.as_integer() >= 0) sleep = Milliseconds{reply.as_integer()};
    return false;
  });
}

}  // namespace sluice::test
