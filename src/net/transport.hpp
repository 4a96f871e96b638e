/// A stream of bytes that never blocks: a plain socket, or something wrapped around one.
#pragma once

#include <cerrno>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "sluice/clock.hpp"

namespace sluice::net {

/// What a read or write came to.
struct Transfer {
  enum class Outcome {
    moved,        ///< `bytes` > 0
    would_block,  ///< nothing now; wait for what wants() says
    closed,       ///< the peer ended the stream
    failed,       ///< `error` is an errno
  };
  Outcome outcome = Outcome::would_block;
  std::size_t bytes = 0;
  int error = 0;

  /// Of a write: the peer takes no more. What it said before, perhaps why, can still be read.
  bool is_refused() const noexcept {
    return outcome == Outcome::failed && (error == ECONNRESET || error == EPIPE);
  }
};

/// Threads: one reader and one writer at a time.
class Transport {
 public:
  /// For what the descriptor has to be ready so that a call that would have blocked can go on.
  struct Wants {
    bool read = false;
    bool write = false;
  };

  virtual ~Transport() = default;

  /// A reader with so much room may poll the descriptor for more: nothing that has come is kept
  /// behind it. With less room it reads until nothing comes.
  static constexpr std::size_t whole_read = 40 * 1024;
  virtual Transfer read_some(std::span<char> into) noexcept = 0;
  virtual Transfer write_some(std::string_view bytes) noexcept = 0;
  virtual Wants wants_to_read() const noexcept { return {.read = true, .write = false}; }
  virtual Wants wants_to_write() const noexcept { return {.read = false, .write = true}; }

  /// Whether a read that fills less than its buffer has taken all there was, so that a reader on
  /// edge-triggered epoll need not ask again. Not so where bytes are kept behind the descriptor.
  virtual bool short_read_drains() const noexcept { return false; }

  /// False: what was wrapped around the connection still shakes hands.
  virtual bool is_established() const noexcept { return true; }
  /// When the certificate ends that the peer has shown; empty: it has shown none.
  virtual std::optional<WallTime> certificate_ends() const noexcept { return {}; }
  virtual int descriptor() const noexcept = 0;
  /// Any thread: ends both directions; a blocked peer of this call sees it. The descriptor stays
  /// open.
  virtual void shutdown() noexcept = 0;
};

}  // namespace sluice::net
