/// What a lock is called in Redis: Redisson's keys and channel, and ours beside them.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/random.hpp"
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

/// Where the answer to one forced release is kept for its copies.
inline std::string new_answer_key(std::string_view name) {
  return key_with_prefix("sluice_lock_forced", name) + ':' + random_hex_128();
}

/// The same for the time of one call. A process may have a hundred thousand Mutexes, which know
/// their names alone.
class CallNames {
 public:
  explicit CallNames(std::string_view name) {
    constexpr std::size_t longest_prefix = 32;
    const std::size_t most = 4 * (longest_prefix + name.size());
    if (most > few_.size()) many_ = std::make_unique_for_overwrite<char[]>(most);
    char* end = many_ ? many_.get() : few_.data();
    const bool tagged = name.find('{') != std::string_view::npos;
    const auto put = [&end](std::string_view text) {
      std::memcpy(end, text.data(), text.size());
      end += text.size();
    };
    // A prefix whose length the compiler knows is copied without a call.
    const auto made = [&]<std::size_t size>(const char(&prefix)[size]) {
      static_assert(size - 1 <= longest_prefix);
      char* const begin = end;
      std::memcpy(end, prefix, size - 1);
      end += size - 1;
      if (!tagged) *end++ = '{';
      put(name);
      if (!tagged) *end++ = '}';
      return std::string_view{begin, end};
    };
    keys_ = {name, made("redisson_lock_token:"), made("sluice_lock_queue:"),
             made("sluice_lock_looks:")};
    channel_ = made("redisson_lock__channel:");
  }

  Words keys() const noexcept { return keys_; }  ///< the name, token, queue, looks
  std::string_view queue() const noexcept { return keys_[2]; }
  std::string_view channel() const noexcept { return channel_; }

 private:
  std::array<char, 320> few_;
  std::unique_ptr<char[]> many_;  // of a long name
  std::array<std::string_view, 4> keys_;
  std::string_view channel_;
};

}  // namespace sluice::lock
