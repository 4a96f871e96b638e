/// A client that waits on a server (BLPOP, XREAD BLOCK ...), on a connection of its own and for as
/// long as it has asked for: the pool's timeout does not count. Its next requests wait with it.
/// When it leaves, the connection is closed at once, so that no element is taken for nobody.
#pragma once

#include <memory>
#include <string_view>

#include "proxy/flow/client.hpp"
#include "proxy/flow/server.hpp"

namespace sluice::proxy {

class Blocked final : public Receiver {
 public:
  /// `self` is its owner, which is empty when it has its reply.
  Blocked(Client& client, std::unique_ptr<Blocked>& self);
  ~Blocked() override;

  void ask(Server& home, Request& request, std::string_view bytes);
  /// It waits no longer, and is told so.
  void let_go();

  void replied(Request& request, std::string_view reply) override;
  void failed(Request& request, Failure failure) override;

 private:
  void finish(Request& request, std::string_view reply, bool clean);

  Client& client_;
  std::unique_ptr<Blocked>& self_;
  Borrowed connection_;
  bool let_go_ = false;
};

}  // namespace sluice::proxy
