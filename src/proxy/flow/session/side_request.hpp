/// What the proxy asks servers in the place of a client's request: in fragments, of several servers
/// or changed (SideRequest), or over a connection for this client alone (BlockingRequest).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/flow/client.hpp"
#include "proxy/flow/home_holder.hpp"
#include "proxy/flow/server.hpp"

namespace sluice::proxy::flow {

class Pool;

/// The reply to the client's request is made of what the servers say. It owns itself, and ends when
/// it has given that reply. The client may be gone before.
class SideRequest : public Receiver {
 public:
  ~SideRequest() override = default;
  std::string peer() const override { return whole_.receiver ? whole_.receiver->peer() : ""; }
  std::uint64_t detoured() override { return whole_.receiver ? whole_.receiver->detoured() : 0; }

  /// The caller begins it: it may end before that call returns.
  template <class Side, class... Arguments>
  static Side& make(Arguments&&... arguments) {
    auto made = std::make_unique<Side>(std::forward<Arguments>(arguments)...);
    Side& self = *made;
    self.self_ = std::move(made);
    return self;
  }

 protected:
  /// The client's request takes its place in the client's queue.
  SideRequest(Client& client, const Plan& plan);

  /// The outcome comes by replied() or failed(), possibly before this returns; both must drop() the
  /// request. It is one of so many `parts`, at this `place`; `key`: its first, if it
  /// has one: then it goes on where a server refuses it.
  void ask(Server& server, std::string_view bytes, std::uint32_t place = 0, std::size_t parts = 1,
           std::optional<std::string_view> key = {});
  /// A read whose connection to the server broke may be sent once more; see flow::may_ask_again().
  bool may_ask_again(const Request& request, Failure failure, const Server& server) const;
  void ask_again(Request& request, Server& server, std::string_view bytes);
  void drop(Request& request);
  /// The reply to the client. `this` is destroyed when it returns.
  void give(std::string_view reply);
  void give(Failure failure);

  Pool& pool_;
  Request& whole_;  ///< in the client's queue; without a receiver when the client is gone

 private:
  ConnectionMode mode_;
  std::uint64_t client_;
  std::unique_ptr<SideRequest> self_;
};

/// Sends the fragments of a request (gather.cpp).
void gather(Client& client, Words words, std::string_view bytes, const Plan& plan);

/// A command that waits on the server (BLPOP, XREAD BLOCK ...), for as long as the client has asked
/// for: the pool's timeout does not count. The client's next requests wait with it. When the client
/// disconnects, the connection is closed at once: else the server would pop an element that no
/// client gets. Where its server refuses it, or stops it because a slot has moved, it goes on at
/// the new home as Detours do, for the rest of its time.
class BlockingRequest final : public Receiver, public HomeHolder {
 public:
  /// `self` owns it, and is reset with the reply.
  BlockingRequest(Client& client, std::unique_ptr<BlockingRequest>& self,
                  std::vector<std::string> keys);
  ~BlockingRequest() override;

  void ask(Server& home, Request& request, std::string_view bytes);
  /// The client stops waiting and gets -UNBLOCKED, and why.
  void unblock(std::string_view why);
  /// It waits no more where no other client writes.
  bool check_homes() override;

  void replied(Request& request, std::string_view reply) override;
  void failed(Request& request, Failure failure) override;

 private:
  void send(Server& home, Request& request, std::string_view bytes, bool asks);
  bool may_go_on(std::string_view reply) const;
  void go_on(Request& request, std::string_view reply);
  bool rest(Request& request);
  void ask_at_home();
  std::string bytes_for_the_rest() const;
  void finish(Request& request, std::string_view reply, bool clean);

  Client& client_;
  std::unique_ptr<BlockingRequest>& self_;
  const std::vector<std::string> keys_;
  BorrowedUpstream connection_;
  std::string bytes_;           // as Request::body
  Request* resting_ = nullptr;  // until the timer
  loop::Loop::TimerId timer_{};
  SteadyTime begun_{};
  SteadyTime sent_{}, refused_{};  // last; first in a row
  int hops_ = 0;                   // in a row
  std::string_view unblocked_;     // why; empty: it waits
};

}  // namespace sluice::proxy::flow
