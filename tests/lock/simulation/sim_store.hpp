/// The Store of one simulated process: what redis/link.hpp promises, on a line that does what
/// connection.hpp says. Everything in src/lock that processes share within themselves hangs on the
/// Store object, so that each of these is a process of its own.
///
///     ready ──cut──> unaware ──> waiting ──> greeting ──> ready: sends what had to wait, tells of
///                                   ^            │              the gap and of the connection
///                                   └────cut─────┘
///
/// A call that was under way is sent again if it is repeatable, else it fails with effect unknown.
/// A batch with WAIT has a connection of its own while it lasts, which ends on its own.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "lock/simulation/connection.hpp"
#include "lock/simulation/sim_process.hpp"

namespace sluice::simulation {

class SimStore final : public Store {
 public:
  SimStore(VirtualClock& world, SimProcess& process, SimServer& server, Journal& journal,
           const Mutation& mutation, const LineTerms& terms, Dice dice);

  /// Cuts the connection, if there is one; `all`: the lent ones too.
  void lose(bool all = true);
  /// Cuts one of the lent connections.
  void lose_one_lent();
  /// The slots have another owner: the subscriptions are over, and the client is told.
  void lose_slots();
  /// The process is dead: the server learns of it at once.
  void die();
  /// Since when it has a connection that works; max(): it has none, or does not know that it has
  /// none.
  SteadyTime connected_since() const noexcept { return connected_since_; }
  /// The life of the server that it heard of last.
  unsigned life_heard() const noexcept { return connection_ ? connection_->life() : life_before_; }
  /// How many calls ended without an answer, and how many were executed when nobody waited for them
  /// any more: each may have left a place in a queue or a hold of nobody.
  std::size_t uncertain() const;

  using Store::run;
  Task<Value> run(Words command, CallOptions options) override;
  Task<Value> run(const Script& script, Words keys, Words args, CallOptions options) override;
  Task<std::vector<Value>> run(Batch batch, CallOptions options) override;
  Task<Listener> listen(std::string channel, MessageHandler handler) override;
  Listener on_reconnect(std::function<void()> handler) override;
  void call_back(std::function<void()> callback) noexcept override;
  /// For that time the thread of the callbacks, on which the caller runs.
  void block_callbacks(std::chrono::nanoseconds time);
  Clock& clock() noexcept override { return process_; }
  bool is_sharded() const noexcept override { return server_.is_cluster(); }
  bool listens_to(const std::string& channel) const { return channels_.contains(channel); }
  Driver* driver() noexcept override { return nullptr; }
  std::string describe() const override { return process_.name(); }

 private:
  class Call;
  class Registration;
  using CallPtr = std::shared_ptr<Call>;
  using SimConnectionPtr = std::shared_ptr<SimConnection>;
  using Handler = std::shared_ptr<const std::function<void(const Message&)>>;
  struct Channel {
    std::vector<Handler> handlers;
    bool confirmed = false;
  };

  Task<std::vector<Value>> carry(Batch batch, CallOptions options);
  Task<Value> carry_one(Batch batch, CallOptions options);
  Task<Listener> subscribe(std::string channel, MessageHandler handler) override;
  Task<void> await(CallPtr call);

  void run_callbacks();
  void submit(const CallPtr& call);
  void send_lent(const CallPtr& call);
  void lose_lent(std::size_t place);
  void send(const CallPtr& call);
  void arrive(const SimConnectionPtr& connection, const CallPtr& call);
  void answer(const SimConnectionPtr& connection, const CallPtr& call,
              const std::vector<Value>& replies);
  void time_out(const CallPtr& call);
  void subscribe_at(const SimConnectionPtr& connection, const std::string& channel);
  void hear(const SimConnectionPtr& connection, const Message& message);
  void deliver(const Message& message);
  void remove(const std::string& channel, const Handler& handler);
  std::vector<std::string> confirmed_channels() const;
  void subscribe_again();

  void notice(const SimConnectionPtr& connection);
  void connect_later();
  void connect();
  void greeted(const SimConnectionPtr& connection, const std::vector<std::string>& channels);

  VirtualClock& world_;
  SimProcess& process_;
  SimServer& server_;
  Journal& journal_;
  const Mutation& mutation_;
  const LineTerms& terms_;
  Dice dice_;
  SimConnectionPtr connection_;
  std::vector<SimConnectionPtr> earlier_;
  struct Lent {
    SimConnectionPtr connection;
    CallPtr call;
  };
  std::vector<Lent> lent_;
  SimConnectionPtr last_lent_;
  std::deque<std::function<void()>> callbacks_;
  bool calls_back_ = false;
  SteadyTime callbacks_blocked_until_ = SteadyTime::min();
  bool ready_ = false;
  SteadyTime connected_since_ = SteadyTime::max();
  std::deque<CallPtr> flight_;
  std::deque<CallPtr> pending_;
  std::map<std::string, Channel> channels_;
  std::vector<Handler> watchers_;
  std::size_t unanswered_ = 0;
  unsigned life_before_ = 0;
};

}  // namespace sluice::simulation
