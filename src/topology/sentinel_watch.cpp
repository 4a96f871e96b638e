#include "topology/sentinel_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sluice/error.hpp"

namespace sluice::topology {
namespace {

using namespace std::chrono_literals;

constexpr int most_hops = 3;         // replicas of replicas
constexpr auto least_pause = 100ms;  // between two questions to one node, whatever happens
constexpr auto forgotten_after = 60s;
constexpr auto grace = 50ms;  // behind the deadline of a question, to hear why it failed
constexpr std::size_t most_slow = 128;
constexpr std::size_t longest_reason = 300;

}  // namespace

SentinelWatch::SentinelWatch(std::vector<Endpoint> sentinels, SentinelOptions options)
    : options_(std::move(options)) {
  if (sentinels.empty() || options_.name.empty())
    throw Error{Errc::bad_argument,
                "a master is found by the address of one Sentinel at least, and its name"};
  for (auto& sentinel : sentinels) sentinels_[std::move(sentinel)].is_seed = true;
}

std::vector<SentinelQuestion> SentinelWatch::act(SteadyTime now) {
  if (had_master_ == SteadyTime{}) had_master_ = now;
  std::vector<std::uint64_t> silent;
  for (const auto& [id, asked] : in_flight_)
    if (asked.question.deadline + grace <= now) silent.push_back(id);
  for (const auto id : silent) {
    const auto& asked = in_flight_.at(id);
    const auto time = asked.question.deadline - asked.at;
    failed(now, id,
           fmt::format("no answer in {} ms",
                       std::chrono::round<std::chrono::milliseconds>(time).count()));
  }

  std::vector<SentinelQuestion> questions;
  for (auto& [node, sentinel] : sentinels_) {
    if (sentinel.is_asked || sentinel.next > now) continue;
    sentinel.is_asked = true;
    sentinel.asked = now;
    sentinel.next = now + pause(now);
    questions.push_back(question_to(now, SentinelQuestion::To::sentinel, node));
    in_flight_[last_question_] = {.question = questions.back(), .at = now};
  }
  if (led_on_) {
    const auto led = *std::exchange(led_on_, std::nullopt);
    ask_server(now, led.question.node, led.hops, led.epoch, questions);
  }
  if (roles_ <= now) ask_roles(now, questions);
  return questions;
}

SteadyTime SentinelWatch::wakes() const {
  auto when = led_on_ ? SteadyTime::min() : roles_;
  for (const auto& [node, sentinel] : sentinels_)
    if (!sentinel.is_asked) when = std::min(when, sentinel.next);
  for (const auto& [id, asked] : in_flight_) when = std::min(when, asked.question.deadline + grace);
  return when;
}

SentinelQuestion SentinelWatch::question_to(SteadyTime now, SentinelQuestion::To to,
                                            const Endpoint& node) {
  const auto slow = slow_.find(node);
  const auto time = slow == slow_.end() ? options_.answer_timeout : slow->second;
  return {.id = ++last_question_, .to = to, .node = node, .deadline = now + time};
}

void SentinelWatch::note_silence(const Endpoint& node) {
  if (slow_.size() >= most_slow) slow_.clear();
  auto& time = slow_.try_emplace(node, options_.answer_timeout).first->second;
  time = std::min(time * 2, std::max(options_.longest_answer_timeout, options_.answer_timeout));
}

void SentinelWatch::note_answer(SteadyTime now, const Asked& asked) {
  constexpr int longer = 4;
  const auto found = slow_.find(asked.question.node);
  if (found == slow_.end()) return;
  const auto enough = std::chrono::ceil<std::chrono::milliseconds>(longer * (now - asked.at));
  if (enough <= options_.answer_timeout)
    slow_.erase(found);
  else
    found->second = std::min(found->second, enough);
}

/// Between two questions to the same, but for messages.
std::chrono::milliseconds SentinelWatch::pause(SteadyTime now) const {
  return master_ ? options_.poll : pace(now, options_.retry);
}

/// So often something is asked for while the master is away or in doubt.
std::chrono::milliseconds SentinelWatch::pace(SteadyTime now,
                                              std::chrono::milliseconds least) const {
  constexpr int part = 10;
  const auto outage = std::chrono::floor<std::chrono::milliseconds>(now - had_master_);
  return std::clamp(outage / part, least, std::max(least, options_.poll));
}

void SentinelWatch::answered(SteadyTime now, std::uint64_t question,
                             std::span<const Value> replies) {
  const auto found = in_flight_.find(question);
  if (found == in_flight_.end()) return;
  const Asked asked = found->second;
  note_answer(now, asked);
  try {
    if (asked.question.to == SentinelQuestion::To::sentinel) {
      auto view = sentinel_view_of(replies, asked.question.node);
      in_flight_.erase(question);
      take(now, asked, std::move(view));
    } else {
      if (replies.size() != 1)
        throw Error{Errc::protocol, fmt::format("{} gives {} replies to ROLE",
                                                to_string(asked.question.node), replies.size())};
      const auto role = parse_role(replies.front(), asked.question.node);
      in_flight_.erase(question);
      take_role(now, asked, role);
    }
  } catch (const Error& error) {
    failed(now, question, error.message());
  }
}

void SentinelWatch::failed(SteadyTime now, std::uint64_t question, std::string_view why) {
  const auto found = in_flight_.find(question);
  if (found == in_flight_.end()) return;
  const Asked asked = std::move(found->second);
  in_flight_.erase(found);
  why = why.substr(0, longest_reason);
  const bool is_silent = asked.question.deadline <= now;
  if (is_silent) note_silence(asked.question.node);
  if (asked.question.to == SentinelQuestion::To::server) {
    role_why_not_ = fmt::format("{}: {}", to_string(asked.question.node), why);
    return;
  }
  const auto sentinel = sentinels_.find(asked.question.node);
  if (sentinel == sentinels_.end()) return;
  sentinel->second.is_asked = false;
  sentinel->second.has_told |= !is_silent;
  sentinel->second.why_not = why;
  const bool is_forgotten =
      !sentinel->second.is_seed && sentinel->second.listed + forgotten_after <= now;
  if (is_forgotten) sentinels_.erase(sentinel);
  follow_word(now);
}

void SentinelWatch::take(SteadyTime now, const Asked& asked, SentinelView view) {
  const auto found = sentinels_.find(asked.question.node);
  if (found == sentinels_.end()) return;
  auto& sentinel = found->second;
  sentinel.is_asked = false;
  sentinel.has_told = true;
  sentinel.answer = now;
  sentinel.view = std::move(view);
  sentinel.why_not.clear();
  if (!sentinel.view.master) sentinel.why_not = "it does not know the name";
  if (!first_answer_) first_answer_ = now;
  const auto listed = sentinel.view.sentinels;
  const auto master = sentinel.view.master;
  follow_word(now);
  if (master && master == named_) learn(now, asked.question.node, listed);
}

void SentinelWatch::learn(SteadyTime now, const Endpoint& from,
                          const std::vector<Endpoint>& listed) {
  for (const auto& node : listed) {
    if (node == from) continue;
    if (sentinels_.size() >= most_sentinels && !sentinels_.contains(node)) continue;
    sentinels_[node].listed = now;
  }
}

/// What the Sentinels say that have answered lately.
std::vector<SentinelWatch::Word> SentinelWatch::words(SteadyTime now) const {
  std::vector<Word> all;
  for (const auto& [node, sentinel] : sentinels_) {
    if (!sentinel.answer || *sentinel.answer + options_.memory <= now || !sentinel.view.master)
      continue;
    auto same = std::ranges::find_if(all, [&](const Word& one) {
      return one.master == *sentinel.view.master && one.epoch == sentinel.view.epoch;
    });
    if (same == all.end())
      same = all.insert(all.end(), {.master = *sentinel.view.master,
                                    .epoch = sentinel.view.epoch,
                                    .votes = 0,
                                    .replicas = &sentinel.view.replicas});
    ++same->votes;
  }
  return all;
}

/// Of those that count: the latest epoch, then most Sentinels, then the master that is used.
std::optional<SentinelWatch::Word> SentinelWatch::word_to_follow(SteadyTime now) const {
  if (!has_settled(now)) return std::nullopt;
  const auto all = words(now);
  const auto is_less = [&](const Word& one, const Word& other) {
    if (one.epoch != other.epoch) return one.epoch < other.epoch;
    if (one.votes != other.votes) return one.votes < other.votes;
    return one.master != master_ && other.master == master_;
  };
  std::optional<Word> best;
  for (const auto& word : all)
    if (counts(now, word, all) && (!best || is_less(*best, word))) best = word;
  return best;
}

bool SentinelWatch::counts(SteadyTime now, const Word& word, const std::vector<Word>& all) const {
  if (named_ && word.epoch < epoch_) return word.votes > sentinels_.size() / 2;
  const auto heard =
      static_cast<std::size_t>(std::ranges::count_if(sentinels_, [&](const auto& one) {
        return one.second.answer && *one.second.answer + forgotten_after > now;
      }));
  if (word.votes > heard / 2) return true;
  if (named_) return std::ranges::find(known_, word.master) != known_.end();
  // Nobody is followed yet: what most say, and who can have come after that.
  const auto most = std::ranges::max_element(all, [](const Word& one, const Word& other) {
    return std::pair{one.votes, one.epoch} < std::pair{other.votes, other.epoch};
  });
  if (word.votes == most->votes && word.epoch == most->epoch) return true;
  const auto servers = servers_of(most->master);
  return std::ranges::find(servers, word.master) != servers.end();
}

/// A master and its replicas, by the word of the Sentinels that name it, or did when they were last
/// heard.
std::vector<Endpoint> SentinelWatch::servers_of(const Endpoint& master) const {
  std::vector<Endpoint> all{master};
  for (const auto& [node, sentinel] : sentinels_)
    if (sentinel.view.master == master)
      all.insert(all.end(), sentinel.view.known.begin(), sentinel.view.known.end());
  return all;
}

/// No Sentinel need be waited for, so that the first one to answer is not the only one heard.
bool SentinelWatch::has_settled(SteadyTime now) const {
  if (!first_answer_) return false;
  return epoch_ > 0 || master_ || *first_answer_ + options_.settle <= now || have_all_told();
}

void SentinelWatch::follow_word(SteadyTime now) {
  if (!first_answer_) return;
  if (!has_settled(now)) {
    roles_ = std::min(roles_, *first_answer_ + options_.settle);
    return;
  }
  const auto best = word_to_follow(now);
  if (!best) return;
  replicas_ = *best->replicas;
  if (best->epoch > epoch_) {
    epoch_ = best->epoch;
    if (best->master != master_) master_.reset();  // it would acknowledge what is then lost
  }
  if (std::exchange(named_, best->master) != best->master) roles_ = now;
  known_ = servers_of(*named_);
}

/// The server that the Sentinels name and the one that is used.
void SentinelWatch::ask_roles(SteadyTime now, std::vector<SentinelQuestion>& questions) {
  follow_word(now);
  roles_asked_ = now;
  roles_ = now + pause(now);
  if (const auto best = word_to_follow(now))
    ask_server(now, best->master, 0, best->epoch, questions);
  if (master_) ask_server(now, *master_, 0, epoch_, questions);
}

void SentinelWatch::ask_server(SteadyTime now, const Endpoint& server, int hops,
                               std::uint64_t epoch, std::vector<SentinelQuestion>& questions) {
  const bool is_asked = std::ranges::any_of(in_flight_, [&](const auto& one) {
    return one.second.question.to == SentinelQuestion::To::server &&
           one.second.question.node == server;
  });
  if (is_asked) return;
  questions.push_back(question_to(now, SentinelQuestion::To::server, server));
  in_flight_[last_question_] = {
      .question = questions.back(), .at = now, .hops = hops, .epoch = epoch};
}

void SentinelWatch::take_role(SteadyTime now, const Asked& asked, const RoleView& role) {
  const auto& server = asked.question.node;
  if (role.is_master) {
    const auto best = word_to_follow(now);
    const bool is_named = best && best->master == server;
    // What was asked before the last failover that is known does not count.
    const bool is_led_to = asked.hops > 0 && asked.epoch >= epoch_;
    if (is_named || is_led_to || server == master_) had_master_ = now;
    if (!is_named && !is_led_to) return;
    if (is_named) epoch_ = best->epoch;
    master_ = server;
    role_why_not_.clear();
    return;
  }
  role_why_not_ = fmt::format("{} is a replica{}", to_string(server),
                              role.master ? " of " + to_string(*role.master) : "");
  if (master_ == server) {
    master_.reset();
    ask_all(now, least_pause);
  }
  if (!role.master || asked.hops >= most_hops || role.master == master_) return;
  led_on_ =
      Asked{.question = asked.question, .at = now, .hops = asked.hops + 1, .epoch = asked.epoch};
  led_on_->question.node = *role.master;
}

void SentinelWatch::ask_soon(SteadyTime now, Sentinel& sentinel, std::chrono::milliseconds pace) {
  sentinel.next = std::min(sentinel.next, std::max(now, sentinel.asked + pace));
}

void SentinelWatch::ask_all(SteadyTime now, std::chrono::milliseconds pace) {
  for (auto& [node, sentinel] : sentinels_) ask_soon(now, sentinel, pace);
}

void SentinelWatch::heard(SteadyTime now, std::string_view message) {
  if (is_switch_of(message, options_.name)) ask_all(now, least_pause);
}

void SentinelWatch::is_back(SteadyTime now, const Endpoint& sentinel) {
  const auto found = sentinels_.find(sentinel);
  if (found != sentinels_.end()) ask_soon(now, found->second, least_pause);
}

void SentinelWatch::doubt(SteadyTime now) {
  const auto often = pace(now, least_pause);
  ask_all(now, often);
  roles_ = std::min(roles_, std::max(now, roles_asked_ + often));
}

std::vector<Endpoint> SentinelWatch::sentinels() const {
  std::vector<Endpoint> all;
  for (const auto& [node, sentinel] : sentinels_) all.push_back(node);
  return all;
}

bool SentinelWatch::have_all_told() const {
  return std::ranges::all_of(sentinels_, [](const auto& one) { return one.second.has_told; });
}

bool SentinelWatch::is_name_unknown() const {
  return first_answer_ && std::ranges::none_of(sentinels_, [](const auto& one) {
           return one.second.answer && one.second.view.master;
         });
}

std::string SentinelWatch::why_not() const {
  std::string all;
  for (const auto& [node, sentinel] : sentinels_)
    if (!sentinel.why_not.empty())
      all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", to_string(node), sentinel.why_not);
  if (is_name_unknown())
    return fmt::format("no Sentinel knows a master '{}': {}", options_.name, all);
  if (!first_answer_) return fmt::format("no Sentinel answers: {}", all);
  if (!role_why_not_.empty())
    return fmt::format("the Sentinels name no server that is the master '{}': {}", options_.name,
                       role_why_not_);
  if (named_)
    return fmt::format("the Sentinels name {}, which has not said yet that it is the master '{}'",
                       to_string(*named_), options_.name);
  return all;
}

}  // namespace sluice::topology
