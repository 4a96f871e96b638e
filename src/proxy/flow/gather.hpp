/// A request that was cut in fragments, one for each home (or one for every server): it waits for
/// the replies of all and gives the one that they make.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "proxy/flow/request.hpp"
#include "proxy/flow/server.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy::flow {

class Pool;

/// It owns itself, and ends when its request has its outcome.
class Gather final : public Receiver {
 public:
  /// Sends the fragments. The outcome comes by whole.receiver, possibly before this returns. True:
  /// one of the servers has more than enough to take.
  static bool begin(Pool& pool, Request& whole, Words words, std::string_view bytes,
                    const Plan& plan, const ConnectionMode& mode, std::size_t client);

  void replied(Request& request, std::string_view reply) override;
  void failed(Request& request, Failure failure) override;

 private:
  struct Fragment {
    Server* home;
    std::vector<std::uint32_t> keys;
    std::string reply;
    bool failed = false;
  };

  Gather(Pool& pool, Request& whole, Words words, std::string_view bytes, const Plan& plan,
         const ConnectionMode& mode, std::size_t client);

  void cut();
  bool send(std::size_t place);
  bool ask(Request& request);
  bool ask_again(Request& request, Failure failure);
  void keep(std::ptrdiff_t bytes);
  void done();
  void finish();

  Pool& pool_;
  Request& whole_;
  std::string bytes_;  // of the whole request, where all servers get it as it is
  std::string text_;   // all words; words_ are views of it
  std::vector<std::string_view> words_;
  std::vector<std::size_t> keys_;
  Plan plan_;
  ConnectionMode mode_;
  std::size_t client_;
  std::vector<Fragment> fragments_;
  std::size_t missing_ = 0;
  std::ptrdiff_t kept_ = 0;  // bytes that the receiver was told of
  std::unique_ptr<Gather> self_;
};

}  // namespace sluice::proxy::flow
