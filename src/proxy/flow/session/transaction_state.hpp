/// How far a client's transaction is, what has gone wrong in it, and why its client waits. Pure: no
/// socket, no request.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::proxy::flow {

class TransactionState {
 public:
  /// A transaction goes through these in order.
  enum class Phase : std::uint8_t {
    watching,  ///< before MULTI: at most keys are watched
    open,      ///< MULTI was answered; the server does not know of it yet
    sent       ///< MULTI was sent
  };
  /// The worse one stays. Either aborts EXEC.
  enum class Fault : std::uint8_t {
    none,
    spoiled,  ///< what should have been queued was answered with an error
    lost      ///< the connection to the server is lost: nothing more can be sent
  };
  /// Why the client's next requests are not read. Both reasons may hold at once.
  enum class Wait : std::uint8_t {
    readiness = 1,  ///< the server has to accept MULTI, or to have a script, before it gets more
    outcome = 2     ///< of WATCH, EXEC or DISCARD
  };

  void advance(Phase phase) noexcept { phase_ = std::max(phase_, phase); }
  bool is_open() const noexcept { return phase_ >= Phase::open; }
  bool is_sent() const noexcept { return phase_ == Phase::sent; }

  void suffer(Fault fault) noexcept { fault_ = std::max(fault_, fault); }
  bool is_spoiled() const noexcept { return fault_ >= Fault::spoiled; }
  bool is_lost() const noexcept { return fault_ == Fault::lost; }

  void wait_for(Wait what) noexcept { waits_ |= to_bit(what); }
  bool waits_for(Wait what) const noexcept { return (waits_ & to_bit(what)) != 0; }
  bool is_waiting() const noexcept { return waits_ != 0; }
  /// True: it was waited for, and nothing else is, so that the client may go on.
  bool has_come(Wait what) noexcept {
    const bool waited = waits_for(what);
    waits_ &= static_cast<std::uint8_t>(~to_bit(what));
    return waited && waits_ == 0;
  }

  /// NOSCRIPT in the reply of EXEC then means that the server has lost scripts.
  void use_scripts() noexcept { uses_scripts_ = true; }
  bool uses_scripts() const noexcept { return uses_scripts_; }

 private:
  static constexpr std::uint8_t to_bit(Wait what) noexcept {
    return static_cast<std::uint8_t>(what);
  }

  Phase phase_ = Phase::watching;
  Fault fault_ = Fault::none;
  std::uint8_t waits_ = 0;
  bool uses_scripts_ = false;
};

}  // namespace sluice::proxy::flow
