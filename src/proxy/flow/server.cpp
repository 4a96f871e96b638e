#include "proxy/flow/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "proxy/flow/pool.hpp"
#include "resp/writer.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::flow {
namespace {

constexpr std::chrono::seconds between_looks{1};  // at a name whose connections fail

Handshake& say(Handshake& handshake, std::initializer_list<std::string_view> words) {
  resp::append_command(handshake.bytes, {words.begin(), words.size()});
  ++handshake.replies;
  return handshake;
}

constexpr std::chrono::milliseconds longest_silence{500};  // of a node that owes replies
/// A node that has lost a slot tells who waits there within a second.
constexpr std::chrono::milliseconds silence_of_those_that_wait{2500};

constexpr std::size_t most_spare = 16;  // connections of former borrowers that are kept
constexpr std::chrono::seconds spare_time{60};

std::string untold_text(std::size_t changes) {
  return changes == 0 ? "" : fmt::format(" ({} changes before this were not told)", changes);
}

bool all_idle(const std::vector<std::unique_ptr<Upstream>>& upstreams) {
  return std::ranges::all_of(upstreams, [](const auto& upstream) { return upstream->idle(); });
}

}  // namespace

BorrowedUpstream::BorrowedUpstream(Server& server, Upstream& upstream) noexcept
    : server_(&server), upstream_(&upstream), generation_(upstream.generation()) {}

BorrowedUpstream& BorrowedUpstream::operator=(BorrowedUpstream&& other) noexcept {
  reset();
  server_ = other.server_;
  upstream_ = std::exchange(other.upstream_, nullptr);
  generation_ = other.generation_;
  return *this;
}

void BorrowedUpstream::adopt(const ConnectionMode& mode) { server_->adopt(*upstream_, mode); }

void BorrowedUpstream::give_back() {
  if (auto* const upstream = std::exchange(upstream_, nullptr))
    server_->take_back(*upstream, upstream->generation() == generation_);
}

void BorrowedUpstream::reset() noexcept {
  if (auto* const upstream = std::exchange(upstream_, nullptr))
    server_->take_back(*upstream, false);
}

Server::Server(Pool& pool, ServerSettings settings, std::shared_ptr<SharedServer> shared,
               std::shared_ptr<watch::ServerWatch> watch, bool is_replica)
    : pool_(pool),
      settings_(std::move(settings)),
      shared_state_(std::move(shared)),
      watch_(std::move(watch)),
      is_replica_(is_replica),
      is_watched_(!pool.settings().sentinels.empty() && !is_replica),
      is_name_(is_watched_ || known_addresses(settings_.endpoint).empty()),
      addresses_(is_watched_ ? Addresses{} : Addresses{known_addresses(settings_.endpoint)}),
      self_(std::make_shared<Server*>(this)) {
  shared_.push_back({{.resp = 2, .db = pool.settings().redis_db}, {}, {}});
  show_health();
}

template <class Visit>
void Server::for_each_owned(Visit visit) {
  for (auto& connections : shared_)
    for (auto& upstream : connections.upstreams) visit(upstream);
  for (auto& upstream : leaving_) visit(upstream);
  for (auto* const singles : {&borrowed_, &spare_})
    for (auto& single : *singles) visit(single.upstream);
}

Server::~Server() {
  *self_ = nullptr;
  for_each_owned([this](auto& upstream) { end(std::move(upstream)); });
}

void Server::for_each_upstream(const std::function<void(Upstream&)>& visit) {
  for_each_owned([&](const auto& upstream) { visit(*upstream); });
}

void Server::end(std::unique_ptr<Upstream> upstream) {
  upstream->close(Failure::closed);
  pool_.loop().bury(std::move(upstream));
}

Handshake Server::handshake(const ConnectionMode& mode) const {
  Handshake handshake;
  const auto& settings = pool_.settings();
  if (!settings.redis) return handshake;
  const auto& password =
      settings.server_password.empty() ? settings.redis_auth : settings.server_password;
  if (!password.empty()) {
    if (settings.server_user.empty())
      say(handshake, {"AUTH", password});
    else
      say(handshake, {"AUTH", settings.server_user, password});
  }
  handshake.is_of_pool = mode.resp == 2 && mode.db == settings.redis_db;
  if (mode.resp == 3) say(handshake, {"HELLO", "3"});
  if (mode.db != 0) say(handshake, {"SELECT", std::to_string(mode.db)});
  if (is_replica_ && settings.is_of_cluster()) say(handshake, {"READONLY"});
  return handshake;
}

Server::SharedConnections& Server::shared(const ConnectionMode& mode) {
  const auto found = std::ranges::find(shared_, mode, &SharedConnections::mode);
  if (found != shared_.end()) return *found;
  return shared_.emplace_back(SharedConnections{mode, {}, {}});
}

Upstream& Server::upstream(const ConnectionMode& mode, std::size_t client) {
  auto& connections = shared_.front().mode == mode ? shared_.front() : shared(mode);
  connections.wanted = pool_.loop().now();
  if (connections.upstreams.empty()) {
    for (std::size_t i = 0; i < std::max<std::size_t>(pool_.settings().server_connections, 1); ++i)
      connections.upstreams.push_back(std::make_unique<Upstream>(
          pool_.loop(), *this, handshake(mode), Lane{mode, static_cast<std::uint32_t>(i)}));
  }
  const auto count = connections.upstreams.size();
  // The ids of a worker's clients are as far apart as there are workers.
  return *connections
              .upstreams[count == 1 ? 0 : client / pool_.context().registry.workers() % count];
}

Upstream& Server::upstream(const Lane& lane) {
  return upstream(lane.mode, lane.number * pool_.context().registry.workers());
}

BorrowedUpstream Server::borrow(const ConnectionMode& mode) {
  if (!shared_state_->borrowed.enter(pool_.settings().exclusive_connections)) return {};
  const auto fits = [&](const Single& single) {
    return single.mode == mode && single.upstream->connected();
  };
  const auto spare = std::find_if(spare_.rbegin(), spare_.rend(), fits);
  if (spare == spare_.rend()) {
    borrowed_.push_back(
        {mode, std::make_unique<Upstream>(pool_.loop(), *this, handshake(mode)), {}});
  } else {
    borrowed_.push_back(std::move(*spare));
    spare_.erase(std::next(spare).base());
  }
  return {*this, *borrowed_.back().upstream};
}

void Server::take_back(Upstream& upstream, bool clean) {
  const auto found = std::ranges::find(borrowed_, &upstream,
                                       [](const Single& single) { return single.upstream.get(); });
  std::swap(*found, borrowed_.back());
  Single single = std::move(borrowed_.back());
  borrowed_.pop_back();
  shared_state_->borrowed.leave();
  if (!clean || !upstream.connected() || has_moved(upstream) || !upstream.idle() ||
      spare_.size() >= most_spare)
    return end(std::move(single.upstream));
  upstream.set_untimed(false);
  single.since = pool_.loop().now();
  spare_.push_back(std::move(single));
}

void Server::adopt(Upstream& upstream, const ConnectionMode& mode) {
  auto& single = *std::ranges::find(borrowed_, &upstream,
                                    [](const Single& one) { return one.upstream.get(); });
  const auto before = std::exchange(single.mode, mode);
  if (before == mode) return;
  Handshake change{.bytes = {}, .replies = 0, .is_of_pool = false};
  if (before.resp != mode.resp) say(change, {"HELLO", std::to_string(mode.resp)});
  if (before.db != mode.db) say(change, {"SELECT", std::to_string(mode.db)});
  upstream.adopt(handshake(mode), change);
}

void Server::tick() {
  if (const auto untold = shared_state_->told.overdue(pool_.loop().now()))
    log(LogLevel::warning, fmt::format("{} is {} now; it was ejected and came back, {} changes in "
                                       "all that were not told",
                                       title(), health().well() ? "up" : "ejected", *untold));
  const auto interval = pool_.settings().resolve_interval;
  if (is_name_ && !is_watched_ && interval.count() != 0 && pool_.loop().now() - asked_ >= interval)
    resolve();
  std::erase_if(leaving_, [this](auto& upstream) {
    const bool idle = upstream->idle();
    if (idle) end(std::move(upstream));
    return idle;
  });
  const auto before = pool_.loop().now() - spare_time;
  std::erase_if(spare_, [&](Single& single) {
    const bool old =
        single.since < before || !single.upstream->connected() || has_moved(*single.upstream);
    if (old) end(std::move(single.upstream));
    return old;
  });
  for (auto at = std::next(shared_.begin()); at != shared_.end();) {
    const bool unwanted = at->wanted < before && all_idle(at->upstreams);
    if (unwanted)
      for (auto& upstream : at->upstreams) end(std::move(upstream));
    at = unwanted ? shared_.erase(at) : std::next(at);
  }
}

void Server::resolve(Upstream* waiting) {
  if (waiting) waiting_.push_back(waiting);
  if (is_watched_) {
    if (const auto masters = pool_.shared().masters()) masters->doubt(settings_.name);
    return;
  }
  if (std::exchange(asking_, true)) return;
  asked_ = pool_.loop().now();
  pool_.context().resolver.ask(settings_.endpoint,
                               [&loop = pool_.loop(), self = self_](const Resolver::Found& found) {
                                 loop.post([self, found] {
                                   if (*self) (*self)->take_addresses(found);
                                 });
                               });
}

/// After a failed look the last good answer stays.
void Server::take_addresses(const Resolver::Found& found) {
  asking_ = false;
  if (found)
    addresses_.take(*found);
  else
    log(LogLevel::warning, found.error().message());
  leave_old_addresses();
  for (Upstream* upstream : std::exchange(waiting_, {})) upstream->resolved();
}

void Server::follow_master(const Masters& masters) {
  auto place = masters.of(settings_.name);
  if (place.turn == master_.turn && place.addresses == addresses_.all()) return;
  master_ = std::move(place);
  addresses_.take(master_.addresses);
  std::vector<Upstream*> moved;  // a list of their own: what fails may end borrowed ones
  for_each_owned([&](const auto& upstream) {
    if (has_moved(*upstream)) moved.push_back(upstream.get());
  });
  for (Upstream* upstream : moved) upstream->close(Failure::closed);
  if (addresses_.empty()) return;
  for (Upstream* upstream : std::exchange(waiting_, {})) upstream->resolved();
}

void Server::look_again() {
  if (is_name_ && pool_.loop().now() - asked_ >= between_looks) resolve();
}

void Server::deprive() noexcept { deprived_ = pool_.loop().now(); }

void Server::note_lost() {
  const bool is_node = pool_.settings().is_of_cluster() && !is_replica_;
  if (!is_node || deprived_ || std::exchange(is_lost_, true)) return;
  pool_.servers().tell_lost(*this);
}

void Server::note_back() {
  if (std::exchange(is_lost_, false)) pool_.servers().tell_back(*this);
}

void Server::look_for_silence() {
  std::vector<Upstream*> silent;  // a list of their own: what fails may end borrowed ones
  bool is_silent = false;
  bool has_spoken = false;
  for_each_upstream([&](Upstream& upstream) {
    const bool waits = upstream.is_untimed();
    const auto silence =
        std::min(upstream.silence(), pool_.loop().now() - deprived_.value_or(SteadyTime{}));
    if (deprived_ && silence > (waits ? silence_of_those_that_wait : longest_silence))
      silent.push_back(&upstream);
    is_silent |= !waits && silence > longest_silence;
    has_spoken |= !waits && upstream.connected() && silence == std::chrono::nanoseconds{0};
  });
  for (Upstream* upstream : silent) upstream->close(Failure::closed);
  if (is_silent)
    note_lost();
  else if (has_spoken)
    note_back();
}

bool Server::has_moved(const Upstream& upstream) const noexcept {
  const auto* const address = upstream.address();
  return is_name_ && address && !addresses_.contains(*address);
}

/// New connections take the places of those to old addresses, which close when they have answered.
void Server::leave_old_addresses() {
  for (auto& connections : shared_)
    for (auto& upstream : connections.upstreams)
      if (has_moved(*upstream))
        leaving_.push_back(std::exchange(
            upstream, std::make_unique<Upstream>(pool_.loop(), *this, handshake(connections.mode),
                                                 upstream->lane())));
}

void Server::preconnect() {
  static_cast<void>(upstream(shared_.front().mode, 0));
  for (auto& upstream : shared_.front().upstreams) upstream->connect();
}

bool Server::idle() const {
  return borrowed_.empty() && all_idle(leaving_) &&
         std::ranges::all_of(shared_, all_idle, &SharedConnections::upstreams);
}

bool Server::may_tell() const { return shared_state_->told.is_due(pool_.loop().now()); }

std::string Server::title() const {
  return fmt::format("pool '{}': server '{}' ({})", pool_.settings().name, settings_.name,
                     net::to_string(settings_.endpoint));
}

void Server::log_change(std::string_view what) const {
  if (const auto untold = shared_state_->told.note(pool_.loop().now()))
    log(LogLevel::warning, fmt::format("{} {}{}", title(), what, untold_text(*untold)));
}

void Server::show_health() const {
  if (health().well()) watch_->status->come_back();
}

void Server::weigh_failure(SteadyTime since, Failure failure) {
  if (!counts_against_server(failure)) return;
  counters().failures.add();
  const auto policy = health().policy();
  if (!health().failed(since, pool_.loop().now())) return;
  const auto now = pool_.loop().clock().wall();
  const auto& settings = pool_.settings();
  const bool keys_move = settings.on_failure == OnFailure::rehash && settings.servers.size() > 1;
  watch_->status->eject(now, text_of(failure));
  log_change(fmt::format(
      "is ejected after {} failures, the last: {}; it is {} in {} ms, and until then {}",
      std::max<std::size_t>(policy.failure_limit, 1), text_of(failure),
      policy.checked ? "checked" : "tried again", policy.retry.count(),
      keys_move ? "its keys go to the other servers" : "requests for its keys get an error"));
  pool_.counters().server_ejects.add();
  counters().server_ejected_at.set(now.time_since_epoch().count());
  pool_.servers().refresh();
}

void Server::has_come_back() const {
  const auto standing = watch_->status->standing();
  watch_->status->come_back();
  const auto away =
      std::chrono::floor<std::chrono::milliseconds>(pool_.loop().clock().wall() - standing.since);
  log_change(
      fmt::format("is back, and has its keys again: it was ejected for {} ms and {} checks, "
                  "because: {}",
                  away.count(), standing.checks, standing.cause));
}

void Server::try_to_recover() {
  const auto now = pool_.loop().now();
  if (health().come_back(now)) return has_come_back();
  if (!health().claim_check(now)) return;
  counters().health_checks.add();
  watch_->status->probe();
  Request& request = pool_.requests().make();
  request.receiver = this;
  upstream(shared_.front().mode, 0).send(request, pool_.protocol().health_question());
}

void Server::replied(Request& request, std::string_view reply) {
  checked(request, pool_.protocol().is_healthy(reply));
}

void Server::failed(Request& request, Failure) { checked(request, false); }

void Server::checked(Request& request, bool good) {
  pool_.requests().drop(request);
  if (health().checked(good, pool_.loop().now()))
    has_come_back();
  else
    watch_->status->stay();
  pool_.servers().refresh();
}

}  // namespace sluice::proxy::flow
