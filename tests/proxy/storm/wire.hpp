/// A connection to 127.0.0.1 that never blocks: what is to be sent waits here until the peer takes
/// it, and what comes is kept until its owner has read it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"

namespace sluice::test {

class Wire {
 public:
  /// Throws std::system_error when nobody listens.
  explicit Wire(std::uint16_t port);

  void queue(std::string_view bytes) { output_ += bytes; }
  bool sent_all() const noexcept { return output_.empty(); }
  std::string& input() noexcept { return input_; }
  /// The peer has closed, or reset the connection.
  bool ended() const noexcept { return ended_; }
  /// Closes with a reset: the peer is told nothing but that.
  void vanish();

  /// Waits until one of `wires` can go on (null ones are skipped), or `milliseconds` are over; then
  /// each writes and reads what it can.
  static void turn(std::span<Wire* const> wires, int milliseconds);

 private:
  void write();
  void read();

  Descriptor socket_;
  std::string output_, input_;
  bool ended_ = false;
};

}  // namespace sluice::test
