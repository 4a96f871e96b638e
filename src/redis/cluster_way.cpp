#include "redis/cluster_way.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "store/waiter.hpp"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;

/// So long calls wait for a node that has lost their slot.
constexpr auto patience = 500ms;

}  // namespace

bool is_refusal(std::string_view error, bool of_script, int slot) noexcept {
  if (!of_script) return topology::is_refusal(error);
  if (slot == Operation::no_slot) return topology::is_refusal_of_script(error, std::nullopt);
  return topology::is_refusal_of_script(error, static_cast<std::uint16_t>(slot));
}

Course Way::find(SteadyTime now) {
  if (slot_ != Operation::no_slot) return cluster_.course(static_cast<std::uint16_t>(slot_), now);
  return {.node = cluster_.any_master(), .before = nullptr};
}

void Way::refused(const Node& by, const std::string& error, bool of_script) {
  refusal_ = error;
  pauses_ = true;
  try {
    const auto redirection = topology::parse_redirection(error, by.endpoint);
    const bool leads =
        redirection && redirection->to && (!of_script || cluster_.knows(*redirection->to));
    if (!leads) {
      if (!error.starts_with("TRYAGAIN ")) cluster_.doubt();
      return;
    }
    if (of_script) cluster_.doubt();
    if (!redirection->is_ask && !of_script)
      cluster_.moved(redirection->slot, by.endpoint, *redirection->to);
    if (++hops_ > most_hops || *redirection->to == by.endpoint) return;
    auto node = cluster_.node_at(*redirection->to);
    cluster_.trackers().follow_too(node);
    next_ = {.node = std::move(node),
             .before = nullptr,
             .is_redirected = true,
             .asks = redirection->is_ask,
             .version = cluster_.version()};
    pauses_ = false;
  } catch (const Error& nowhere) {  // or to too many places, or the Store is closed
    refusal_ = nowhere.message();
    cluster_.doubt();
  }
}

void Way::found_nobody() {
  cluster_.doubt();
  pauses_ = true;
}

void Way::held_up() {
  const auto why =
      next_.before
          ? fmt::format("{}, which had the slot before, does not say whether it has gone on",
                        to_string(next_.before->endpoint))
          : "calls of its thread before it wait for the node that had the slot before";
  if (!refusal_.contains(why)) refusal_ += refusal_.empty() ? why : "; " + why;
  pauses_ = true;
}

void Way::paused(SteadyTime now) {
  pauses_ = false;
  hops_ = 0;
  next_ = find(now);
}

Task<void> pass_fence(Cluster& cluster, Way& way, SteadyTime deadline) {
  const NodePtr before = way.next().before;
  Link& link = before->client->link();
  const auto pulse = link.pulse();
  if (before->silent_since.load(std::memory_order_relaxed) == pulse.heard) co_return;
  static constexpr std::string_view ping[] = {"PING"};
  Request request;
  request.add(ping);
  Value reply;
  const auto until = std::min(system_clock().steady() + patience, deadline);
  Operation fence{request, {&reply, 1}, until, {}, &link, way.slot()};
  fence.once = true;
  link.submit(fence);
  if (!pulse.is_ready) cluster.look();  // what waits there is given back, in order, and this last
  co_await InTurn{fence.done};
  if (system_clock().steady() >= deadline) way.held_up();
}

Turn::Turn(Cluster& cluster, int slot, const Course& course)
    : cluster_(cluster), key_(slot, Waiter::current()) {
  if (slot == Operation::no_slot || course.is_redirected || !key_.second) return;
  if (!course.before && !cluster.has_gates()) return;
  gate_ = std::make_shared<Gate>();
  before_ = cluster_.join(key_, gate_, !course.before);
  if (!course.before && !before_) gate_ = nullptr;
}

Task<void> Turn::wait(SteadyTime deadline) {
  if (!before_) co_return;
  auto waiting = wait_until(before_->sent, system_clock(), deadline);
  if (const bool in_time = co_await waiting; !in_time)
    cluster_.leave_behind(key_, *before_, std::exchange(gate_, nullptr));
  else
    co_await InTurn{before_->sent};  // behind what was completed before
}

Task<void> Turn::come(Way& way, SteadyTime deadline) {
  if (before_) {
    auto waiting = wait(deadline);
    co_await waiting;
    const auto now = system_clock().steady();
    way.returned(now);
    if (now >= deadline) co_return way.held_up();
  }
  if (!way.next().before || has_passed(way.next())) co_return;
  auto passing = pass_fence(cluster_, way, deadline);
  co_await passing;
}

void Turn::sent(std::uint64_t version) {
  if (!gate_) return;
  gate_->version = version;
  cluster_.leave(key_, std::exchange(gate_, nullptr));
}

Error overdue(Cluster& cluster, const Way& way, const std::string& what, bool was_sent) {
  const auto why = way.refusal().empty() ? fmt::format("no node is known to have its slot: {}",
                                                       cluster.why_not(way.slot()))
                                         : way.refusal();
  return Error{Errc::connection,
               fmt::format("{}: {} has not taken it in time: {}", what, cluster.name(), why),
               was_sent ? Effect::unknown : Effect::none};
}

Error closed(const Cluster& cluster, bool was_sent) {
  return Error{Errc::closed, fmt::format("the Store of {} was closed", cluster.name()),
               was_sent ? Effect::unknown : Effect::none};
}

Task<void> pause(Cluster& cluster, Way& way, const std::string& what, SteadyTime deadline,
                 bool was_sent) {
  const auto until = Clock::add(system_clock().steady(), way.pause());
  if (until >= deadline) throw overdue(cluster, way, what, was_sent);
  const Cluster::Pausing pausing{cluster};
  co_await sleep_until(system_clock(), until);
  if (cluster.is_closed()) throw closed(cluster, was_sent);
  way.paused(system_clock().steady());
}

}  // namespace sluice::redis
