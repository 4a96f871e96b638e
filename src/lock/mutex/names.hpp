/// What a lock is called in Redis: Redisson's keys and channel, and ours beside them.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "lock/text.hpp"
#include "sluice/store.hpp"
#include "store/key_name.hpp"

namespace sluice::lock {

struct Names {
  /// Throws Error (bad_argument) as checked_name().
  explicit Names(std::string name)
      : key(checked_name("a lock", std::move(name))),
        token(key_with_prefix("redisson_lock_token", key)),
        channel(key_with_prefix("redisson_lock__channel", key)),
        queue(key_with_prefix("sluice_lock_queue", key)),
        looks(key_with_prefix("sluice_lock_looks", key)) {}

  std::string key;      ///< the name itself
  std::string token;    ///< the fencing counter
  std::string channel;  ///< where a release is published
  std::string queue;    ///< of the processes that wait
  std::string looks;    ///< until when each of them looks at the lock
};

/// The names that the scripts of a Mutex take, made for one call: there may be a hundred thousand
/// Mutexes.
class CallNames {
 public:
  explicit CallNames(std::string_view name) : keys_{name} {
    text_.reserve(4 * (name.size() + longest_prefix));  // so that the views stay
    keys_[1] = made("redisson_lock_token");
    keys_[2] = made("sluice_lock_queue");
    keys_[3] = made("sluice_lock_looks");
    channel_ = made("redisson_lock__channel");
  }

  Words keys() const noexcept { return keys_; }  ///< the name, token, queue, looks
  std::string_view queue() const noexcept { return keys_[2]; }
  std::string_view channel() const noexcept { return channel_; }

 private:
  static constexpr std::size_t longest_prefix = 32;

  std::string_view made(std::string_view prefix) {
    const std::size_t begin = text_.size();
    append_key_with_prefix(text_, prefix, keys_[0]);
    return {text_.data() + begin, text_.size() - begin};
  }

  fmt::basic_memory_buffer<char, 320> text_;
  std::array<std::string_view, 4> keys_;
  std::string_view channel_;
};

}  // namespace sluice::lock
