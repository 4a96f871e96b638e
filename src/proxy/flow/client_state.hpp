/// What a client's connection may do next: why its requests wait, how far its life is, and whether
/// it gets replies. Pure: no socket, no clock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::proxy::flow {

/// Why the requests of a client are not read. Several reasons may hold at once.
enum class Pause : std::uint8_t {
  session = 1,  ///< its session needs a reply before it can serve the next request
  turn = 2,     ///< the request in hand must not overtake those under way, and is served after them
  earlier = 4,  ///< settings or homes have changed: requests from before are answered first
  server = 8,   ///< the server of the request in hand takes requests too slowly: it is served later
  room = 16,    ///< unread replies, requests under way or the worker's memory are at their limit
  rate = 32,    ///< the request in hand is beyond a rate limit, and is served when its turn comes
  handover = 64,  ///< it goes to the successor in an upgrade as soon as nothing is under way
  keys = 128,     ///< the keys of the request in hand move: it is served when they are at home
};

/// A client goes through these in order, and may leave some out.
enum class Life : std::uint8_t {
  serving,
  draining,   ///< closed as soon as it is between two requests
  closing,    ///< reads no more; closed behind its last reply
  discarding  ///< as closing, but replies that still come are dropped: it has left too many unread
};

class ClientState {
 public:
  void pause(Pause reason) noexcept { pauses_ |= to_bit(reason); }
  void end(Pause reason) noexcept { pauses_ &= static_cast<std::uint8_t>(~to_bit(reason)); }
  bool has(Pause reason) const noexcept { return (pauses_ & to_bit(reason)) != 0; }
  /// Nothing is under way any more: what waited for that ends.
  void all_answered() noexcept {
    end(Pause::turn);
    end(Pause::earlier);
  }

  /// The request in hand was not served, and comes again.
  bool is_postponed() const noexcept {
    return (pauses_ & (to_bit(Pause::turn) | to_bit(Pause::server) | to_bit(Pause::rate) |
                       to_bit(Pause::keys))) != 0;
  }

  /// Never back.
  void advance(Life life) noexcept { life_ = std::max(life_, life); }
  bool is_closing() const noexcept { return life_ >= Life::closing; }
  bool drops_replies() const noexcept { return life_ == Life::discarding; }
  /// Whether a client whose replies are all written is to be closed. `has_begun`: a part of a
  /// request has come, or a transaction is open.
  bool ends(bool has_begun) const noexcept {
    return is_closing() || (life_ == Life::draining && !has_begun);
  }

  /// Whether the next request may be read.
  bool reads() const noexcept { return pauses_ == 0 && !is_closing(); }

 private:
  static constexpr std::uint8_t to_bit(Pause reason) noexcept {
    return static_cast<std::uint8_t>(reason);
  }

  std::uint8_t pauses_ = 0;
  Life life_ = Life::serving;
};

}  // namespace sluice::proxy::flow
