/// The scripts that clients have loaded through the proxy, so that it can load them on a server
/// that lacks one. One cache for a pool, shared by all workers.
///
/// It is bounded in number and bytes and forgets the least recently used script first. A forgotten
/// script is no worse than one that a server has lost: the client sees NOSCRIPT and loads it.
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

#include "base/keyed_hash.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy::flow {

class Pool;
class Server;
class Upstream;

struct ScriptLimits {
  std::size_t count = 4096;
  std::size_t bytes = std::size_t{64} << 20;
};

/// Threads: any. A sha is 40 hexadecimal digits in lower case.
class ScriptCache {
 public:
  using Body = std::shared_ptr<const std::string>;

  explicit ScriptCache(ScriptLimits limits = {}) : limits_(limits) {}

  /// False: it is larger than all that may be kept.
  bool put(std::string_view sha, std::string_view body);
  /// Null: not known.
  Body find(std::string_view sha);
  /// All as words, "sha body sha body ...", the one last asked for at the end; and back again.
  std::string written();
  void read(std::string_view bytes);
  void clear();
  /// How often it was cleared: what servers had before then is gone.
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
  std::unordered_map<std::string_view, Scripts::iterator, KeyedHash> by_sha_;  // Script::sha
  std::size_t bytes_ = 0;
};

/// The scripts that were loaded over one connection. Another connection may lead to another server,
/// or to one that has been started again, so each knows only of itself.
class LoadedScripts {
 public:
  /// What the knowledge depends on: it is lost with the connection, or when the cache is cleared.
  struct Validity {
    std::uint32_t generation = 0;  ///< of the connection
    std::uint64_t clearings = 0;   ///< of the cache
    bool operator==(const Validity&) const = default;
  };

  bool has(std::string_view sha, Validity now);
  void note(std::string_view sha, Validity now);
  void clear() noexcept { loaded_.clear(); }

 private:
  void forget_the_outdated(Validity now);

  Validity validity_;
  std::set<std::string, std::less<>> loaded_;
};

// scripts.cpp

/// SCRIPT LOAD of the script that an EVALSHA names by `sha`, where the connection's server may lack
/// it; from now on it counts as loaded over this connection. Empty: it was loaded before, or no
/// client has loaded it through the proxy.
std::string script_load_for(Pool& pool, Upstream& upstream, std::string_view sha);

/// What an EVALSHA means to a server that has never seen the script. Empty: it is another request,
/// or no client has loaded the script through the proxy.
std::string as_eval(Pool& pool, Words words, const Plan& plan);

/// The server has lost its scripts.
void forget_loaded(Server& server);

}  // namespace sluice::proxy::flow
