/// The clients of a pool, as one worker has them: how they come, wait for room, and leave.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/rare_line.hpp"
#include "loop/loop.hpp"
#include "net/server_socket.hpp"
#include "net/socket.hpp"
#include "proxy/flow/client.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy::flow {

class ClientHandover;
class Pool;
struct HandedClient;

class PoolClients {
 public:
  explicit PoolClients(Pool& pool);
  ~PoolClients();

  /// The pool's settings were `before`.
  void apply(const PoolSettings& before);

  /// A connection that was accepted. Takes it over, or closes it when there are too many.
  void accept(net::Socket socket);
  /// The far end of a mirror, which is trusted. False: there are too many.
  bool adopt(net::Socket socket);
  /// A client that another process hands over: its connection is read from the next turn on. Null:
  /// there is no room.
  Client* take_over(const HandedClient& client, net::Socket socket);
  /// The same of one that the successor has not taken.
  void take_back(const HandedClient& client, net::Socket socket);
  /// Of a predecessor: ScriptCache::written() in a file.
  void take_scripts(const Descriptor& file);
  /// So many more (or, negative, fewer) may be given back.
  void expect_back(int clients) noexcept { on_their_way_ += clients; }
  std::size_t size() const noexcept { return clients_.size(); }
  /// But for mirrors that have nothing under way.
  bool empty() const noexcept;
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& client : clients_) visit(*client);
  }
  /// Up to `most` in all are added to `figures`.
  void list(std::vector<ClientFigures>& figures, std::size_t most) const;

  /// Clients are closed when nothing of theirs is under way and they are quiet, after `patience`
  /// also those that are not quiet; their requests are served until then. `to`: those that can go
  /// to the successor go there instead.
  void drain(std::chrono::nanoseconds patience, ClientHandover* to = nullptr);
  ClientHandover* handover() const noexcept { return handover_; }
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
  /// A paused client is told when its turn has come; or now, if it waits.
  void delay(Client& client, std::chrono::nanoseconds wait);
  void end_delay(Client& client);

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
  Client* add(std::unique_ptr<net::Transport> transport, std::uint64_t id);
  std::uint64_t next_id() noexcept;
  bool find_place() noexcept;
  void tell_refused();
  void leave_place() noexcept;
  void drain_quiet();

  Pool& pool_;
  loop::Loop& loop_;
  std::array<std::unique_ptr<RequestReader>, 2>
      readers_;  // of strangers, of those that are trusted
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<Client*> waiting_for_room_;
  std::vector<Client*> dismissed_;
  std::map<Client*, loop::Loop::TimerId> delayed_;  // beyond a rate limit
  std::uint64_t last_number_ = 0;
  RareLine refusals_;
  bool draining_ = false;
  SteadyTime drain_until_{};  // only those leave that are quiet
  ClientHandover* handover_ = nullptr;
  int on_their_way_ = 0;
  loop::Loop::TimerId dismissal_timer_{};
  loop::Loop::TimerId drain_timer_{};
};

/// Takes the clients that come to a listening socket into a pool.
class Acceptor final : public loop::EventHandler {
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
  loop::Loop& loop_;
  net::ServerSocket listener_;
  RareLine failures_;
  loop::Loop::TimerId resting_{};
};

}  // namespace sluice::proxy::flow
