/// What is asked of servers in the place of a client's request, whose reply is made of what they
/// say.
#pragma once

#include <memory>
#include <string_view>

#include "proxy/flow/client.hpp"

namespace sluice::proxy {

class Pool;

/// It is its own owner, and gone when it has given its reply. The client may be gone before.
class Errand : public Receiver {
 public:
  ~Errand() override = default;
  Errand(const Errand&) = delete;
  Errand& operator=(const Errand&) = delete;

 protected:
  /// The request takes its place in the client's line.
  Errand(Client& client, const Plan& plan);

  static void own(std::unique_ptr<Errand> errand) {
    Errand& self = *errand;
    self.self_ = std::move(errand);
  }
  /// The outcome comes by replied() or failed(), possibly before this returns; both are to drop()
  /// the request.
  void ask(Server& server, std::string_view bytes);
  /// A read whose connection broke was sent once more; see retry.hpp.
  bool ask_again(Request& request, Failure failure, Server& server, std::string_view bytes);
  void drop(Request& request);
  /// The last word: the errand is gone when this returns.
  void give(std::string_view reply);
  void give(Failure failure);

  Pool& pool_;

 private:
  Request& whole_;
  Variant variant_;
  std::uint64_t client_;
  std::unique_ptr<Errand> self_;
};

}  // namespace sluice::proxy
