#include "server/lock_tools.hpp"

#include <fmt/format.h>

#include <utility>

#include "server/order_requests.hpp"
#include "server/problems.hpp"
#include "server/request_parts.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds longest_wait = 30s;
constexpr milliseconds shortest_lease = 10ms;  // as of Mutex
constexpr milliseconds longest_lease = 24h;
constexpr milliseconds usual_lease = 30s;
constexpr std::size_t longest_label = 100;

constexpr IntegerMember wait_member{"wait_ms", 0, longest_wait.count(), 0};
constexpr IntegerMember lease_member{"lease_ms", shortest_lease.count(), longest_lease.count(),
                                     usual_lease.count()};

const std::string wish_schema =
    fmt::format(R"({{"type":"object","additionalProperties":false,"properties":{{
"wait_ms":{{"type":"integer","minimum":0,"maximum":{},"default":0}},
"lease_ms":{{"type":"integer","minimum":{},"maximum":{},"default":{}}},
"label":{{"type":"string","description":"what people see of the holder, up to {} bytes"}}}}}})",
                longest_wait.count(), shortest_lease.count(), longest_lease.count(),
                usual_lease.count(), longest_label);

const std::string renewal_schema =
    fmt::format(R"({{"type":"object","additionalProperties":false,"properties":{{
"lease_ms":{{"type":"integer","minimum":{},"maximum":{},"default":{}}}}}}})",
                shortest_lease.count(), longest_lease.count(), usual_lease.count());

const std::string hold_schema =
    R"({"type":"object","required":["lock","owner","token","left_ms"],"properties":{
"lock":{"type":"string"},"owner":{"type":"string","description":"renews and releases the hold"},
"token":{"type":"string","description":"64 bits, in decimal; rises with each hold"},
"left_ms":{"type":"integer","description":"of the lease, from when it was granted"}}})";

const std::string lock_schema =
    R"({"type":"object","required":["lock","held"],"properties":{"lock":{"type":"string"},
"held":{"type":"boolean"},
"waiting_here":{"type":"integer","description":"calls that wait for it at this process"},
"token":{"type":"string","description":"the last one given"},
"holder":{"type":"object","properties":{"owner":{"type":"string"},"label":{"type":"string"},
"host":{"type":"string"},"pid":{"type":"integer"},
"left_ms":{"type":"integer","description":"missing: it has no end"}}}}})";

http::Response answer_of(int status, const std::string& lock, const OwnerId& owner,
                         FencingToken token, milliseconds left) {
  return http::json(status, Json::object({{"lock", lock},
                                          {"owner", owner.text},
                                          {"token", fmt::to_string(token.value)},
                                          {"left_ms", left.count()}}));
}

http::Response refusal_of(const lock::HeldElsewhere& held) {
  if (!held.left) return http::problem(problems::held);
  auto response = http::problem(problems::held, {}, {{"left_ms", held.left->count()}});
  http::add_retry_after(response, *held.left);
  return response;
}

http::Response too_many_wait() {
  auto response = http::problem(problems::busy, "too many wait for locks here");
  http::add_retry_after(response, 1s);
  return response;
}

/// A wish is its caller's, who may name it as another caller names his.
std::string wish_text(const ToolCall& call, const std::string& key) {
  return fmt::format("{} {} {} {}", call.caller, call.name.size(), call.name, key);
}

}  // namespace

/// Counts a call under way until its coroutine ends.
class LockTools::UnderWay {
 public:
  explicit UnderWay(LockTools& tools) : tools_(tools) {
    const std::lock_guard lock{tools_.mutex_};
    ++tools_.under_way_;
  }
  ~UnderWay() {
    const std::lock_guard lock{tools_.mutex_};  // notifies under it: the tools may be gone then
    if (--tools_.under_way_ == 0) tools_.ended_.notify_all();
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

 private:
  LockTools& tools_;
};

LockTools::~LockTools() {
  std::unique_lock lock{mutex_};
  ended_.wait(lock, [&] { return under_way_ == 0; });
}

Task<void> LockTools::answer(Task<http::Response> work, http::Responder respond) {
  const UnderWay under_way{*this};
  http::Response response;
  try {
    response = co_await work;
  } catch (const std::exception& failure) {
    response = tool_problem_of(failure);
  }
  respond.send(std::move(response));
}

Expected<LockTools::Wish, http::Response> LockTools::wish_of(const http::Request& request) const {
  auto call = door_.call_of(request);
  if (!call) return Unexpected{std::move(call.error())};
  auto key = server::key_of(request);
  if (!key) return Unexpected{std::move(key.error())};
  auto body = server::body_of(request, {"wait_ms", "lease_ms", "label"});
  if (!body) return Unexpected{std::move(body.error())};
  auto wait = integer_of(*body, wait_member);
  if (!wait) return Unexpected{std::move(wait.error())};
  auto lease = integer_of(*body, lease_member);
  if (!lease) return Unexpected{std::move(lease.error())};
  auto label = text_of(*body, "label", longest_label);
  if (!label) return Unexpected{std::move(label.error())};
  return Wish{
      .name = call->name,
      .lease = {.owner = lock::owner_of_wish(wish_text(*call, key->value)),
                .lease = milliseconds{*lease},
                .label = fmt::format("over HTTP: {}", label->empty() ? call->caller : *label)},
      .wait = milliseconds{*wait}};
}

void LockTools::acquire(http::Request&& request, http::Responder&& respond) {
  auto wish = wish_of(request);
  if (!wish) return respond.send(std::move(wish.error()));
  auto gone = respond.gone();
  spawn(answer(decide(std::move(*wish), std::move(gone)), std::move(respond)));
}

Task<http::Response> LockTools::decide(Wish wish, std::stop_token gone) {
  lock::LeasedLock lock{store_, wish.name};
  // At once, before those that wait: it may be a repeat of what is held already.
  auto asked = lock.try_acquire(wish.lease);
  auto held = co_await asked;
  if (!held && wish.wait > 0ms) {
    auto place = lines_.enter(wish.name);
    if (!place) co_return too_many_wait();
    auto waiting = wait_for(lock, wish, std::move(place), gone);
    held = co_await waiting;
  }
  if (gone.stop_requested()) {
    if (held && held->is_new) {
      auto withdrawn = lock.withdraw(wish.lease.owner, held->token);
      co_await withdrawn;
    }
    co_return http::problem(http::problems::unavailable);
  }
  if (!held) co_return refusal_of(held.error());
  co_return answer_of(201, wish.name, wish.lease.owner, held->token, wish.lease.lease);
}

Task<LockTools::Outcome> LockTools::wait_for(lock::LeasedLock& lock, Wish wish,
                                             std::unique_ptr<WaitingLines::Place> place,
                                             std::stop_token gone) {
  auto& clock = store_.clock();
  const auto until = Clock::add(clock.steady(), wish.wait);
  co_await lock::wait_or_stop(place->turn(), clock, until, gone);
  if (!place->has_turn()) {
    if (gone.stop_requested()) co_return Unexpected{lock::HeldElsewhere{}};
    auto asked = lock.try_acquire(wish.lease);  // for how long, at least
    co_return co_await asked;
  }
  auto acquired = lock.acquire(wish.lease, place->released(), until, gone);
  co_return co_await acquired;
}

Expected<LockTools::OfOwner, http::Response> LockTools::of_owner(
    const http::Request& request) const {
  auto call = door_.call_of(request);
  if (!call) return Unexpected{std::move(call.error())};
  const auto& owner = request.parameter("owner");
  if (!lock::is_owner_of_wish(owner))
    return Unexpected{
        http::problem(problems::bad_parameter, "the owner is none that POST to the lock has told")};
  auto body = server::body_of(request, {"lease_ms"});
  if (!body) return Unexpected{std::move(body.error())};
  auto lease = integer_of(*body, lease_member);
  if (!lease) return Unexpected{std::move(lease.error())};
  return OfOwner{call->name, OwnerId{owner}, milliseconds{*lease}};
}

void LockTools::renew(http::Request&& request, http::Responder&& respond) {
  auto which = of_owner(request);
  if (!which) return respond.send(std::move(which.error()));
  spawn(answer(renewed(std::move(*which)), std::move(respond)));
}

Task<http::Response> LockTools::renewed(OfOwner which) {
  lock::LeasedLock lock{store_, which.name};
  auto renewal = lock.renew(which.owner, which.lease);
  const auto token = co_await renewal;
  if (!token) co_return http::problem(problems::lost);
  co_return answer_of(200, which.name, which.owner, *token, which.lease);
}

void LockTools::release(http::Request&& request, http::Responder&& respond) {
  auto which = of_owner(request);
  if (!which) return respond.send(std::move(which.error()));
  spawn(answer(released(std::move(*which)), std::move(respond)));
}

Task<http::Response> LockTools::released(OfOwner which) {
  lock::LeasedLock lock{store_, which.name};
  auto release = lock.release(which.owner);
  co_await release;
  co_return http::Response{.status = 204, .media = {}, .body = {}, .fields = {}};
}

void LockTools::show(http::Request&& request, http::Responder&& respond) {
  auto call = door_.call_of(request);
  if (!call) return respond.send(std::move(call.error()));
  spawn(answer(shown(std::move(call->name)), std::move(respond)));
}

Task<http::Response> LockTools::shown(std::string name) {
  lock::LeasedLock lock{store_, name};
  auto asked = lock.info();
  const auto info = co_await asked;
  auto json = Json::object(
      {{"lock", name}, {"held", !info.holders.empty()}, {"waiting_here", lines_.waiting(name)}});
  if (info.token) json.add("token", fmt::to_string(info.token->value));
  if (!info.holders.empty()) {
    const auto& holder = info.holders.front();
    auto shown = Json::object({{"owner", holder.owner.text}, {"label", holder.data.label}});
    if (!holder.data.host.empty()) {
      shown.add("host", holder.data.host);
      shown.add("pid", holder.data.pid);
    }
    if (holder.left >= 0ms) shown.add("left_ms", holder.left.count());
    json.add("holder", shown);
  }
  co_return http::json(200, json);
}

void LockTools::add_routes(http::Routes& routes) {
  const auto calls = [this](void (LockTools::*serve)(http::Request&&, http::Responder &&)) {
    return [this, serve](http::Request&& request, http::Responder&& respond) {
      (this->*serve)(std::move(request), std::move(respond));
    };
  };
  routes.add(door_.route(
      {.method = "POST",
       .path = "/v1/locks/{name}",
       .operation = "acquire_lock",
       .summary = "Take a lock, or wait for it; a repeat with the same key gets the same hold",
       .parameters = {{"Idempotency-Key", "header",
                       "Names this wish to hold the lock; the same with each repeat", true}},
       .request = wish_schema,
       .answers = {{201, "The hold", hold_schema}},
       .problems = {&problems::bad_body, &problems::no_idempotency_key, &problems::held},
       .handler = calls(&LockTools::acquire)}));
  routes.add(door_.route({.method = "PUT",
                          .path = "/v1/locks/{name}/{owner}",
                          .operation = "renew_lock",
                          .summary = "Begin the lease of a hold anew",
                          .request = renewal_schema,
                          .answers = {{200, "The hold", hold_schema}},
                          .problems = {&problems::bad_body, &problems::lost},
                          .handler = calls(&LockTools::renew)}));
  routes.add(door_.route({.method = "DELETE",
                          .path = "/v1/locks/{name}/{owner}",
                          .operation = "release_lock",
                          .summary = "End a hold; of one that has ended, too",
                          .answers = {{204, "It does not hold the lock", {}}},
                          .problems = {&problems::bad_body},
                          .handler = calls(&LockTools::release)}));
  routes.add(door_.route({.method = "GET",
                          .path = "/v1/locks/{name}",
                          .operation = "show_lock",
                          .summary = "Who holds a lock",
                          .answers = {{200, "The lock", lock_schema}},
                          .handler = calls(&LockTools::show)}));
}

}  // namespace sluice::server
