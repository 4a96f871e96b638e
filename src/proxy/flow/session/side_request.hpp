/// What the proxy asks servers in the place of a client's request: of several servers or changed
/// (SideRequest), or over a connection for this client alone (BlockingRequest).
#pragma once

#include <memory>
#include <string_view>

#include "proxy/flow/client.hpp"
#include "proxy/flow/server.hpp"

namespace sluice::proxy::flow {

class Pool;

/// The reply to the client's request is made of what the servers say. It owns itself, and ends when
/// it has given that reply. The client may be gone before.
class SideRequest : public Receiver {
 public:
  ~SideRequest() override = default;

 protected:
  /// The client's request takes its place in the client's queue.
  SideRequest(Client& client, const Plan& plan);

  static void own(std::unique_ptr<SideRequest> made) {
    SideRequest& self = *made;
    self.self_ = std::move(made);
  }
  /// The outcome comes by replied() or failed(), possibly before this returns; both must drop() the
  /// request.
  void ask(Server& server, std::string_view bytes);
  /// True: a read whose connection broke was sent once more; see may_ask_again().
  bool ask_again(Request& request, Failure failure, Server& server, std::string_view bytes);
  void drop(Request& request);
  /// The reply to the client. `this` is destroyed when it returns.
  void give(std::string_view reply);
  void give(Failure failure);

  Pool& pool_;

 private:
  Request& whole_;
  ConnectionMode mode_;
  std::uint64_t client_;
  std::unique_ptr<SideRequest> self_;
};

/// A command that waits on the server (BLPOP, XREAD BLOCK ...), for as long as the client has asked
/// for: the pool's timeout does not count. The client's next requests wait with it. When the client
/// disconnects, the connection is closed at once: else the server would pop an element that no
/// client gets.
class BlockingRequest final : public Receiver {
 public:
  /// `self` owns it, and is reset with the reply.
  BlockingRequest(Client& client, std::unique_ptr<BlockingRequest>& self)
      : client_(client), self_(self) {}
  ~BlockingRequest() override { connection_.reset(); }

  void ask(Server& home, Request& request, std::string_view bytes);
  /// The client stops waiting and gets -UNBLOCKED.
  void unblock();

  void replied(Request& request, std::string_view reply) override;
  void failed(Request& request, Failure failure) override;

 private:
  void finish(Request& request, std::string_view reply, bool clean);

  Client& client_;
  std::unique_ptr<BlockingRequest>& self_;
  BorrowedUpstream connection_;
  bool is_unblocked_ = false;
};

}  // namespace sluice::proxy::flow
