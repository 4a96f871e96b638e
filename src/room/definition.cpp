#include "room/definition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/integer.hpp"
#include "sluice/error.hpp"

namespace sluice::room {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t longest_name = 128;
constexpr std::size_t longest_visitor = 128;
constexpr milliseconds longest_interval = std::chrono::days{1};
constexpr milliseconds shortest_hold = std::chrono::seconds{1};
constexpr milliseconds longest_hold = std::chrono::days{1};
constexpr milliseconds shortest_stay = std::chrono::seconds{1};
constexpr milliseconds longest_stay = std::chrono::days{30};
constexpr milliseconds shortest_ticket = std::chrono::minutes{1};
constexpr milliseconds longest_ticket = std::chrono::days{30};

void check_range(const std::string& name, std::string_view field, std::int64_t value,
                 std::int64_t least, std::int64_t most) {
  if (value < least || value > most)
    throw Error{Errc::bad_argument, fmt::format("waiting room '{}': {} is {}, it must be {} to {}",
                                                name, field, value, least, most)};
}

std::string opening(const WaitingRoomDefinition& definition) {
  return definition.opens_at ? fmt::to_string(definition.opens_at->time_since_epoch().count())
                             : std::string{};
}

}  // namespace

void check_name(std::string_view name) {
  if (name.empty() || name.size() > longest_name)
    throw Error{Errc::bad_argument,
                fmt::format("the name of a waiting room has {} bytes, it must have 1 to {}",
                            name.size(), longest_name)};
  if (name.find_first_of("{}") != std::string_view::npos)
    throw Error{Errc::bad_argument, fmt::format("waiting room '{}': a name has no braces, they "
                                                "mark the slot in Redis Cluster",
                                                name)};
}

void check_rate(const std::string& name, std::int64_t rate, milliseconds interval) {
  check_range(name, "rate", rate, 1, WaitingRoom::most_rate);
  check_range(name, "interval in ms", interval.count(), 1, longest_interval.count());
}

void check_inside(const std::string& name, std::int64_t inside) {
  check_range(name, "inside", inside, 1, WaitingRoom::most_inside);
}

void check(const WaitingRoomDefinition& definition) {
  check_name(definition.name);
  check_rate(definition.name, definition.rate, definition.interval);
  check_inside(definition.name, definition.inside);
  check_range(definition.name, "hold in ms", definition.hold.count(), shortest_hold.count(),
              longest_hold.count());
  check_range(definition.name, "stay in ms", definition.stay.count(), shortest_stay.count(),
              longest_stay.count());
  if (definition.opens_at && *definition.opens_at < WallTime{})
    throw Error{Errc::bad_argument,
                fmt::format("waiting room '{}' opens before 1970", definition.name)};
}

void check(const std::string& name, const WaitingRoomOptions& options) {
  check_range(name, "ticket_lifetime in ms", options.ticket_lifetime.count(),
              shortest_ticket.count(), longest_ticket.count());
}

void check_visitor(const std::string& name, const std::string& visitor) {
  if (visitor.empty() || visitor.size() > longest_visitor)
    throw Error{Errc::bad_argument,
                fmt::format("waiting room '{}': the visitor has {} bytes, it must have 1 to {}",
                            name, visitor.size(), longest_visitor)};
}

std::optional<WaitingRoomDefinition> definition_of(const std::string& name, const Value& reply) {
  const auto& made = reply.as_items().at(0);
  const auto& stay = reply.as_items().at(1);
  if (made.is_null()) return std::nullopt;
  std::vector<std::optional<std::int64_t>> numbers;
  for (std::string_view rest = made.as_text();;) {
    const auto end = std::min(rest.find(' '), rest.size());
    numbers.push_back(parse_integer<std::int64_t>(rest.substr(0, end)));
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  numbers.push_back(stay.is_null() ? 0 : parse_integer<std::int64_t>(stay.as_text()));
  const auto missing = [](const auto& number) { return !number.has_value(); };
  if (numbers.size() != 6 || std::any_of(numbers.begin() + 1, numbers.end(), missing))
    throw Error{Errc::corrupt,
                fmt::format("waiting room '{}': its definition is damaged: '{}', stay '{}'", name,
                            made.as_text(), stay.is_null() ? "" : stay.as_text())};
  WaitingRoomDefinition definition{.name = name};
  if (numbers[0]) definition.opens_at = WallTime{std::chrono::microseconds{*numbers[0]}};
  definition.rate = *numbers[1];
  definition.interval = milliseconds{*numbers[2]};
  definition.inside = *numbers[3];
  definition.hold = milliseconds{*numbers[4]};
  definition.stay = milliseconds{*numbers[5]};
  return definition;
}

std::string difference(const WaitingRoomDefinition& there, const WaitingRoomDefinition& here) {
  std::string text;
  const auto compare = [&text](std::string_view field, const auto& was, const auto& is) {
    if (was != is)
      text +=
          fmt::format("{}{} is '{}' there and '{}' here", text.empty() ? "" : ", ", field, was, is);
  };
  compare("rate", there.rate, here.rate);
  compare("interval in ms", there.interval.count(), here.interval.count());
  compare("inside", there.inside, here.inside);
  compare("hold in ms", there.hold.count(), here.hold.count());
  compare("stay in ms", there.stay.count(), here.stay.count());
  compare("opening in us", opening(there), opening(here));
  return text;
}

}  // namespace sluice::room
