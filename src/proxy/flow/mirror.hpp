/// The writes of a pool, sent to a second pool too, whose replies are compared with those that
/// clients get.
///
/// A mirror is a client of the second pool, over a socket pair within the process, that says again
/// what the clients of this worker have sent: so homes, fragments, transactions and scripts are the
/// second pool's own, and its failures are, too. Nothing of the first pool waits for it. All goes
/// over one connection, in the order in which this worker has sent it to the first pool's servers.
///
///     client ──> Client ──> servers of the first pool
///                  │
///                  └─ Mirror ══ socket pair ══ Client ──> servers of the second pool
///
/// What has been sent and not answered is bounded by the setting `queue`; beyond it requests are
/// dropped and counted. The replies of both pools come in any order; the first waits as a hash.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "base/rare_line.hpp"
#include "loop/stream.hpp"
#include "proxy/flow/server.hpp"
#include "proxy/protocol/protocol.hpp"

namespace sluice::proxy::flow {

class Pool;

/// The key by which a request is sampled, and which the log names; empty: it has none.
inline std::string_view first_key(Words words, const Plan& plan) noexcept {
  return plan.keys.empty() ? std::string_view{} : words[plan.keys.front()];
}

/// What a transaction has queued, to be sent when it was done.
struct MirroredBody {
  std::string bytes;
  std::uint32_t requests = 0;
  std::string key;  ///< the first one
  bool writes = false;
  bool alike = true;
  bool too_large = false;
};

class Mirror final : public loop::Stream {
 public:
  /// `first`: the number of its first request; no other mirror of the pool may have had it.
  Mirror(Pool& pool, std::uint64_t first);
  ~Mirror() override;

  /// A request that a client has sent, in the form in which servers get it. Its number, for
  /// replied(); 0: it is not compared.
  std::uint64_t send(const ConnectionMode& mode, std::string_view bytes, const Plan& plan,
                     std::string_view key, bool alike);
  /// A transaction that was done, and what EXEC, which is this command, has answered.
  void send(const ConnectionMode& mode, const MirroredBody& body, std::uint16_t exec,
            std::string_view reply);
  /// The first pool's reply to a request with this number, or the proxy's own error.
  void replied(std::uint64_t number, std::string_view reply);
  /// There will be none.
  void given_up(std::uint64_t number);

  /// The number of the next request.
  std::uint64_t next() const noexcept { return first_ + entries_.size(); }
  /// Whether requests with this key are mirrored.
  bool is_sampled(std::string_view key) const noexcept;
  std::size_t limit() const noexcept;
  /// Closes the connection; what is under way is not compared.
  void end() noexcept;

 private:
  struct Outcome {
    std::uint64_t hash = 0;
    bool is_here = false;
    bool is_failure = false;  // the pool has no answer of a server
  };
  struct Entry {
    Outcome first, second;
    bool is_compared = false;
    bool is_ours = false;  // SELECT, HELLO, MULTI and what is queued
    std::uint8_t key_size = 0;
    std::uint16_t command = 0;
    std::uint32_t bytes = 0;
    std::array<char, 40> key;
  };

  std::size_t consume(std::string_view bytes) override;
  std::size_t missing() const noexcept override { return reader_->missing(); }
  void ended(int error) override;

  bool is_ready(std::size_t bytes, std::size_t requests);
  bool connect();
  void bring_to(const ConnectionMode& mode);
  void say(std::string_view bytes, std::uint32_t replies);
  Entry& expect(std::size_t bytes);
  Entry& expect(std::string_view key, std::uint16_t command, std::size_t bytes, bool alike);
  Outcome outcome_of(std::string_view reply) const;
  void settle(Entry& entry);
  void drop(std::size_t requests);
  void forget_all();

  Pool& pool_;
  std::unique_ptr<ReplyReader> reader_;
  std::deque<Entry> entries_;  // those that lack an outcome, and what stands between them
  std::uint64_t first_;        // the number of the first of them
  std::uint64_t next_reply_;   // of the one that the second pool answers next
  std::size_t under_way_ = 0;  // bytes that it has not answered
  ConnectionMode mode_;        // of the connection
  bool has_descriptor_ = false;
  bool misses_part_ = false;  // something of the transaction in hand was not answered by a server
  RareLine drops_told_, differences_told_, losses_told_;
};

}  // namespace sluice::proxy::flow
