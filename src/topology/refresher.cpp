#include "topology/refresher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "sluice/error.hpp"

namespace sluice::topology {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t many = 3;  // nodes asked when trouble begins
constexpr auto calm = 5s;        // after it, trouble is new
constexpr std::size_t nodes_a_gap = 64;
constexpr std::size_t rounds_a_gap = 8;  // so a gap is a tenth of the outage or less
constexpr std::size_t most_gaps = 10;
constexpr std::chrono::nanoseconds longest_gap = 5s;
constexpr std::size_t longest_note = 300;

}  // namespace

Refresher::Refresher(std::vector<Endpoint> seeds, RefreshOptions options)
    : seeds_(std::move(seeds)),
      options_(std::move(options)),
      patience_(std::max(options_.answer_timeout, options_.longest_answer_timeout)) {
  if (seeds_.empty()) throw Error{Errc::bad_argument, "a cluster is found by one node at least"};
  if (options_.most_questions == 0)
    throw Error{Errc::bad_argument, "a map takes one question a second at least, not 0"};
}

std::vector<RefreshQuestion> Refresher::act(SteadyTime now) {
  expire(now);
  std::vector<RefreshQuestion> questions;
  if (now >= next_round()) begin_round(now, questions);
  return questions;
}

SteadyTime Refresher::wakes() const {
  auto when = next_round();
  for (const auto& [id, asked] : in_flight_) when = std::min(when, asked.deadline);
  return when;
}

void Refresher::expire(SteadyTime now) {
  std::vector<std::uint64_t> silent;
  for (const auto& [id, asked] : in_flight_)
    if (asked.deadline <= now) silent.push_back(id);
  for (const auto id : silent) {
    const auto& asked = in_flight_.at(id);
    failed(now, id, fmt::format("no answer in {} ms", (asked.deadline - asked.at) / 1ms));
  }
  if (!silent.empty())
    patience_ = std::max(patience_, std::min(patience_ * 2, options_.longest_answer_timeout));
}

/// Of the last that was answered four times as long, so that a node that is silent delays nothing.
void Refresher::note_answer(SteadyTime now, const Asked& asked) {
  constexpr int longer = 4;
  const auto enough = std::chrono::ceil<std::chrono::milliseconds>(longer * (now - asked.at));
  patience_ = std::max(options_.answer_timeout, std::min(patience_, enough));
}

void Refresher::begin_round(SteadyTime now, std::vector<RefreshQuestion>& questions) {
  if (is_round_open_) end_round(now);
  const bool asks_many = !is_troubled() || fruitless_ == 0 || !has_answer_;
  const auto free = static_cast<std::size_t>(
      std::ranges::count_if(questions_, [&](SteadyTime when) { return when + 1s > now; }));
  const auto most = std::min(
      {asks_many ? many : 1, options_.most_questions - free, most_in_flight - in_flight_.size()});
  if (lost_owners_ > 0 && options_.random(2) == 0) add_heirs_of_lost_owners();
  auto nodes = candidates(now);
  nodes.resize(std::min(nodes.size(), most));
  last_round_ = now;
  periodic_ = now + options_.period * 3 / 4 + some_of(options_.period / 2);
  if (nodes.empty()) return;  // all that there are have been asked

  ++round_;
  is_round_open_ = true;
  unanswered_ = std::min(unanswered_, now);
  is_doubted_ = has_answer_ = has_news_ = false;
  views_.clear();
  map_before_round_ = map_;
  hints_.clear();
  for (auto& node : nodes) {
    const auto deadline = now + patience_;
    const bool is_seed = std::ranges::find(seeds_, node) != seeds_.end();
    in_flight_[++last_question_] = {node, now, deadline, round_, form_, is_seed};
    questions.push_back({last_question_, std::move(node), form_, deadline});
    questions_.push_back(now);
    if (questions_.size() > options_.most_questions) questions_.pop_front();
  }
}

/// Nodes without a question in flight, in the order in which to ask them.
std::vector<Endpoint> Refresher::candidates(SteadyTime now) const {
  struct Candidate {
    int rank;
    SteadyTime since;  // suspects: those first that have not been asked for longest
    std::uint64_t lot;
    Endpoint node;
  };
  std::vector<Candidate> all;
  const auto add = [&](int rank, const Endpoint& node) {
    if (std::ranges::any_of(in_flight_, [&](const auto& one) { return one.second.node == node; }))
      return;
    const auto suspect = suspects_.find(node);
    const bool is_suspect = suspect != suspects_.end() && suspect->second.until > now;
    all.push_back({is_suspect ? 9 : rank, is_suspect ? suspect->second.until : SteadyTime{},
                   options_.random(1 << 30), node});
  };
  for (const Node& node : map_->nodes()) {
    if (!node.endpoint) continue;
    const bool is_sound = node.health == Health::online;
    add(hints_.contains(*node.endpoint) ? 0 : is_sound ? 1 : 3, *node.endpoint);
  }
  for (const auto& seed : seeds_)
    if (!map_->find(seed)) add(2, seed);
  std::ranges::sort(all, {}, [](const Candidate& one) {
    return std::tuple{one.rank, one.since, one.lot};
  });
  std::vector<Endpoint> nodes;
  for (auto& one : all)
    if (std::ranges::find(nodes, one.node) == nodes.end()) nodes.push_back(std::move(one.node));
  return nodes;
}

void Refresher::end_round(SteadyTime now) {
  is_round_open_ = false;
  if (has_news_) {
    fruitless_ = 0;
  } else {
    ++fruitless_;
  }
  if (!has_answer_) trouble(now);
}

bool Refresher::answered(SteadyTime now, std::uint64_t question, std::span<const Value> replies) {
  const auto found = in_flight_.find(question);
  if (found == in_flight_.end()) return false;
  note_answer(now, found->second);
  if (found->second.round != round_) {  // the rounds have gone on without it
    in_flight_.erase(found);
    return false;
  }
  const Asked asked = found->second;
  if (form_ == Form::shards && lacks_shards(replies)) form_ = Form::slots;
  std::optional<ClusterView> view;
  try {
    view = view_of(replies, asked.form, asked.node, options_.tls);
  } catch (const Error& error) {
    failed(now, question, error.message());
    return false;
  }
  in_flight_.erase(question);
  const bool is_new = take(now, asked, std::move(*view));
  end_round_if_all_have_told(now);
  return is_new;
}

/// No question of the round is in flight any more.
void Refresher::end_round_if_all_have_told(SteadyTime now) {
  const bool is_waited_for =
      std::ranges::any_of(in_flight_, [&](const auto& one) { return one.second.round == round_; });
  if (is_round_open_ && !is_waited_for) end_round(now);
}

void Refresher::failed(SteadyTime now, std::uint64_t question, std::string_view why) {
  const auto found = in_flight_.find(question);
  if (found == in_flight_.end()) return;
  const Asked asked = std::move(found->second);
  in_flight_.erase(found);
  note(asked.node, why);
  suspect(now, asked.node, false);
  if (asked.round == round_) end_round_if_all_have_told(now);
}

bool Refresher::take(SteadyTime now, const Asked& asked, ClusterView view) {
  const auto refuse = [&](std::string_view why) {
    note(asked.node, why);
    suspect(now, asked.node, false);
    return false;
  };
  if (view.nodes.empty()) return refuse("it knows no node");
  const bool is_of_the_cluster = map_->is_of_the_cluster_of(view);
  if (is_of_the_cluster) unanswered_ = SteadyTime::max();
  if (!view.is_ok) return refuse("its cluster is in state fail: it is cut off, or slots are lost");
  if (!is_of_the_cluster) {
    if (!asked.is_seed || !is_lost(now)) return refuse("it belongs to another cluster");
    ++replacements_;
    unanswered_ = SteadyTime::max();
    views_.clear();
    map_before_round_ = std::make_shared<const ClusterMap>();
  }
  suspects_.erase(asked.node);
  why_not_.erase(asked.node);
  has_answer_ = true;
  views_.push_back(std::move(view));
  return install(map_before_round_->merged(views_));
}

/// True: it is another one.
bool Refresher::install(ClusterMap map) {
  const bool is_new = !map_->is_as(map);
  map_ = std::make_shared<const ClusterMap>(std::move(map));
  has_news_ |= is_new;
  const auto is_unknown = [&](const auto& one) {
    return !map_->find(one.first) && std::ranges::find(seeds_, one.first) == seeds_.end();
  };
  std::erase_if(suspects_, is_unknown);
  std::erase_if(why_not_, is_unknown);
  look_for_lost_owners();
  return is_new;
}

bool Refresher::moved(SteadyTime now, std::uint16_t slot, const Endpoint& from,
                      const Endpoint& to) {
  auto after = map_->moved(slot, from, to);
  trouble(now);
  if (map_->find(to) || after) hints_.insert(to);
  if (!after) return false;
  const bool is_new = install(std::move(*after));
  map_before_round_ = map_;  // what the round has told is in it
  views_.clear();
  return is_new;
}

void Refresher::lost(SteadyTime now, const Endpoint& node) {
  if (!map_->find(node)) return;
  trouble(now);
  suspect(now, node, true);
  look_for_lost_owners();
}

void Refresher::is_back(SteadyTime now, const Endpoint& node) {
  if (suspects_.erase(node) == 0) return;
  look_for_lost_owners();
  fruitless_ = 0;
  trouble(now);
}

void Refresher::doubt(SteadyTime now) { trouble(now); }

void Refresher::trouble(SteadyTime now) {
  if (!is_troubled()) {
    if (doubted_ + calm <= now) fruitless_ = 0;
    due_ = now + some_of(gap() / 2);  // many clients hear of it at once
  }
  is_doubted_ = true;
  doubted_ = now;
}

void Refresher::suspect(SteadyTime now, const Endpoint& node, bool is_lost) {
  auto& suspect = suspects_[node];
  suspect.until = now + options_.suspicion;
  suspect.is_lost |= is_lost;
}

/// One of their replicas is the first to know who comes after them.
void Refresher::add_heirs_of_lost_owners() {
  for (const auto& [node, suspect] : suspects_) {
    const Node* const known = suspect.is_lost ? map_->find(node) : nullptr;
    if (!known || !map_->has_slots(*known)) continue;
    for (const Node* const replica : map_->replicas_of(*known))
      if (replica->endpoint) hints_.insert(*replica->endpoint);
  }
}

void Refresher::look_for_lost_owners() {
  lost_owners_ = 0;
  for (const auto& [node, suspect] : suspects_) {
    const Node* const known = suspect.is_lost ? map_->find(node) : nullptr;
    if (known && map_->has_slots(*known)) ++lost_owners_;
  }
}

void Refresher::note(const Endpoint& node, std::string_view why) {
  why_not_[node] = why.substr(0, longest_note);
}

std::string Refresher::why_not() const {
  std::string all;
  for (const auto& [node, why] : why_not_)
    all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", to_string(node), why);
  return all;
}

bool Refresher::is_troubled() const {
  return is_doubted_ || lost_owners_ > 0 || map_->knows_nothing();
}

/// For an answer, or the end of a question's time.
bool Refresher::is_waiting() const {
  if (in_flight_.size() >= most_in_flight) return true;
  return is_round_open_ && !has_answer_;
}

SteadyTime Refresher::next_round() const {
  if (is_waiting()) return SteadyTime::max();
  auto when = periodic_;
  if (is_troubled()) when = std::min(when, std::max(due_, last_round_ + gap()));
  return std::max(when, next_free_question());
}

SteadyTime Refresher::next_free_question() const {
  return questions_.size() < options_.most_questions ? SteadyTime::min() : questions_.front() + 1s;
}

std::chrono::nanoseconds Refresher::gap() const {
  const auto for_nodes = 1 + map_->nodes().size() / nodes_a_gap;
  const auto for_rounds = std::min(most_gaps, 1 + fruitless_ / rounds_a_gap);
  const auto gap = options_.gap * static_cast<std::int64_t>(for_nodes * for_rounds);
  return std::min<std::chrono::nanoseconds>(gap, longest_gap);
}

std::chrono::nanoseconds Refresher::some_of(std::chrono::nanoseconds most) const {
  return std::chrono::nanoseconds{
      options_.random(static_cast<std::uint64_t>(std::max<std::int64_t>(most.count(), 0)) + 1)};
}

}  // namespace sluice::topology
