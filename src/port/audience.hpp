/// Which connections hear of what: channels, patterns, channels of shards; and of which keys they
/// want to know that they changed (WATCH).
///
/// Threads: under the engine's lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/embedded/locked_engine.hpp"
#include "port/tracking.hpp"

namespace sluice::port {

class Connection;

enum class Listening : std::uint8_t { channel, pattern, shard };

/// The keys that a connection watches, and whether one of them has changed.
struct Watching {
  std::map<engine::KeyOfDatabase, bool> keys;  ///< with: whether the key was there
  bool is_dirty = false;
};

class Audience final : public engine::Audience {
 public:
  using Names = std::set<std::string, std::less<>>;

  explicit Audience(engine::LockedEngine& engine) : engine_(engine) {}

  /// False: it does so already, or did not.
  bool listen(Connection& connection, Listening kind, std::string_view name);
  bool leave(Connection& connection, Listening kind, std::string_view name);
  /// With at least one listener.
  std::vector<std::string_view> names(Listening kind) const;
  std::size_t count(Listening kind, std::string_view name) const;
  std::size_t size(Listening kind) const noexcept { return of(kind).size(); }

  void watch(Watching& watching, engine::KeyOfDatabase key, bool is_there);
  void unwatch(Watching& watching);

  Trackers& trackers() noexcept { return trackers_; }

  /// MONITOR: hears of each command.
  void monitor(Connection& connection);
  void end_monitor(Connection& connection);
  /// Any thread.
  bool has_monitors() const noexcept { return monitor_count_ != 0; }
  void tell_monitors(const Connection& by, Words words, std::int64_t now_us);

  std::size_t receivers(std::string_view channel, bool sharded) const override;
  void publish(const engine::Context::Published& message) override;
  bool wants_effects() const override { return !watched_.empty() || !trackers_.empty(); }
  void changed(const std::vector<std::vector<std::string>>& effects, int database,
               const engine::Session* by) override;

 private:
  using Listeners = std::map<std::string, std::set<Connection*>, std::less<>>;
  Listeners& of(Listening kind) noexcept { return listeners_[static_cast<std::size_t>(kind)]; }
  const Listeners& of(Listening kind) const noexcept {
    return listeners_[static_cast<std::size_t>(kind)];
  }
  void touch(const engine::KeyOfDatabase& key, const engine::Session* by);
  /// All keys of a database, or of all, that were there; or are there now.
  void touch_all(std::optional<int> database);
  /// Those of a command's keys that it changes.
  void touch_changed(std::string_view name, Words words, std::span<const std::size_t> keys,
                     int database, const engine::Session* by);

  engine::LockedEngine& engine_;
  Listeners listeners_[3];
  std::map<engine::KeyOfDatabase, std::set<Watching*>> watched_;
  Trackers trackers_;
  std::set<Connection*> monitors_;
  std::atomic<std::size_t> monitor_count_{0};
};

}  // namespace sluice::port
