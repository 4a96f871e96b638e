/// The last events of one subject, with ids by which a client that was cut off goes on where it
/// was: at this process without a loss or a repeat, while the ring has what it missed.
///
/// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/responder.hpp"

namespace sluice::server {

class EventRing {
 public:
  /// `process`: no other process has it, and none before has had it; no '-' at its end.
  EventRing(std::string process, std::size_t most) : process_(std::move(process)), most_(most) {}

  const http::StreamEvent& add(std::string_view type, std::string data);
  /// Of the last event; of none, if there was none yet: what comes next is after it.
  std::string last_id() const { return id_of(last_); }
  /// What came after the event of that id. Empty: it is of another process, or too long ago.
  std::optional<std::vector<http::StreamEvent>> after(std::string_view id) const;

 private:
  std::string id_of(std::uint64_t number) const;

  const std::string process_;
  const std::size_t most_;
  std::uint64_t last_ = 0;  // its number; the first has 1
  std::deque<http::StreamEvent> events_;
};

}  // namespace sluice::server
