/// The clients of a pool, as one worker has them: how they come, wait for room, and leave.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/server_socket.hpp"
#include "net/socket.hpp"
#include "proxy/flow/client.hpp"
#include "proxy/flow/loop.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy::flow {

class Pool;

/// How many clients there are in all workers, and how many at most: beyond that they are closed at
/// once, as nutcracker does. The process has one, so that descriptors are left for servers, and so
/// has each pool with client_connections.
class ClientLimit {
 public:
  void set_most(std::size_t most) noexcept { most_ = most; }
  /// Takes a place if fewer than `most` are taken. Of workers that ask at the same time only one
  /// gets the last place.
  bool enter(std::size_t most = SIZE_MAX) noexcept;
  void leave() noexcept { --here_; }

 private:
  std::atomic<std::size_t> here_{0};
  std::atomic<std::size_t> most_{SIZE_MAX};
};

class PoolClients {
 public:
  explicit PoolClients(Pool& pool);
  ~PoolClients();

  /// The pool's settings were `before`.
  void apply(const PoolSettings& before);

  /// A connection that was accepted. Takes it over, or closes it when there are too many.
  void accept(net::Socket socket);
  bool empty() const noexcept { return clients_.empty(); }
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
  /// request takes the reader for itself, and gives it back behind the request.
  RequestReader& reader() noexcept { return *reader_; }
  std::unique_ptr<RequestReader> take_reader();
  void give_back(std::unique_ptr<RequestReader> reader);

  void tick();
  /// Before the pool ends.
  void close_all() noexcept;

 private:
  bool find_place() noexcept;
  void leave_place() noexcept;
  void drain_quiet(SteadyTime until);

  Pool& pool_;
  Loop& loop_;
  std::unique_ptr<RequestReader> reader_;
  std::vector<std::unique_ptr<RequestReader>> spare_readers_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<Client*> waiting_for_room_;
  std::vector<Client*> dismissed_;
  std::uint64_t last_number_ = 0;
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
  Loop::TimerId resting_{};
};

}  // namespace sluice::proxy::flow
