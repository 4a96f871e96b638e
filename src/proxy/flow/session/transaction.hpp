/// A client's transaction, from WATCH or MULTI to EXEC, DISCARD or UNWATCH: on a connection of its
/// own, to the home of its keys.
///
/// The first key decides which home that is. Commands without a key that come before it are kept
/// here and sent with it. The proxy answers MULTI, and sends it with the first command; what
/// follows is sent when the server has accepted it: one that refuses MULTI would do the rest at
/// once. A connection that watches keys is brought to the client's database and protocol first.
///
/// A script that the server may lack is loaded before MULTI. When MULTI was sent it is loaded over
/// a second connection, and what follows waits for it. NOSCRIPT in the reply of EXEC is passed on;
/// the next transaction loads the script.
///
/// Before a cluster its keys have one slot. If that moves on the way, what is queued is answered
/// with -TRYAGAIN, and EXEC with -EXECABORT; a first WATCH is sent on.
///
/// An error before EXEC, also a key with another home or the loss of the connection, spoils the
/// transaction: EXEC is answered with -EXECABORT and nothing is done. If the connection is lost
/// after EXEC was sent, the reply says that the outcome is unknown.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/flow/client.hpp"
#include "proxy/flow/mirror.hpp"
#include "proxy/flow/server.hpp"
#include "proxy/flow/session/transaction_state.hpp"

namespace sluice::proxy::flow {

/// EXEC's reply where the connection to the server was lost.
bool is_lost_transaction(std::string_view reply) noexcept;

class Transaction final : public Receiver {
 public:
  /// `self` owns it, and is reset when the transaction is over.
  Transaction(Client& client, std::unique_ptr<Transaction>& self);
  ~Transaction() override;

  /// Between MULTI and its end; before it, there are only watched keys.
  bool is_open() const noexcept { return state_.is_open(); }

  /// Its connection has more to send than the server takes.
  bool meets_full_server() const noexcept { return connection_ && connection_->is_full(); }

  /// Each answers the client. REQUIRES of watch(), unwatch(), begin(): nothing of the client is
  /// under way.
  void watch(Words words, std::string_view bytes, const Plan& plan);
  void unwatch(std::string_view bytes, const Plan& plan);
  void begin();
  void queue(Words words, std::string_view bytes, const Plan& plan);
  void exec(std::string_view bytes, const Plan& plan);
  void discard(std::string_view bytes, const Plan& plan);

  /// What should have been queued was answered with an error.
  void spoil() noexcept { state_.suffer(Fault::spoiled); }

  void replied(Request& request, std::string_view reply) override;
  void failed(Request& request, Failure failure) override;
  std::string peer() const override { return client_.peer(); }

 private:
  using Phase = TransactionState::Phase;
  using Fault = TransactionState::Fault;
  using Wait = TransactionState::Wait;
  /// What a request is for; stored in Request::place.
  enum Role : std::uint32_t { opening, loading, early, queued, watching, executing, discarding };
  struct Waiting {
    Request* request;
    std::string bytes;
  };

  void refuse(std::string_view reply);
  void keep_for_mirror(Words words, std::string_view bytes, const Plan& plan);
  void mirror(const Request& exec, std::string_view reply);
  void queue_early(std::string_view bytes);
  Server* home_of(Words words, const Plan& plan);
  bool has_connection(Server& home);
  void open();
  void drop(Request& request);
  /// A request of the proxy's own; a request in the client's queue.
  Request& ours(Role role);
  Request& of_client(const Plan& plan, Role role);
  void send(Request& request, std::string_view bytes);
  void finish(std::string_view bytes, const Plan& plan, Role role);
  void pass(Request& request, std::string_view reply);
  void load_script(std::string_view sha);
  void wait_for(Wait what);
  void has_come(Wait what);
  bool is_redirected(std::string_view reply) const;
  std::string heeded(std::string_view reply);
  bool watch_again(Request& request, std::string_view reply);
  bool is_in_its_slot(std::string_view key);
  void note_keys(Words words, const Plan& plan);
  bool has_left_home() const;
  void opened(std::string_view reply);
  void send_waiting();
  void notice_loss();
  void lose(std::string_view reply);
  void refuse_waiting(Request& request, std::string_view reply);
  void end(bool clean);

  Client& client_;
  std::unique_ptr<Transaction>& self_;
  BorrowedUpstream connection_;
  BorrowedUpstream second_;  // loads a script while `connection_` is in MULTI
  std::string early_;        // commands before the home is known
  std::uint32_t early_count_ = 0;
  std::vector<Waiting> waiting_;  // for the server; see TransactionState::Wait::readiness
  TransactionState state_;
  std::string first_watch_;            // until it is answered
  std::optional<std::uint16_t> slot_;  // of its keys, before a cluster
  std::vector<std::string> keys_;      // that are watched, or used, if they are few
  std::uint64_t rings_ = 0;            // when its first key was noted
  MirroredBody body_;
  std::uint32_t queued_count_ = 0;  // requests, of which body_ may lack those before a reload
};

}  // namespace sluice::proxy::flow
