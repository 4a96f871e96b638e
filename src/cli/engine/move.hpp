/// Moves all keys of a store to another, while programs run on it. See
/// docs/decisions/0054-all-keys-move-to-another-store.md.
///
/// Guarantee: the source is read alone. When it ends well, the target has what the source had when
///   writes were paused, each key compared as its type's own commands show it, with the time when
///   it ends. Killed at any moment and run again it ends as if it had not been killed; pauses that
///   it began end by themselves within some seconds.
/// Not guaranteed: that SWAPDB at the source is noticed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/engine/side.hpp"

namespace sluice::cli {

struct MoveOptions {
  std::string source, target;  ///< URLs
  bool is_still = false;       ///< no program writes at the source
  bool into_used = false;      ///< the target may have keys; those of the source replace them
  bool compares_all = false;   ///< while writes are paused, and not those alone that have changed
  std::stop_token stop;
  std::function<void(std::string_view line)> tell;  ///< progress
};

/// Threads: one.
class Move {
 public:
  using Key = std::pair<int, std::string>;  ///< with its database

  /// Connects. Throws Error.
  explicit Move(MoveOptions options);
  ~Move();

  /// Returns with writes paused at the source, if it has moved them and is not `is_still`. False:
  /// keys were refused, see refused(); then nothing is paused. Throws Error, also when it is
  /// stopped; it may be run again.
  bool run();
  /// Keeps writes paused for some seconds more.
  void pause();
  static constexpr std::chrono::seconds renewal{3};
  void unpause() noexcept;

  const std::map<Key, std::string>& refused() const noexcept { return refused_; }
  std::int64_t copied() const noexcept { return copied_; }
  std::int64_t compared() const noexcept { return compared_; }
  /// From the pause of writes to the end of the comparison.
  std::chrono::milliseconds paused_for() const noexcept { return paused_for_; }
  /// Of all keys of the source and the target; empty: not all were compared at rest.
  std::string digest() const;

 private:
  using Keys = std::span<const std::string>;

  void check_target();
  void check_source();
  std::set<int> databases();
  std::uint64_t gaps();
  void look_around(std::string_view what, std::int64_t count);
  void for_all_keys(Side& side, std::string_view what, const std::function<void(int, Keys)>& each);
  void copy(int database, Keys keys);
  void compare(int database, Keys keys);
  void for_names(const std::set<std::string>& names, const std::function<void(int, Keys)>& each);
  void copy_tail();
  std::set<std::string> take_tail();
  void compare_all();
  void sweep();
  bool try_to_switch(std::uint64_t gaps_before);

  MoveOptions options_;
  Side source_, target_;
  std::vector<std::unique_ptr<Tail>> tails_;  // one of each master
  std::set<int> databases_;                   // that had keys at any time
  std::set<std::string> groups_;              // streams with groups: what XACK does is not told
  std::set<std::string> again_;               // differ, or may
  std::map<Key, std::string> refused_;
  bool is_resumed_ = false;
  SteadyTime told_{}, paused_{}, renewed_{};
  std::chrono::milliseconds paused_for_{};
  std::int64_t copied_ = 0, compared_ = 0;
  std::uint64_t digest_ = 0, other_digest_ = 0;
  bool has_digest_ = false;
};

}  // namespace sluice::cli
