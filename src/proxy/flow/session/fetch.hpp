/// The keys of a client's request, brought from their old homes to the new ones before the request
/// is served there: what a proxy does in a move of keys between two rings. See
/// docs/decisions/0020-keys-move-between-rings.md.
///
/// Each old home is asked how large the keys are (MEMORY USAGE). A key that is not there is at its
/// new home; a small one is moved by MIGRATE. A large one would stop both servers while it moves:
/// the mover copies it by and by, so reads of it are served by the old home, and what may write
/// waits. The old home serves reads also where the new one takes no keys (it is down, or its memory
/// is full).
///
/// Guarantee: when bring() says `here`, each old home has said since the request came that it does
///   not have the key any more; the request goes to the new home and to no other. What an old home
///   answers to a read it has answered while it had the key (EXISTS in the same MULTI). A request
///   that is refused was sent nowhere.
/// Not guaranteed: that a key which an old home has not let go (IOERR) is not at the new home, too;
///   its next MIGRATE replaces it there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loop/loop.hpp"
#include "proxy/flow/client.hpp"
#include "proxy/flow/server.hpp"

namespace sluice::proxy::flow {

class Fetch final : public Receiver {
 public:
  enum class Outcome : std::uint8_t {
    here,      ///< serve it
    waits,     ///< the client is paused; the request comes again
    answered,  ///< by answer(): what the old home says to a read, or why it is refused
  };

  explicit Fetch(Client& client) : client_(client), pool_(client.pool()) {}
  ~Fetch() override { forget(); }
  Fetch(const Fetch&) = delete;
  Fetch& operator=(const Fetch&) = delete;

  /// `alone`: not in a transaction. REQUIRES: keys of the pool move.
  Outcome bring(Words words, std::string_view bytes, const Plan& plan, bool alone);
  const std::string& answer() const noexcept { return answer_; }
  /// Another phase has begun: what was found out does not count, and the client goes on.
  void restart();

  void replied(Request& request, std::string_view reply) override;
  void failed(Request& request, Failure failure) override;
  std::string peer() const override { return client_.peer(); }

 private:
  /// The keys that go from one server to another.
  struct Leg {
    Server* from;
    Server* to;
    std::vector<std::string> keys;
    std::vector<bool> left;   ///< of each: it is not at `from` any more
    bool is_weighed = false;  ///< all of them are there, and small
  };
  /// What is asked of an old home.
  struct Ask {
    enum class What : std::uint8_t { size, migrate, opening, read } what;
    std::size_t leg, key;
    Request* request;  ///< null: it has its outcome
  };

  Leg& leg(Server& from, Server& to);
  void ask();
  void ask(Ask::What what, std::size_t leg, std::size_t key, std::string_view bytes);
  void read_at_old_home();
  std::string migrate(const Leg& leg) const;
  void take(const Ask& ask, std::string_view reply);
  void take_read(std::string_view reply);
  void arrived(Request& request);
  void end_round();
  void end_hold();
  void refuse(std::string_view why);
  void finish();
  void forget() noexcept;

  Client& client_;
  Pool& pool_;
  std::vector<Leg> legs_;
  std::vector<Ask> asks_;  // of this round
  std::size_t missing_ = 0;
  std::string trouble_;   // why this round has not brought the keys
  bool may_pass_ = true;  // the trouble
  std::string read_;      // the request, if the old home can answer it
  bool reads_ = false;    // this round asks for that
  std::string answer_;
  SteadyTime deadline_{};
  loop::Loop::TimerId timer_{};
  bool is_over_ = false;  // the request in hand has its outcome
  bool is_waiting_ = false;
};

}  // namespace sluice::proxy::flow
