#include "lock/chaos/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "support/history.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;
using test::Event;
using Kind = Trouble::Kind;
using Parts = std::vector<const Section*>;

struct Span {
  Stamp begin;
  Stamp end;
};

double ms(Stamp at) { return static_cast<double>(at.count()) / 1e6; }

bool is_of(const Trouble& trouble, const Section& section) {
  return section.who.starts_with(trouble.who + '/');
}

/// All that is said about one lock.
class Inquiry {
 public:
  Inquiry(std::string name, Parts parts, const std::vector<Trouble>& troubles, const Rules& rules)
      : name_(std::move(name)),
        terms_(rules.names.at(name_)),
        parts_(std::move(parts)),
        troubles_(troubles),
        rules_(rules) {}

  std::vector<Finding> findings() {
    if (terms_.rate > 0) {
      look_at_rate();
    } else if (terms_.count > 0) {
      look_at_latch();
    } else if (terms_.numbers) {
      look_at_numbers();
    } else if (terms_.orders) {
      return {};  // the Shop knows more
    } else {
      look_at_exclusion();
      look_at_tokens();
      const bool waits = !terms_.apart && (rules_.patience > 0s || rules_.longest > 0s);
      if (waits) look_at_waits();
      if (terms_.fair && rules_.queued > 0s) look_at_order();
    }
    return std::move(findings_);
  }

 private:
  struct Edge {
    Stamp at;
    bool in;
    const Section* section;
    /// Who leaves at the moment at which another enters is out.
    friend bool operator<(const Edge& a, const Edge& b) {
      return std::tie(a.at, a.in) < std::tie(b.at, b.in);
    }
  };

  bool is_loss(const Trouble& trouble) const {
    if (terms_.apart) return false;
    return trouble.kind == Kind::snapshot || (trouble.kind == Kind::promotion && !terms_.durable);
  }
  /// Whether data may have been lost in that time, or a request of it comes only after a loss.
  bool is_loss_in(Span span) const {
    return std::ranges::any_of(troubles_, [&](const Trouble& trouble) {
      return is_loss(trouble) && trouble.begin <= span.end && span.begin <= until(trouble);
    });
  }
  /// When the server lost data of which this hold may be.
  bool is_before(const Section& section, const Trouble& loss) const {
    return section.mode != Mode::exclusive || section.token < loss.end_us;
  }
  Stamp until(const Trouble& loss) const { return loss.end + rules_.lease; }

  std::vector<Span> certain(const Section& section) const;
  static Event event_of(const Edge& edge);
  void look_at_exclusion();
  void look_at_tokens();
  bool is_excused(const Section& section) const;
  Stamp readers_know_since(const Section& reader) const;
  std::vector<Span> busy() const;
  void look_at_waits();
  void look_at_wait(const Section& wait, const std::vector<Span>& busy);
  Stamp allowed(const Section& wait, Span gap) const;
  Stamp longest_trouble_of_servers(Span span) const;
  bool keeps_its_place(const Section& waiter, Stamp till) const;
  void look_at_order();
  void look_at_rate();
  Parts of_mode(Mode mode) const;
  Stamp surely_closed_until(const Section& set, const Parts& counts) const;
  std::optional<Stamp> surely_open_at(const Section& set, const Parts& counts) const;
  void look_at_latch();
  bool is_forgotten(const Section& given, const Section& later) const;
  void look_at_numbers();
  void find(Stamp at, std::string text) { findings_.push_back({name_, std::move(text), at}); }

  const std::string name_;
  const Terms& terms_;
  const Parts parts_;
  const std::vector<Trouble>& troubles_;
  const Rules& rules_;
  std::vector<Finding> findings_;
};

/// When it was certainly valid, without the times for which nothing is promised.
std::vector<Span> Inquiry::certain(const Section& section) const {
  std::vector<Span> spans{{*section.came, section.valid}};
  for (const auto& loss : troubles_) {
    if (!is_loss(loss) || !is_before(section, loss)) continue;
    std::vector<Span> rest;
    for (const auto& [begin, end] : spans) {
      if (begin < loss.begin) rest.push_back({begin, std::min(end, loss.begin)});
      if (until(loss) < end) rest.push_back({std::max(begin, until(loss)), end});
    }
    spans = std::move(rest);
  }
  std::erase_if(spans, [](const Span& span) { return span.begin >= span.end; });
  return spans;
}

Event Inquiry::event_of(const Edge& edge) {
  using EventKind = Event::Kind;
  constexpr EventKind kinds[][2]{{EventKind::leave, EventKind::enter},
                                 {EventKind::leave_shared, EventKind::enter_shared},
                                 {EventKind::release, EventKind::acquire}};
  return {.kind = kinds[static_cast<std::size_t>(edge.section->mode)][edge.in],
          .who = edge.section->who,
          .number = edge.section->permits,
          .at = edge.at};
}

void Inquiry::look_at_exclusion() {
  std::vector<Edge> edges;
  for (const auto* section : parts_) {
    if (!section->entered) continue;
    for (const auto& [begin, end] : certain(*section)) {
      edges.push_back({begin, true, section});
      edges.push_back({end, false, section});
    }
  }
  std::ranges::stable_sort(edges, std::less{});
  test::Rules rules{.tokens_rise = false, .complete = false};
  if (terms_.permits > 0) rules.permits = terms_.permits;
  test::HistoryChecker checker{rules};
  std::size_t known = 0;
  for (const auto& edge : edges) {
    checker.see(event_of(edge));
    const auto& violations = checker.verdict().violations;
    for (; known < violations.size(); ++known)
      find(edge.at,
           fmt::format("{}: {}", to_string(violations[known].kind), violations[known].text));
  }
}

/// Its token was given by what the server has forgotten: later holders may have had larger ones.
bool Inquiry::is_excused(const Section& section) const {
  return std::ranges::any_of(troubles_, [&](const Trouble& loss) {
    return is_loss(loss) && is_before(section, loss) && *section.came >= loss.begin &&
           *section.came <= until(loss);
  });
}

/// Readers are told the token of the last writer that the server knows.
Stamp Inquiry::readers_know_since(const Section& reader) const {
  Stamp since{};
  for (const auto& loss : troubles_)
    if (is_loss(loss) && loss.begin <= *reader.came) since = std::max(since, until(loss));
  return since;
}

void Inquiry::look_at_tokens() {
  if (terms_.permits > 0) return;
  Parts by_entry = parts_;
  std::erase_if(by_entry, [](const Section* section) { return !section->entered; });
  Parts by_question = by_entry;
  std::ranges::sort(by_entry, {}, [](const Section* section) { return *section->came; });
  std::ranges::sort(by_question, {}, &Section::asked);
  std::map<std::uint64_t, const Section*> given;
  const Section* highest = nullptr;
  const Section* highest_writer = nullptr;
  auto before = by_entry.begin();
  const auto is_higher = [](const Section* one, const Section* other) {
    return other == nullptr || one->token > other->token;
  };
  for (const auto* section : by_question) {
    for (; before != by_entry.end() && *(*before)->came < section->asked; ++before) {
      if (is_higher(*before, highest)) highest = *before;
      if ((*before)->mode == Mode::exclusive && is_higher(*before, highest_writer))
        highest_writer = *before;
    }
    if (section->mode == Mode::shared) {
      if (highest_writer && *highest_writer->came > readers_know_since(*section) &&
          section->token < highest_writer->token)
        find(*section->came,
             fmt::format("{} reads with token {} after {} wrote with {}", section->who,
                         section->token, highest_writer->who, highest_writer->token));
      continue;
    }
    const auto [had, is_new] = given.emplace(section->token, section);
    if (!is_new)
      find(*section->came, fmt::format("token {} is given to {} and was {}'s", section->token,
                                       section->who, had->second->who));
    else if (highest && section->token <= highest->token && !is_excused(*section))
      find(*section->came, fmt::format("token not rising: {} has {} and asked after {} had {}",
                                       section->who, section->token, highest->who, highest->token));
  }
}

/// When nobody else could have come in. Who did not say that it left may have been in for a lease.
std::vector<Span> Inquiry::busy() const {
  std::vector<Edge> edges;
  for (const auto* section : parts_) {
    if (!section->entered) continue;
    edges.push_back({*section->came, true, section});
    edges.push_back({section->left.value_or(section->valid + rules_.lease), false, section});
  }
  std::ranges::stable_sort(edges, std::less{});
  std::vector<Span> spans;
  std::uint64_t used = 0;
  const auto is_full = [&] {
    return terms_.permits > 0 ? used + terms_.most > terms_.permits : used > 0;
  };
  for (const auto& edge : edges) {
    const bool was_full = is_full();
    const auto many = std::max<std::uint64_t>(edge.section->permits, 1);
    edge.in ? used += many : used -= many;
    if (is_full() && !was_full) spans.push_back({edge.at, edge.at});
    if (!is_full() && was_full) spans.back().end = edge.at;
  }
  return spans;
}

Stamp Inquiry::allowed(const Section& wait, Span gap) const {
  Stamp sum = rules_.patience;
  for (const auto& trouble : troubles_) {
    if (trouble.kind == Kind::node) continue;
    if (trouble.end + rules_.lease < gap.begin || trouble.begin > gap.end) continue;
    sum += 2s + rules_.lease;
    if (trouble.kind != Kind::process || is_of(trouble, wait)) sum += trouble.end - trouble.begin;
  }
  return sum;
}

/// They have one trouble at a time, which may last where the machine is slow.
Stamp Inquiry::longest_trouble_of_servers(Span span) const {
  Stamp longest{};
  for (const auto& trouble : troubles_)
    if (trouble.kind != Kind::process && trouble.kind != Kind::node && trouble.begin <= span.end &&
        trouble.end >= span.begin)
      longest = std::max(longest, std::min(trouble.end, span.end) - trouble.begin);
  return longest;
}

void Inquiry::look_at_wait(const Section& wait, const std::vector<Span>& busy) {
  if (!wait.came || *wait.came - wait.asked < rules_.patience) return;
  const Stamp longest = rules_.longest + longest_trouble_of_servers({wait.asked, *wait.came});
  if (rules_.longest > 0s && *wait.came - wait.asked > longest)
    find(*wait.came,
         fmt::format("starved: {} waited {:.0f} ms", wait.who, ms(*wait.came - wait.asked)));
  Stamp idle_since = wait.asked;
  const auto look_at_gap = [&](Stamp end) {
    const Span gap{idle_since, std::min(end, *wait.came)};
    const Stamp length = gap.end - gap.begin;
    if (length > rules_.patience && length > allowed(wait, gap))
      find(gap.end,
           fmt::format("forgotten: {} waited {:.0f} ms beside a free lock", wait.who, ms(length)));
  };
  auto span = std::ranges::upper_bound(busy, wait.asked, {}, &Span::end);
  for (; span != busy.end() && span->begin < *wait.came; ++span) {
    look_at_gap(span->begin);
    idle_since = std::max(idle_since, span->end);
  }
  if (idle_since < *wait.came) look_at_gap(*wait.came);
}

void Inquiry::look_at_waits() {
  const auto spans = busy();
  for (const auto* section : parts_) look_at_wait(*section, spans);
}

/// Who stood still goes to the end, and so may who had to ask again.
bool Inquiry::keeps_its_place(const Section& waiter, Stamp till) const {
  return std::ranges::none_of(troubles_, [&](const Trouble& trouble) {
    if (trouble.kind == Kind::process && !is_of(trouble, waiter)) return false;
    return trouble.begin < till && waiter.asked < trouble.end + 2s + rules_.lease;
  });
}

void Inquiry::look_at_order() {
  Parts entered = parts_;
  std::erase_if(entered, [](const Section* section) { return !section->entered; });
  std::ranges::sort(entered, {}, &Section::asked);
  for (const auto* waiter : entered) {
    const Stamp stood = waiter->asked + rules_.queued;
    auto later = std::ranges::upper_bound(entered, stood, {}, &Section::asked);
    for (; later != entered.end() && (*later)->asked < *waiter->came; ++later) {
      if (*(*later)->came >= *waiter->came || !keeps_its_place(*waiter, *(*later)->came)) continue;
      find(*waiter->came,
           fmt::format("overtaken: {} stood in the queue for {:.0f} ms when {} asked "
                       "and was in before it",
                       waiter->who, ms((*later)->asked - waiter->asked), (*later)->who));
      break;
    }
  }
}

/// What was asked for and granted within a second was taken in that second.
void Inquiry::look_at_rate() {
  Parts granted = parts_;
  std::erase_if(granted, [](const Section* section) { return !section->entered; });
  std::ranges::sort(granted, {}, &Section::asked);
  for (auto first = granted.begin(); first != granted.end(); ++first) {
    const Span window{(*first)->asked, (*first)->asked + 1s};
    std::uint64_t taken = 0;
    for (auto next = first; next != granted.end() && (*next)->asked < window.end; ++next)
      if (*(*next)->came < window.end) taken += (*next)->permits;
    if (taken > terms_.rate && !is_loss_in({window.begin - 1s, window.end}))
      find(window.end,
           fmt::format("rate: {} permits in a second, {} are allowed", taken, terms_.rate));
  }
}

Parts Inquiry::of_mode(Mode mode) const {
  Parts parts = parts_;
  std::erase_if(parts, [&](const Section* section) { return section->mode != mode; });
  return parts;
}

/// `counts`: by when they were asked for. Those that failed may have counted, and those whose
/// process died.
Stamp Inquiry::surely_closed_until(const Section& set, const Parts& counts) const {
  std::uint64_t may_have_counted = 0;
  for (const auto* count : counts) {
    const Stamp over =
        count->entered ? *count->came : count->came.value_or(count->asked + 20s) + 5s;
    if (over < set.asked) continue;
    if (++may_have_counted == set.permits) return count->asked;
  }
  return Stamp::max();
}

std::optional<Stamp> Inquiry::surely_open_at(const Section& set, const Parts& counts) const {
  std::vector<Stamp> counted;
  for (const auto* count : counts)
    if (count->entered && count->asked >= *set.came) counted.push_back(*count->came);
  if (counted.size() < set.permits) return std::nullopt;
  std::ranges::sort(counted);
  return counted[set.permits - 1];
}

void Inquiry::look_at_latch() {
  Parts counts = of_mode(Mode::count_down);
  std::ranges::sort(counts, {}, &Section::asked);
  const Parts waits = of_mode(Mode::wait);
  for (const auto* set : of_mode(Mode::set)) {
    if (!set->entered) continue;
    const Span closed{*set->came, surely_closed_until(*set, counts)};
    const auto open = surely_open_at(*set, counts);
    for (const auto* wait : waits) {
      if (!wait->came) continue;
      const Span concerned{set->asked, *wait->came};
      if (wait->entered && wait->asked >= closed.begin && *wait->came < closed.end &&
          !is_loss_in(concerned))
        find(*wait->came, fmt::format("open: {} found it so, and {} had set it to {}", wait->who,
                                      set->who, set->permits));
      if (!open || rules_.patience == 0s || wait->asked >= *open || *wait->came < *open) continue;
      if (*wait->came - *open > allowed(*wait, {*open, *wait->came}) && !is_loss_in(concerned))
        find(*wait->came, fmt::format("forgotten: {} waited {:.0f} ms at an open latch", wait->who,
                                      ms(*wait->came - *open)));
    }
  }
}

/// The store has lost that it gave it, before it gave the later one. A replica that is promoted has
/// all but the last moments.
bool Inquiry::is_forgotten(const Section& given, const Section& later) const {
  constexpr Stamp lag = 1s;
  return std::ranges::any_of(troubles_, [&](const Trouble& loss) {
    if (!is_loss(loss) || *given.came > until(loss) || *later.came < loss.begin) return false;
    return loss.kind == Kind::snapshot || *given.came + lag >= loss.begin;
  });
}

void Inquiry::look_at_numbers() {
  Parts by_entry = parts_;
  std::erase_if(by_entry, [](const Section* section) { return !section->entered; });
  Parts by_question = by_entry;
  std::ranges::sort(by_entry, {}, [](const Section* section) { return *section->came; });
  std::ranges::sort(by_question, {}, &Section::asked);
  std::map<std::uint64_t, const Section*> given;
  for (const auto* section : by_entry) {
    const auto [had, is_new] = given.emplace(section->token, section);
    if (is_new) continue;
    findings_.push_back({name_,
                         fmt::format("number {} is given to {} and was {}'s", section->token,
                                     section->who, had->second->who),
                         *section->came, is_forgotten(*had->second, *section)});
    had->second = section;
  }
  const Section* highest = nullptr;
  auto before = by_entry.begin();
  for (const auto* section : by_question) {
    for (; before != by_entry.end() && *(*before)->came < section->asked; ++before)
      if (!highest || (*before)->token > highest->token || is_forgotten(*highest, **before))
        highest = *before;
    if (highest && section->token < highest->token && !is_forgotten(*highest, *section))
      find(*section->came, fmt::format("number not rising: {} has {} and asked after {} had {}",
                                       section->who, section->token, highest->who, highest->token));
  }
}

std::string line_of(const Section& section, Stamp zero) {
  const auto since = [&](Stamp at) { return ms(at - zero); };
  auto line =
      fmt::format("{:>10.3f}  {} asks for {}", since(section.asked), section.who, section.name);
  constexpr std::string_view purposes[]{"",          " to read", "",       "",           " to set",
                                        " to count", " to wait", " (one)", " (an order)"};
  line += purposes[static_cast<std::size_t>(section.mode)];
  if (section.permits > 0) line += fmt::format(" ({})", section.permits);
  if (section.entered)
    line += fmt::format(", is in at {:.3f} with {}, valid at {:.3f}", since(*section.came),
                        section.token, since(section.valid));
  else if (section.came)
    line += fmt::format(", is refused at {:.3f}", since(*section.came));
  if (section.left) line += fmt::format(", has left at {:.3f}", since(*section.left));
  return line;
}

}  // namespace

std::vector<Finding> check(const std::vector<Section>& sections,
                           const std::vector<Trouble>& troubles, const Rules& rules, Stamp since) {
  std::map<std::string, Parts> parts;
  for (const auto& section : sections) {
    const bool counts = section.mode == Mode::count_down || section.mode == Mode::set;
    if (counts || (section.came && std::max(*section.came, section.valid) >= since))
      parts[section.name].push_back(&section);
  }
  std::vector<Finding> all;
  for (auto& [name, of_name] : parts) {
    auto found = Inquiry{name, std::move(of_name), troubles, rules}.findings();
    std::ranges::move(found, std::back_inserter(all));
  }
  return all;
}

std::string extract(const std::vector<Section>& sections, const std::vector<Trouble>& troubles,
                    const Finding& finding) {
  constexpr std::size_t most = 60;
  std::multimap<Stamp, std::string> lines;
  const Span span{finding.at - 5s, finding.at + 1s};
  for (const auto& section : sections)
    if (section.name == finding.name && section.asked < span.end && section.came &&
        std::max({section.valid, *section.came, section.left.value_or(0s)}) > finding.at - 500ms)
      lines.emplace(section.asked, line_of(section, finding.at));
  const auto from_here = [&](const auto& line) {
    return std::chrono::abs(line.first - finding.at);
  };
  while (lines.size() > most) {  // the farthest first
    const auto last = std::prev(lines.end());
    lines.erase(from_here(*lines.begin()) > from_here(*last) ? lines.begin() : last);
  }
  for (const auto& trouble : troubles)
    if (trouble.begin < span.end && trouble.end > span.begin)
      lines.emplace(trouble.begin,
                    fmt::format("{:>10.3f}  {} until {:.3f}", ms(trouble.begin - finding.at),
                                trouble.text, ms(trouble.end - finding.at)));
  auto text = fmt::format("{}: {} (times in ms from here)\n", finding.name, finding.text);
  for (const auto& [at, line] : lines) text += line + '\n';
  return text;
}

}  // namespace sluice::chaos
