/// A client's connection to one home of what it listens to.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/flow/server.hpp"
#include "proxy/flow/session/subscription.hpp"

namespace sluice::proxy {

/// "subscribe" and its like.
std::string_view verb_of(Subscriptions::Kind kind, bool begin) noexcept;

class Subscriptions::Line final : public Listener {
 public:
  Line(Subscriptions& owner, Server& server);
  ~Line() override;

  Server& server() const noexcept { return server_; }

  /// To be sent with the next send(). Its confirmation will be taken with `number`.
  void add(Kind kind, std::string_view name, bool begin, std::uint64_t number);
  /// May lose the connection.
  void send();

  /// The number of what the server has confirmed; they come in the order asked. Empty: it was asked
  /// for nothing.
  std::optional<std::uint64_t> take_expected();

  /// Nothing is subscribed on it, or will be.
  bool is_unused() const noexcept { return used_ == 0; }
  void give_back();
  void close() noexcept;

  void heard(std::string_view message) override { owner_.heard(*this, message); }
  void lost(std::string_view reply) override { owner_.end(reply); }

 private:
  Subscriptions& owner_;
  Server& server_;
  Borrowed connection_;
  std::size_t used_ = 0;  // subscriptions
  std::deque<std::uint64_t> expected_;
  std::vector<std::string> unsent_;
  Kind unsent_kind_ = Kind::channel;  // a request has but one
  bool unsent_begin_ = true;
};

}  // namespace sluice::proxy
