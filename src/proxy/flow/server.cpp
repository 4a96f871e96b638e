#include "proxy/flow/server.hpp"

#include <algorithm>
#include <utility>

#include "proxy/flow/pool.hpp"
#include "resp/writer.hpp"

namespace sluice::proxy {
namespace {

constexpr std::chrono::seconds between_looks{1};  // at a name whose connections fail

Greeting& say(Greeting& greeting, std::initializer_list<std::string_view> words) {
  resp::append_command(greeting.bytes, {words.begin(), words.size()});
  ++greeting.replies;
  return greeting;
}

constexpr std::size_t most_spare = 16;  // connections of former borrowers that are kept
constexpr std::chrono::seconds spare_time{60};

/// One question whether a server is well.
class HealthCheck final : public Receiver {
 public:
  explicit HealthCheck(Server& server) : server_(server) {}

  void replied(Request& request, std::string_view reply) override {
    finish(request, server_.pool().protocol().is_healthy(reply));
  }
  void failed(Request& request, Failure) override { finish(request, false); }

 private:
  void finish(Request& request, bool good) {
    auto& loop = server_.pool().loop();
    loop.requests().drop(request);
    server_.health().checked(good, loop.now());
    server_.pool().refresh();
  }

  Server& server_;
};

}  // namespace

Borrowed::Borrowed(Server& server, Upstream& upstream) noexcept
    : server_(&server), upstream_(&upstream), generation_(upstream.generation()) {}

Borrowed& Borrowed::operator=(Borrowed&& other) noexcept {
  reset();
  server_ = other.server_;
  upstream_ = std::exchange(other.upstream_, nullptr);
  generation_ = other.generation_;
  return *this;
}

void Borrowed::give_back() {
  if (auto* const upstream = std::exchange(upstream_, nullptr))
    server_->take_back(*upstream, upstream->generation() == generation_);
}

void Borrowed::reset() noexcept {
  if (auto* const upstream = std::exchange(upstream_, nullptr))
    server_->take_back(*upstream, false);
}

Server::Server(Pool& pool, ServerSettings settings, std::shared_ptr<Health> health,
               std::shared_ptr<ServerWatch> watch)
    : pool_(pool),
      settings_(std::move(settings)),
      health_(std::move(health)),
      watch_(std::move(watch)),
      is_name_(known_addresses(settings_.endpoint).empty()),
      addresses_(known_addresses(settings_.endpoint)),
      health_check_(std::make_unique<HealthCheck>(*this)),
      self_(std::make_shared<Server*>(this)) {
  links_.push_back({{.resp = 2, .db = pool.settings().redis_db}, {}, {}});
}

Server::~Server() {
  *self_ = nullptr;
  for (auto& link : links_)
    for (auto& upstream : link.upstreams) end(std::move(upstream));
  for (auto& upstream : leaving_) end(std::move(upstream));
  for (auto* const singles : {&borrowed_, &spare_})
    for (auto& single : *singles) end(std::move(single.upstream));
}

void Server::end(std::unique_ptr<Upstream> upstream) {
  upstream->close(Failure::closed);
  pool_.loop().bury(std::move(upstream));
}

Greeting Server::greeting(const Variant& variant) const {
  Greeting greeting;
  const auto& settings = pool_.settings();
  if (!settings.redis) return greeting;
  const auto& password =
      settings.server_password.empty() ? settings.redis_auth : settings.server_password;
  if (!password.empty()) {
    if (settings.server_user.empty())
      say(greeting, {"AUTH", password});
    else
      say(greeting, {"AUTH", settings.server_user, password});
  }
  greeting.is_of_pool = variant.resp == 2 && variant.db == settings.redis_db;
  if (variant.resp == 3) say(greeting, {"HELLO", "3"});
  if (variant.db != 0) say(greeting, {"SELECT", std::to_string(variant.db)});
  return greeting;
}

Server::Link& Server::link(const Variant& variant) {
  const auto found = std::ranges::find(links_, variant, &Link::variant);
  if (found != links_.end()) return *found;
  return links_.emplace_back(Link{variant, {}, {}});
}

Upstream& Server::upstream(const Variant& variant, std::size_t client) {
  auto& link = links_.front().variant == variant ? links_.front() : this->link(variant);
  link.wanted = pool_.loop().now();
  if (link.upstreams.empty()) {
    for (std::size_t i = 0; i < std::max<std::size_t>(pool_.settings().server_connections, 1); ++i)
      link.upstreams.push_back(std::make_unique<Upstream>(pool_.loop(), *this, greeting(variant)));
  }
  return *link.upstreams[link.upstreams.size() == 1 ? 0 : client % link.upstreams.size()];
}

Borrowed Server::borrow(const Variant& variant) {
  const auto fits = [&](const Single& single) {
    return single.variant == variant && single.upstream->connected();
  };
  const auto spare = std::find_if(spare_.rbegin(), spare_.rend(), fits);
  if (spare == spare_.rend()) {
    borrowed_.push_back(
        {variant, std::make_unique<Upstream>(pool_.loop(), *this, greeting(variant)), {}});
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
  if (!clean || !upstream.connected() || has_moved(upstream) || !upstream.idle() ||
      spare_.size() >= most_spare)
    return end(std::move(single.upstream));
  upstream.set_patient(false);
  single.since = pool_.loop().now();
  spare_.push_back(std::move(single));
}

void Server::tick() {
  const auto interval = pool_.settings().resolve_interval;
  if (is_name_ && interval.count() != 0 && pool_.loop().now() - asked_ >= interval) resolve();
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
  const auto unwanted =
      std::stable_partition(std::next(links_.begin()), links_.end(), [&](const Link& link) {
        return link.wanted >= before ||
               !std::ranges::all_of(link.upstreams,
                                    [](const auto& upstream) { return upstream->idle(); });
      });
  for (auto link = unwanted; link != links_.end(); ++link)
    for (auto& upstream : link->upstreams) end(std::move(upstream));
  links_.erase(unwanted, links_.end());
}

void Server::resolve(Upstream* waiting) {
  if (waiting) waiting_.push_back(waiting);
  if (std::exchange(asking_, true)) return;
  asked_ = pool_.loop().now();
  pool_.resolver().ask(settings_.endpoint,
                       [&loop = pool_.loop(), self = self_](std::vector<net::Address> addresses) {
                         loop.post([self, addresses = std::move(addresses)]() mutable {
                           if (*self) (*self)->take_addresses(std::move(addresses));
                         });
                       });
}

void Server::take_addresses(std::vector<net::Address> addresses) {
  asking_ = false;
  if (!addresses.empty())
    addresses_.take(std::move(addresses));  // one that fails does not forget the last good one
  leave_old_addresses();
  for (Upstream* upstream : std::exchange(waiting_, {})) upstream->resolved();
}

void Server::look_again() {
  if (is_name_ && pool_.loop().now() - asked_ >= between_looks) resolve();
}

bool Server::has_moved(const Upstream& upstream) const noexcept {
  const auto* const address = upstream.address();
  return is_name_ && address && !addresses_.contains(*address);
}

/// What goes over the old connections is answered there; others take their places.
void Server::leave_old_addresses() {
  for (auto& link : links_)
    for (auto& upstream : link.upstreams)
      if (has_moved(*upstream))
        leaving_.push_back(std::exchange(
            upstream, std::make_unique<Upstream>(pool_.loop(), *this, greeting(link.variant))));
}

void Server::for_each_upstream(const std::function<void(Upstream&)>& visit) {
  for (auto& link : links_)
    for (auto& upstream : link.upstreams) visit(*upstream);
  for (auto& upstream : leaving_) visit(*upstream);
  for (auto& single : borrowed_) visit(*single.upstream);
  for (auto& single : spare_) visit(*single.upstream);
}

void Server::preconnect() {
  static_cast<void>(upstream(links_.front().variant, 0));
  for (auto& upstream : links_.front().upstreams) upstream->connect();
}

bool Server::idle() const {
  const auto is_idle = [](const auto& upstream) { return upstream->idle(); };
  return borrowed_.empty() && std::ranges::all_of(leaving_, is_idle) &&
         std::ranges::all_of(links_, [](const Link& link) {
           return std::ranges::all_of(link.upstreams,
                                      [](const auto& upstream) { return upstream->idle(); });
         });
}

void Server::weigh_failure(SteadyTime since) {
  counters().failures.add();
  if (!health_->failed(since, pool_.loop().now())) return;
  pool_.counters().server_ejects.add();
  counters().server_ejected_at.set(pool_.loop().clock().wall().time_since_epoch().count());
  pool_.refresh();
}

void Server::ask_after_health() {
  if (!health_->claim_check(pool_.loop().now())) return;
  counters().health_checks.add();
  Request& request = pool_.loop().requests().make();
  request.receiver = health_check_.get();
  upstream(links_.front().variant, 0).send(request, pool_.protocol().health_question());
}

}  // namespace sluice::proxy
