/// One end of a move of keys: a store as its masters are, each by itself.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/embedded/opened_engine.hpp"
#include "open/servers.hpp"
#include "port/port.hpp"
#include "sluice/store.hpp"

namespace sluice::cli {

/// Which keys of one master change. Threads: any.
class Tail {
 public:
  /// Told of each change from now on. Throws Error where the server does not tell.
  explicit Tail(Store& master);

  /// Those that have changed since the last call. They are told without their database.
  std::set<std::string> take();
  /// Returns when all was told that the master had executed before.
  void settle();
  /// How often any key may have changed: the connection was lost, or FLUSHALL.
  std::uint64_t gaps();

 private:
  void wait(const std::uint64_t& count, std::uint64_t most);

  Store& master_;
  std::mutex mutex_;
  std::condition_variable told_;
  std::set<std::string> keys_;
  std::uint64_t gaps_ = 0;
  std::uint64_t settled_ = 0;
  std::string refusal_;
  Listener listener_;
};

/// What a key holds, in a form that is the same on every server.
struct Content {
  std::string type;  ///< "none": there is no such key
  std::string text;
  std::int64_t ends_at = -1;  ///< ms of the Unix epoch; -1: it has no time to live

  bool is_there() const noexcept { return type != "none"; }
  friend bool operator==(const Content&, const Content&) = default;
};

class Side {
 public:
  enum class Role : bool { source, target };

  /// A folder that no server has is opened, and served at its socket meanwhile. Throws Error as
  /// open() does, and for what does not name a store as a whole.
  Side(const std::string& url, Role role);

  const std::string& name() const noexcept { return name_; }
  bool is_cluster() const noexcept { return servers_.has_value(); }
  std::size_t masters() const noexcept { return is_cluster() ? nodes_.size() : 1; }
  /// One of them alone.
  Store& master(std::size_t number, int database = 0);
  /// Where any key may be asked for.
  Store& in(int database);

  /// How many keys each database has, where it has any.
  std::map<int, std::int64_t> sizes();
  std::vector<Content> contents(int database, std::span<const std::string> keys);

 private:
  std::string serve_folder(const std::string& path, Role role);
  void find_masters();

  std::string name_, url_;
  std::unique_ptr<engine::OpenedEngine> opened_;
  std::unique_ptr<port::Port> port_;
  std::optional<Servers> servers_;  // of a cluster
  std::vector<std::unique_ptr<Store>> nodes_;
  std::map<int, std::unique_ptr<Store>> stores_;  // by database
};

/// The error reply of an item is thrown. So are those of keys that change their type meanwhile.
Value checked(const Value& reply);

}  // namespace sluice::cli
