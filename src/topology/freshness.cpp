#include "topology/freshness.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"

namespace sluice::topology {
namespace {

using namespace std::chrono_literals;

/// More is no INFO of one section.
constexpr std::size_t most_text = 64 << 10;
/// Rounds without a read, after which nobody is asked any more.
constexpr int patience = 4;

/// What stands behind "name:" on a line of its own; nothing: there is no such line.
std::optional<std::string_view> line_of(std::string_view info, std::string_view name) {
  while (!info.empty()) {
    auto line = info.substr(0, info.find('\n'));
    info.remove_prefix(std::min(line.size() + 1, info.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':')
      return line.substr(name.size() + 1);
  }
  return std::nullopt;
}

}  // namespace

ReplicationView replication_of(const Value& reply, const Endpoint& answerer) {
  const auto refuse = [&](std::string_view why) {
    return Error{Errc::protocol,
                 fmt::format("{} answers INFO replication with {}", to_string(answerer), why)};
  };
  if (reply.is_error()) throw refuse(reply.as_text().substr(0, 200));
  if (!reply.is_text() || reply.as_text().size() > most_text) throw refuse("no text, or too much");
  const std::string_view info = reply.as_text();
  ReplicationView view;
  const auto role = line_of(info, "role");
  if (role != "master" && role != "slave") throw refuse("no role");
  view.is_master = role == "master";
  view.history = line_of(info, "master_replid").value_or("");
  const auto offset = parse_integer<std::uint64_t>(
      line_of(info, view.is_master ? "master_repl_offset" : "slave_repl_offset").value_or(""));
  if (view.history.empty() || !offset) throw refuse("no offset of replication");
  view.offset = *offset;
  view.is_linked = line_of(info, "master_link_status") == "up" &&
                   line_of(info, "master_sync_in_progress").value_or("0") == "0";
  return view;
}

std::chrono::milliseconds Freshness::period() const {
  return std::clamp(options_.max_lag / 4, 50ms, 500ms);
}

void Freshness::follow(std::span<const Endpoint> replicas) {
  std::vector<Replica> all;
  for (const auto& endpoint : replicas.first(std::min(replicas.size(), most_followed))) {
    const auto* const known = find(endpoint);
    all.push_back(known ? *known : Replica{endpoint});
  }
  replicas_ = std::move(all);
  used_ = replicas_.empty() ? 0 : options_.preferred % replicas_.size();
  std::erase_if(in_flight_, [&](const Asked& one) { return one.node && !find(*one.node); });
}

bool Freshness::is_wanted(SteadyTime now) const {
  return !replicas_.empty() && wanted_ != SteadyTime::min() &&
         now < Clock::add(wanted_, patience * period());
}

std::vector<FreshnessQuestion> Freshness::act(SteadyTime now) {
  expire(now);
  std::vector<FreshnessQuestion> questions;
  if (!is_wanted(now) || now < next_round_) return questions;
  next_round_ = now + period();
  const auto ask = [&](const std::optional<Endpoint>& node) {
    if (std::ranges::find(in_flight_, node, &Asked::node) != in_flight_.end()) return;
    const auto deadline = now + options_.answer_timeout;
    in_flight_.push_back({++last_question_, node, now, deadline});
    questions.push_back({last_question_, node, deadline});
  };
  ask(std::nullopt);
  for (const auto& replica : replicas_) ask(replica.endpoint);
  return questions;
}

SteadyTime Freshness::wakes() const {
  auto wakes = SteadyTime::max();
  for (const auto& asked : in_flight_) wakes = std::min(wakes, asked.deadline);
  if (is_wanted(next_round_)) wakes = std::min(wakes, next_round_);
  return wakes;
}

void Freshness::expire(SteadyTime now) {
  std::vector<std::uint64_t> late;
  for (const auto& asked : in_flight_)
    if (now >= asked.deadline) late.push_back(asked.id);
  for (const auto id : late) failed(id);
}

std::optional<Freshness::Asked> Freshness::take_question(std::uint64_t id) {
  const auto found = std::ranges::find(in_flight_, id, &Asked::id);
  if (found == in_flight_.end()) return std::nullopt;
  auto asked = std::move(*found);
  in_flight_.erase(found);
  return asked;
}

void Freshness::failed(std::uint64_t question) {
  const auto asked = take_question(question);
  // What is known of a master that is silent stays true; it ends with its time.
  if (asked && asked->node) forget(*asked->node);
}

void Freshness::answered(SteadyTime now, std::uint64_t question, const Value& reply) {
  const auto asked = take_question(question);
  if (!asked) return;
  try {
    auto said = replication_of(reply, asked->node.value_or(Endpoint{"the master", 0}));
    if (asked->node)
      take_replica(now, *asked, std::move(said));
    else
      take_master(*asked, std::move(said));
  } catch (const Error&) {
    if (asked->node) forget(*asked->node);
    throw;
  }
}

void Freshness::take_master(const Asked& asked, ReplicationView said) {
  if (!said.is_master) {  // it was one, or will be: nothing is to be held against it
    history_.clear();
    marks_.clear();
  } else if (said.history != history_ || (!marks_.empty() && said.offset < marks_.back().offset)) {
    history_ = std::move(said.history);
    marks_.clear();
  }
  if (said.is_master) marks_.push_back({asked.asked, said.offset});
  if (marks_.size() > most_marks) marks_.pop_front();
  for (auto& replica : replicas_) {
    // It had said so before the master was asked, which has less even now.
    if (replica.said && replica.told <= asked.asked && replica.said->history == history_ &&
        replica.said->offset > said.offset)
      replica.has_lied = true;
    compare(replica);
  }
}

void Freshness::take_replica(SteadyTime now, const Asked& asked, ReplicationView said) {
  auto* const replica = find(*asked.node);
  if (!replica) return;
  replica->said = std::move(said);
  replica->told = now;
  compare(*replica);
}

/// The latest answer of the master that it has caught up with.
void Freshness::compare(Replica& replica) const {
  replica.caught_up = SteadyTime::min();
  const auto& said = replica.said;
  if (!said || replica.has_lied || said->is_master || !said->is_linked || said->history != history_)
    return;
  for (const auto& mark : marks_)
    if (mark.offset <= said->offset) replica.caught_up = std::max(replica.caught_up, mark.asked);
}

void Freshness::forget(const Endpoint& endpoint) {
  auto* const replica = find(endpoint);
  if (replica) *replica = {.endpoint = endpoint};
}

void Freshness::forget_all() {
  history_.clear();
  marks_.clear();
  in_flight_.clear();
  for (auto& replica : replicas_) replica = {.endpoint = replica.endpoint};
  next_round_ = SteadyTime{};
}

const Endpoint* Freshness::pick(SteadyTime now, SteadyTime as_of) {
  wanted_ = now;
  // The one of the last read, as long as it may be: another one may be further behind.
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    const auto place = (used_ + i) % replicas_.size();
    const auto& replica = replicas_[place];
    if (replica.caught_up == SteadyTime::min() || replica.caught_up <= as_of ||
        Clock::add(replica.caught_up, options_.max_lag) < now)
      continue;
    used_ = place;
    return &replica.endpoint;
  }
  return nullptr;
}

SteadyTime Freshness::caught_up(const Endpoint& endpoint) const {
  const auto found = std::ranges::find(replicas_, endpoint, &Replica::endpoint);
  return found == replicas_.end() ? SteadyTime::min() : found->caught_up;
}

Freshness::Replica* Freshness::find(const Endpoint& endpoint) {
  const auto found = std::ranges::find(replicas_, endpoint, &Replica::endpoint);
  return found == replicas_.end() ? nullptr : &*found;
}

}  // namespace sluice::topology
