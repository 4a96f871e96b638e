/// The scripts that clients have loaded through the proxy, so that a server that lacks one can be
/// given it. One for a pool, shared by all workers.
///
/// What it keeps is bounded in number and bytes; what was not asked for longest is forgotten first,
/// and its loss is no worse than a server's: the client sees NOSCRIPT and loads it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace sluice::proxy {

struct ScriptLimits {
  std::size_t count = 4096;
  std::size_t bytes = std::size_t{64} << 20;
};

/// Threads: any. A sha is 40 hexadecimal digits in lower case.
class ScriptShelf {
 public:
  using Body = std::shared_ptr<const std::string>;

  explicit ScriptShelf(ScriptLimits limits = {}) : limits_(limits) {}

  /// False: it is larger than all that may be kept.
  bool put(std::string_view sha, std::string_view body);
  /// Null: not known.
  Body find(std::string_view sha);
  void clear();
  /// How often it was cleared: what was given to servers before then is not there any more.
  std::uint64_t clearings() const noexcept { return clearings_.load(std::memory_order_acquire); }

 private:
  struct Script {
    std::string sha;
    Body body;
  };
  using Scripts = std::list<Script>;

  void forget_oldest();

  const ScriptLimits limits_;
  std::atomic<std::uint64_t> clearings_{0};
  std::mutex mutex_;
  Scripts scripts_;  // the one last asked for at the front
  std::unordered_map<std::string_view, Scripts::iterator> by_sha_;  // views of Script::sha
  std::size_t bytes_ = 0;
};

/// Which scripts a connection has given to its server. Another connection may lead to another
/// server, or to one that has been started again, so each knows only of itself.
class GivenScripts {
 public:
  /// What is known is of this connection, and of this state of the shelf.
  struct Validity {
    std::uint32_t generation = 0;  ///< of the connection
    std::uint64_t clearings = 0;   ///< of the shelf
    bool operator==(const Validity&) const = default;
  };

  bool has(std::string_view sha, Validity now);
  void note(std::string_view sha, Validity now);
  void clear() noexcept { given_.clear(); }

 private:
  void forget_the_outdated(Validity now);

  Validity validity_;
  std::set<std::string, std::less<>> given_;
};

}  // namespace sluice::proxy
