#include "support/history.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace sluice::test {

/// One row a kind of event, in the order of the enumeration: its word, and what the checker does.
struct EventTable {
  std::string_view word;
  void (HistoryChecker::*see)(const Event&);

  static const std::array<EventTable, 9> rows;
};

const std::array<EventTable, 9> EventTable::rows{{
    {"wait", &HistoryChecker::wait},
    {"give_up", &HistoryChecker::give_up},
    {"enter", &HistoryChecker::enter},
    {"leave", &HistoryChecker::leave},
    {"enter_shared", &HistoryChecker::enter_shared},
    {"leave_shared", &HistoryChecker::leave_shared},
    {"acquire", &HistoryChecker::acquire},
    {"release", &HistoryChecker::release},
    {"gone", &HistoryChecker::gone},
}};

namespace {

using VK = Violation::Kind;

constexpr std::array<std::string_view, 9> violation_names{
    "two exclusive holders",
    "shared beside exclusive",
    "token not rising",
    "permits above total",
    "leave without enter",
    "fifo violated",
    "starved",
    "never left",
    "forgotten",
};

std::string_view cut_word(std::string_view& rest) {
  const auto end = std::min(rest.find(' '), rest.size());
  const auto word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

template <class Number>
bool read_number(std::string_view word, Number& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc{} && end == word.data() + word.size();
}

}  // namespace

std::string_view to_string(Event::Kind kind) noexcept {
  return EventTable::rows[static_cast<std::size_t>(kind)].word;
}

std::string_view to_string(Violation::Kind kind) noexcept {
  return violation_names[static_cast<std::size_t>(kind)];
}

std::string to_line(const Event& event) {
  return fmt::format("{} {} {} {}\n", event.at.count(), event.who, to_string(event.kind),
                     event.number);
}

Event event_of(std::string_view line) {
  auto rest = line.substr(0, line.find('\n'));
  std::chrono::nanoseconds::rep at = 0;
  Event event;
  const bool timed = read_number(cut_word(rest), at);
  event.who = cut_word(rest);
  const auto row = std::ranges::find(EventTable::rows, cut_word(rest), &EventTable::word);
  const bool whole = timed && !event.who.empty() && row != EventTable::rows.end() &&
                     read_number(rest, event.number);
  if (!whole) throw std::runtime_error{fmt::format("not a line of a history: '{}'", line)};
  event.kind = static_cast<Event::Kind>(row - EventTable::rows.begin());
  event.at = std::chrono::nanoseconds{at};
  return event;
}

std::vector<Event> read_history(const std::filesystem::path& path) {
  std::ifstream file{path};
  if (!file) throw std::runtime_error{"cannot read the history " + path.string()};
  std::vector<Event> history;
  for (std::string line; std::getline(file, line);) history.push_back(event_of(line));
  return history;
}

Recorder::Recorder(const std::filesystem::path& path, std::string who)
    : who_(std::move(who)),
      file_(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)) {
  if (file_ < 0) throw std::system_error{errno, std::generic_category(), path.string()};
  std::ranges::replace(who_, ' ', '-');
}

Recorder::~Recorder() { ::close(file_); }

void Recorder::note(Event::Kind kind, std::uint64_t number) {
  const auto line =
      to_line({kind, who_, number, std::chrono::steady_clock::now().time_since_epoch()});
  if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw std::system_error{errno, std::generic_category(), "writing a history"};
}

bool Verdict::has(Violation::Kind kind) const noexcept {
  return std::ranges::find(violations, kind, &Violation::kind) != violations.end();
}

std::string Verdict::text() const {
  std::string lines;
  for (const auto& [kind, event, text] : violations)
    lines += fmt::format("event {}: {}: {}\n", event, to_string(kind), text);
  return lines;
}

void HistoryChecker::see(const Event& event) {
  last_time_ = event.at;
  (this->*EventTable::rows[static_cast<std::size_t>(event.kind)].see)(event);
  if (const auto party = parties_.find(event.who); party != parties_.end()) {
    const Party& state = party->second;
    if (!state.exclusive && !state.shared && !state.permits && !state.waiting)
      parties_.erase(party);
  }
  ++seen_;
}

void HistoryChecker::finish() {
  if (!rules_.complete) return;
  for (const auto& [who, party] : parties_) {
    if (party.exclusive || party.shared || party.permits)
      violate(VK::never_left, fmt::format("{} is still in at the end", who));
    if (party.waiting) violate(VK::forgotten, fmt::format("{} still waits at the end", who));
  }
}

void HistoryChecker::wait(const Event& event) {
  parties_[event.who].waiting = Waiting{.arrival = arrivals_++, .since = event.at};
}

void HistoryChecker::give_up(const Event& event) {
  Party& party = parties_[event.who];
  if (party.waiting) end_wait(event, *party.waiting);
  party.waiting.reset();
}

void HistoryChecker::enter(const Event& event) {
  Party& me = parties_[event.who];
  for (const auto& [who, other] : parties_) {
    if (who == event.who) continue;
    if (other.exclusive)
      violate(VK::two_exclusive_holders, fmt::format("{} entered beside {}", event.who, who));
    if (other.shared)
      violate(VK::shared_beside_exclusive,
              fmt::format("{} entered beside the reader {}", event.who, who));
  }
  if (rules_.tokens_rise && me.exclusive == 0 && event.number != 0) {
    if (event.number <= last_token_)
      violate(VK::token_not_rising,
              fmt::format("{} entered with {} after {}", event.who, event.number, last_token_));
    last_token_ = std::max(last_token_, event.number);
  }
  if (me.exclusive++ == 0) arrive(event);
}

void HistoryChecker::leave(const Event& event) { leave_one(event, &Party::exclusive); }

void HistoryChecker::enter_shared(const Event& event) {
  for (const auto& [who, other] : parties_)
    if (who != event.who && other.exclusive)
      violate(VK::shared_beside_exclusive,
              fmt::format("{} reads beside the holder {}", event.who, who));
  if (parties_[event.who].shared++ == 0) arrive(event);
}

void HistoryChecker::leave_shared(const Event& event) { leave_one(event, &Party::shared); }

void HistoryChecker::acquire(const Event& event) {
  parties_[event.who].permits += event.number;
  std::uint64_t taken = 0;
  for (const auto& [who, party] : parties_) taken += party.permits;
  if (rules_.permits && taken > *rules_.permits)
    violate(VK::permits_above_total, fmt::format("{} took {}, and {} of {} are out", event.who,
                                                 event.number, taken, *rules_.permits));
  arrive(event);
}

void HistoryChecker::release(const Event& event) {
  Party& party = parties_[event.who];
  if (party.permits < event.number)
    violate(VK::leave_without_enter,
            fmt::format("{} gave back {} of its {}", event.who, event.number, party.permits));
  party.permits -= std::min(party.permits, event.number);
}

void HistoryChecker::gone(const Event& event) { parties_.erase(event.who); }

/// Somebody came in: was it its turn?
void HistoryChecker::arrive(const Event& event) {
  ++verdict_.entries;
  Party& me = parties_[event.who];
  const auto arrival = me.waiting ? me.waiting->arrival : arrivals_++;
  for (auto& [who, other] : parties_) {
    if (who == event.who || !other.waiting || other.waiting->arrival > arrival) continue;
    if (rules_.fifo)
      violate(VK::fifo_violated,
              fmt::format("{} came in before {}, which waited longer", event.who, who));
    if (rules_.overtakes && ++other.waiting->overtaken == *rules_.overtakes + 1)
      violate(VK::starved, fmt::format("{} was overtaken {} times", who, other.waiting->overtaken));
  }
  if (me.waiting) end_wait(event, *me.waiting);
  me.waiting.reset();
}

void HistoryChecker::end_wait(const Event& event, const Waiting& waiting) {
  const auto waited = event.at - waiting.since;
  if (rules_.longest_wait && waited > *rules_.longest_wait)
    violate(VK::starved, fmt::format("{} waited {} ns", event.who, waited.count()));
}

void HistoryChecker::leave_one(const Event& event, std::size_t Party::*entries) {
  std::size_t& left = parties_[event.who].*entries;
  if (left == 0)
    violate(VK::leave_without_enter, fmt::format("{} left, but was not in", event.who));
  else
    --left;
}

void HistoryChecker::violate(Violation::Kind kind, std::string text) {
  if (verdict_.violations.size() < Verdict::most)
    verdict_.violations.push_back({kind, seen_, std::move(text)});
}

Verdict check(std::span<const Event> history, const Rules& rules) {
  HistoryChecker checker{rules};
  for (const auto& event : history) checker.see(event);
  checker.finish();
  return checker.verdict();
}

}  // namespace sluice::test
