/// Takes the clients that come to a listening socket into a pool.
#pragma once

#include "net/listener.hpp"
#include "proxy/flow/loop.hpp"

namespace sluice::proxy {

class Pool;

class Acceptor final : public Source {
 public:
  Acceptor(Pool& pool, net::Listener listener);
  ~Acceptor() override;

  void ready(Readiness readiness) override;
  /// Those whom the kernel has let in already, before close() would send them away.
  void take_waiting();
  /// Listens no more.
  void close() noexcept;

 private:
  void rest();

  Pool& pool_;
  Loop& loop_;
  net::Listener listener_;
  Loop::TimerId resting_{};
};

}  // namespace sluice::proxy
