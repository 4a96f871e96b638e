/// The proxy: its workers, and the configuration that they have. A value of Config goes in; what it
/// says is served.
///
/// Threads: one that starts, reloads and drains; is_drained() any.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/server_socket.hpp"
#include "proxy/config/config.hpp"
#include "proxy/config/ring_move.hpp"
#include "proxy/flow/worker.hpp"
#include "proxy/watch/registry.hpp"

namespace sluice::proxy {

using flow::ClientFigures;

/// Listening sockets that another process has handed on: by `listen` as written, for each as many
/// as it had.
using InheritedListeners = std::map<std::string, std::vector<net::ServerSocket>>;

watch::WatchOptions watch_options(const ProcessSettings& settings);

class Proxy {
 public:
  /// Opens all sockets; serves from start() on. Throws Error or std::system_error that names what
  /// cannot be listened on.
  Proxy(Clock& clock, Config config, std::size_t mbuf_size, InheritedListeners inherited = {},
        flow::Resolver::Lookup lookup = {});
  ~Proxy();

  void start();

  /// All of it or nothing: throws when a new address cannot be listened on or `workers` differ, and
  /// nothing has changed then. Clients stay connected. What changed, in a line each.
  std::vector<std::string> reload(Config config);
  const Config& config() const noexcept { return config_; }

  /// Begins to move keys to the rings of `after`, or goes on to the next phase; said again it
  /// changes nothing. Throws Error, and changes nothing, where keys cannot be moved, or while
  /// others do. `print`: that of the caller, which must mean the same rings. Held while the same
  /// keys move the other way: they go back.
  void move_keys(const Config& after, RingMove::Phase phase, const config::MoveUser& user,
                 std::string_view print);
  /// All is as `config` says from now on, whose rings must be those that the keys have moved to.
  /// `now`: false, it is only said whether that could be.
  void end_move(const Config& config, bool now);
  /// All is as before. REQUIRES: no key has moved, or this throws.
  void cancel_move();
  /// How far it is.
  struct MoveState {
    std::optional<RingMove::Phase> phase;
    std::string print;    ///< see config::print_of_move()
    bool drained = true;  ///< nothing is under way that was asked before the phase began
  };
  MoveState move_state() const;

  /// The channels at which the workers of a predecessor hand their clients over, before start(). Of
  /// that process and its own predecessors there were `generation`.
  void inherit_clients(std::vector<Descriptor> channels, std::uint64_t generation);

  /// New connections are refused. Clients that were accepted are served until they are quiet, and
  /// after half of drain_timeout until they have nothing under way. A connection that the kernel
  /// had taken but no worker had accepted is reset: nothing that was asked on it is done.
  /// `to_successor`: a channel for each worker, to a process that accepts at the same sockets; then
  /// clients go there as soon as they are at rest.
  /// `version`: by which it takes clients over (ClientHandover::version).
  void drain(std::vector<Descriptor> to_successor = {}, char version = 0);
  /// After drain(): what clients are still amid of goes by the settings of the successor, as by a
  /// reload. Nothing else does: no pool comes, and one that goes is left by its clients.
  void follow(const Config& config);
  bool is_drained() const noexcept;
  /// Clients that the successor has taken.
  std::size_t handed_over() const;

  /// The clients that are connected, `most` at most. The thread that starts and reloads; each
  /// worker is asked in its turn.
  std::vector<ClientFigures> clients(std::size_t most) const;

  /// For a successor: descriptors of all listening sockets, by `listen` as written. They stay open
  /// here, too.
  std::map<std::string, std::vector<int>> listening() const;

  /// So many connections at most, of all pools together, and so many of them with clients. Any
  /// thread.
  void set_most_connections(std::size_t most, std::size_t clients) noexcept {
    limits_.descriptors.set_most(most);
    limits_.clients.set_most(clients);
  }

  watch::Registry& registry() noexcept { return *registry_; }
  /// Bytes of buffers in use, of all workers. Any thread.
  std::int64_t memory() const noexcept;

 private:
  struct ListeningPool {
    std::shared_ptr<const PoolSettings> settings;
    std::shared_ptr<flow::SharedPool> shared;
    std::shared_ptr<const flow::PoolTls> tls;
    std::vector<net::ServerSocket> listeners;  // our own descriptors; workers have duplicates
    bool has_new_listeners = true;             // the workers shall take them
  };

  using Pools = std::map<std::string, ListeningPool>;

  Pools pools_for(const Config& config, InheritedListeners inherited) const;
  ListeningPool pool_for(const PoolSettings& settings, InheritedListeners& inherited) const;
  const std::vector<net::ServerSocket>* listening_at(const net::Endpoint& endpoint) const;
  std::vector<net::ServerSocket> open(const PoolSettings& settings,
                                      InheritedListeners& inherited) const;
  std::vector<std::string> apply(Config config);
  std::vector<std::string> changes_to(const Config& config) const;
  std::vector<std::vector<flow::PoolUpdate>> updates_for(const Pools& pools) const;

  Clock& clock_;
  /// A move of keys that is under way.
  struct Move {
    Config before, after;
    std::string print;
    RingMove::Phase phase;
    bool is_back = false;
  };

  Config config_;
  std::optional<Move> move_;
  std::size_t mbuf_size_;
  std::unique_ptr<watch::Registry> registry_;
  flow::Resolver resolver_;
  front::ProcessLimits limits_;
  Pools pools_;
  std::vector<std::unique_ptr<flow::Worker>> workers_;
};

}  // namespace sluice::proxy
