/// Whether a client gets replies.
#pragma once

#include <cstdint>

namespace sluice::front {

/// CLIENT REPLY ON, OFF or SKIP.
class ReplyMode {
 public:
  void turn_on() noexcept { muted_ = 0; }
  void turn_off() noexcept { muted_ = for_ever; }
  /// No reply to the request in hand (CLIENT REPLY SKIP) and to the next. With OFF nothing changes.
  void skip_next() noexcept {
    if (muted_ != for_ever) muted_ = 2;
  }
  /// The request in hand has been served.
  void served() noexcept {
    if (muted_ != 0 && muted_ != for_ever) --muted_;
  }
  bool is_muted() const noexcept { return muted_ != 0; }
  /// For a successor, which goes on as the client has chosen.
  std::uint8_t muted() const noexcept { return muted_; }
  void set_muted(std::uint8_t muted) noexcept { muted_ = muted; }

 private:
  static constexpr std::uint8_t for_ever = 255;
  std::uint8_t muted_ = 0;  // so many requests get no reply, the one in hand among them
};

}  // namespace sluice::front
