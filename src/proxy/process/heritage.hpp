/// What a process that upgrades itself hands on to its successor: the sockets that listen, and a
/// pipe to say on that it serves.
///
/// Both use the same queues of clients meanwhile, so that none is refused. The descriptors' numbers
/// travel in an environment variable, as JSON: {"ready": 5, "pools": {"127.0.0.1:22121": [6, 7]},
/// "doors": {"admin /run/p.sock": 8}}.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/flow/proxy.hpp"
#include "proxy/process/listening.hpp"

namespace sluice::proxy {

/// Descriptors by what they are for.
struct Handover {
  std::map<std::string, std::vector<int>> pools;  ///< by `listen` as written
  std::map<std::string, int> doors;               ///< by door_name()
};

std::string door_name(std::string_view what, const net::Endpoint& endpoint);

/// The side of the successor.
class Heritage {
 public:
  /// Of a process that nobody handed anything: empty. Throws Error{bad_argument} for a variable
  /// that is none of ours.
  static Heritage take();
  Heritage() = default;
  ~Heritage();
  Heritage(Heritage&& other) noexcept;
  Heritage& operator=(Heritage&&) = delete;

  bool is_successor() const noexcept { return ready_ >= 0; }
  InheritedListeners take_pools() noexcept { return std::move(pools_); }
  /// The predecessor's socket, else a new one. As OpenListening.
  Listening open(std::string_view what, const net::Endpoint& endpoint);
  /// All is open and served: the predecessor may go.
  void ready() noexcept;

 private:
  int ready_ = -1;
  InheritedListeners pools_;
  std::map<std::string, Listening> doors_;
};

/// Starts `path` with these arguments as our successor and waits until it serves. Its process id.
/// Throws Error when it cannot be started, ends, or does not serve in time; it is gone then, and
/// all is as before.
int start_successor(const std::string& path, const std::vector<std::string>& arguments,
                    const Handover& handover);

}  // namespace sluice::proxy
