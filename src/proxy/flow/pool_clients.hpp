/// The clients of a pool, as one worker has them: how they come, wait for room, and leave.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "net/server_socket.hpp"
#include "net/socket.hpp"
#include "proxy/flow/client.hpp"
#include "proxy/flow/loop.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy::flow {

class Pool;

class PoolClients {
 public:
  explicit PoolClients(Pool& pool);
  ~PoolClients();

  /// The pool's settings were `before`.
  void apply(const PoolSettings& before);

  /// A connection that was accepted. Takes it over, or closes it when there are too many.
  void accept(net::Socket socket);
  bool empty() const noexcept { return clients_.empty(); }
  std::size_t size() const noexcept { return clients_.size(); }
  /// Up to `most` in all are added to `figures`.
  void list(std::vector<ClientFigures>& figures, std::size_t most) const;
  /// A number of the client that no other of the process has.
  std::uint64_t id_of(const Client& client) const noexcept;

  /// Clients are closed when nothing of theirs is under way and they are quiet, after `patience`
  /// also those that are not quiet; their requests are served until then.
  void drain(std::chrono::nanoseconds patience);
  /// Called by a client that has closed: it is destroyed at the end of the turn.
  void remove(Client& client) noexcept;
  /// Closes it when the events of this turn have been served.
  void dismiss(Client& client);
  /// The client that holds the most memory; null: none holds any.
  Client* greediest() const noexcept;
  void evict(Client& client);

  /// A paused client is told when there may be room again.
  void wait_for_room(Client& client);
  void there_is_room();

  /// All clients share one reader while they are between two requests. A client in the middle of a
  /// request takes the reader for itself. `trusted`: of clients that have logged in.
  RequestReader& reader(bool trusted) noexcept { return *readers_[trusted]; }
  std::unique_ptr<RequestReader> take_reader(bool trusted) {
    return std::exchange(readers_[trusted], make_reader(trusted));
  }

  void tick();
  /// Before the pool ends.
  void close_all() noexcept;

 private:
  std::unique_ptr<RequestReader> make_reader(bool trusted) const;
  bool find_place() noexcept;
  void tell_refused();
  void leave_place() noexcept;
  void drain_quiet(SteadyTime until);

  Pool& pool_;
  Loop& loop_;
  std::array<std::unique_ptr<RequestReader>, 2>
      readers_;  // of strangers, of those that are trusted
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<Client*> waiting_for_room_;
  std::vector<Client*> dismissed_;
  std::uint64_t last_number_ = 0;
  RareLine refusals_;
  bool draining_ = false;
  Loop::TimerId dismissal_timer_{};
  Loop::TimerId drain_timer_{};
};

/// Takes the clients that come to a listening socket into a pool.
class Acceptor final : public EventHandler {
 public:
  Acceptor(Pool& pool, net::ServerSocket listener);
  ~Acceptor() override;

  void ready(Readiness readiness) override;
  /// Those that the kernel has let in already: close() would reset their connections.
  void take_waiting();
  /// Listens no more.
  void close() noexcept;

 private:
  void rest();

  Pool& pool_;
  Loop& loop_;
  net::ServerSocket listener_;
  RareLine failures_;
  Loop::TimerId resting_{};
};

}  // namespace sluice::proxy::flow
