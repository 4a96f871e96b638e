#include "server/event_ring.hpp"

#include <fmt/format.h>

#include "base/integer.hpp"

namespace sluice::server {

std::string EventRing::id_of(std::uint64_t number) const {
  return fmt::format("{}-{}", process_, number);
}

const http::StreamEvent& EventRing::add(std::string_view type, std::string data) {
  if (events_.size() == most_) events_.pop_front();
  return events_.emplace_back(
      http::StreamEvent{id_of(++last_), std::string{type}, std::move(data)});
}

std::optional<std::vector<http::StreamEvent>> EventRing::after(std::string_view id) const {
  const auto dash = id.rfind('-');
  if (dash == id.npos || id.substr(0, dash) != process_) return std::nullopt;
  const auto number = parse_integer<std::uint64_t>(id.substr(dash + 1));
  const auto before_first = last_ - events_.size();
  if (!number || *number > last_ || *number < before_first) return std::nullopt;
  return std::vector<http::StreamEvent>{
      events_.begin() + static_cast<std::ptrdiff_t>(*number - before_first), events_.end()};
}

}  // namespace sluice::server
