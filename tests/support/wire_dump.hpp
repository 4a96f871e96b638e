/// What a server holds and what was published, as text that is the same in every run: ids become
/// letters, times become classes. To be compared, after each step of a test, with a golden text.
///
///     stock hash, ttl 30s
///       A:1 = 1
///     {stock}:timeout zset
///       P1 at now+10s
///     redisson_lock_token:{stock} = counter 2
///     > redisson_lock__channel:{stock} 0
///
/// A: the owners `<uuid>:<number>` are A, B, ... in the order in which they appear, a uuid alone is
///   client A, ...; R1, R2, ... request ids; P1, P2, ... permits, by their 16 raw bytes.
/// ttl: what is left, rounded up: to 5 s from 10 s on, to 1 s from 2 s on, else to 0.5 s, so that a
///   slow machine sees the same.
/// at: a score that is a wall time, in milliseconds or microseconds, against the server's clock:
///   now+30s, rounded as a ttl; now, if it is over for less than 5 s; past; never, Redisson's own.
/// counter: of a fencing counter what it has counted since the dump first saw it, from 1: it may
///   begin anywhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/plain_client.hpp"

namespace sluice::test {

/// Gives ids their letters; the same id always the same one.
class IdLetters {
 public:
  /// Says what `id`, "<uuid>:<number>", is called; before it appears.
  void name(const std::string& owner, const std::string& letter) { owners_[owner] = letter; }

  /// `text` with all owners, clients and request ids in it replaced.
  std::string in(std::string_view text);
  /// A permit's 16 bytes.
  std::string permit(std::string_view bytes);

 private:
  using Letters = std::map<std::string, std::string, std::less<>>;
  static std::string letter(Letters& known, std::string_view id,
                            const std::function<std::string(std::size_t)>& next);

  Letters owners_;
  Letters clients_;
  Letters requests_;
  Letters permits_;
};

class WireDump {
 public:
  enum class Show {
    everything,
    redisson,  ///< without keys, fields and channels that begin with "sluice": ours beside its
  };

  /// Of the server's database 0. What is published from here on is noted.
  explicit WireDump(std::uint16_t port, Show show = Show::everything);

  IdLetters& letters() noexcept { return letters_; }
  /// All keys, in the order of their names, then the messages since the last step.
  std::string step();

 private:
  struct Key {
    std::string name;
    std::string shown;
  };

  std::vector<Key> keys();
  std::string dump(const Key& key);
  std::string content(const std::string& key, std::string_view type);
  std::string ttl_class(const std::string& key);
  std::string shown_score(std::string_view score);
  std::string shown_member(const std::string& member);
  std::string counter(const std::string& key);
  std::string messages();
  bool hides(std::string_view name) const;

  std::string text(std::string_view key);
  std::string hash(std::string_view key);
  std::string list(std::string_view key);
  std::string set(std::string_view key);
  std::string sorted_set(std::string_view key);

  Show show_;
  PlainClient side_;
  PlainClient ear_;
  IdLetters letters_;
  std::map<std::string, std::uint64_t> counters_;  // what each had counted before the first dump
  std::chrono::microseconds now_{};                // the server's, at this step
  std::uint64_t steps_ = 0;
};

}  // namespace sluice::test
