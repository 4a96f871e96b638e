#include "proxy/flow/detours.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hash_slot.hpp"
#include "base/random.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/script_cache.hpp"
#include "resp/server_words.hpp"
#include "sluice/error.hpp"
#include "topology/endpoint.hpp"

namespace sluice::proxy::flow {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds longest_way = 30s;  // without a timeout
constexpr std::chrono::microseconds shortest = 2ms, longest = 50ms;

/// "MOVED 1 a:1" of "-MOVED 1 a:1\r\n".
std::string_view text_of(std::string_view error) noexcept {
  return error.substr(1, error.find('\r') - 1);
}

bool is_redirection(std::string_view text) noexcept {
  return text.starts_with("MOVED ") || text.starts_with("ASK ");
}

topology::Endpoint node_of(const Server& server) {
  const auto& endpoint = server.settings().endpoint;
  return {endpoint.host, endpoint.port};
}

/// Half of it by chance, so that not all come again at once.
std::chrono::microseconds pause_of(std::uint8_t pauses) {
  const auto most = std::min(longest, shortest * (1 << std::min<int>(pauses, 5)));
  const auto half = most.count() / 2;
  return std::chrono::microseconds{half} +
         std::chrono::microseconds{random_below(static_cast<std::uint64_t>(half) + 1)};
}

}  // namespace

std::chrono::milliseconds Detours::patience(const Pool& pool) {
  return pool.settings().timeout.value_or(longest_way);
}

std::string Detours::told(std::string_view error) {
  const auto text = text_of(error);
  if (!is_redirection(text)) return std::string{error};
  const auto rest = text.substr(text.find(' ') + 1);
  return fmt::format(
      "-TRYAGAIN nothing was done: the slot {} moves from node to node of the cluster, and the "
      "request did not find it\r\n",
      rest.substr(0, rest.find(' ')));
}

Detours::Course Detours::course(const Server& by, std::string_view error) {
  auto& servers = pool_.servers();
  const auto from = node_of(by);
  try {
    const auto redirection = topology::parse_redirection(text_of(error), from);
    if (!redirection || !redirection->to || !pool_.settings().is_of_cluster()) {
      if (!text_of(error).starts_with("TRYAGAIN ")) servers.doubt(by);
      return {};
    }
    if (redirection->is_ask) return {servers.node_at(*redirection->to), true};
    servers.slot_moved(redirection->slot, from, *redirection->to);
    Server* const home = servers.home_of_slot(redirection->slot);
    if (home && home != &by) return {home};
    return {servers.node_at(*redirection->to)};
  } catch (const Error&) {  // a redirection that is none
    servers.doubt(by);
    return {};
  }
}

bool Detours::takes(std::string_view error) const noexcept {
  return topology::is_refusal(error.substr(1)) &&
         (pool_.settings().is_of_cluster() || error.starts_with("-READONLY "));
}

bool Detours::is_script(const Request& request) const {
  return resp::runs_script(resp::find_command(pool_.protocol().command_name(request.command)));
}

bool Detours::is_refusal_of(const Request& script, std::string_view error, const Server& by) const {
  const auto text = text_of(error);
  if (!topology::is_refusal_of_script(text, std::nullopt)) return false;
  if (!is_redirection(text)) return true;
  try {
    const auto slot = topology::parse_redirection(text, node_of(by))->slot;
    return !script.body || row_of(0, key_of(script)).slot == slot;
  } catch (const Error&) {
    return false;
  }
}

/// A user may write a script that says MOVED: the map of all is not his, nor are the passwords with
/// which nodes are connected to.
Detours::Course Detours::course_of_script(const Server& by, std::string_view error) {
  auto& servers = pool_.servers();
  const auto redirection = topology::parse_redirection(text_of(error), node_of(by));
  if (!text_of(error).starts_with("TRYAGAIN ")) servers.doubt(by);
  if (!redirection || !redirection->to || !servers.knows_node(*redirection->to)) return {};
  return {servers.node_at(*redirection->to), redirection->is_ask};
}

bool Detours::refused(Request& request, const Upstream& from, std::string_view error) {
  const bool is_of_script = is_script(request);
  if (is_of_script && !is_refusal_of(request, error, from.server())) return false;
  pool_.counters().detours.add();
  const auto find_course = [&] {
    return is_of_script ? course_of_script(from.server(), error) : course(from.server(), error);
  };
  if (!request.body) {
    static_cast<void>(find_course());
    request.receiver->replied(
        request, fmt::format("-TRYAGAIN nothing was done: its server has changed, and a request "
                             "of more than {} bytes is not kept: send it again\r\n",
                             most_kept));
    return true;
  }
  const auto client = request.receiver->detoured();
  const auto next = find_course();
  const bool goes_at_once =
      next.to && next.to != &from.server() && ++request.hops <= most_hops &&
      (waiting_.empty() || !waiting_.contains(row_of(client, key_of(request))));
  if (goes_at_once && pool_.loop().now() < deadline(request))
    go(request, from.lane(), next);
  else
    wait(client, request, from, error);
  return true;
}

bool Detours::unsent(Request& request, const Upstream& from, Failure failure) {
  if (ended_ || !request.body || pool_.loop().now() >= deadline(request)) return false;
  pool_.counters().detours.add();
  const auto client = request.receiver->detoured();
  wait(client, request, from, pool_.protocol().reply_for(failure));
  return true;
}

void Detours::go(Request& request, const Lane& lane, Course course) {
  Upstream& upstream = course.to->upstream(lane);
  if (pool_.protocol().command_name(request.command).starts_with("evalsha")) {
    const auto reader = pool_.protocol().request_reader();
    if (reader->read(*request.body) == RequestReader::State::complete)
      if (const auto load = script_load_for(pool_, upstream, reader->words()[1]); !load.empty())
        upstream.send_aside(load);
  }
  if (course.asks) upstream.send_aside(asking);
  upstream.send(request, *request.body);
}

void Detours::wait(std::uint64_t client, Request& request, const Upstream& from,
                   std::string_view error) {
  const auto pauses = request.pauses;
  if (pauses < UINT8_MAX) ++request.pauses;
  request.hops = 0;
  auto key = key_of(request);
  const auto at = row_of(client, key);
  auto& row = waiting_[at];
  row.requests.push_back({&request, from.lane(), std::move(key), std::string{error}});
  if (row.requests.size() > 1) return;
  const auto left = deadline(request) - pool_.loop().now();
  const auto pause = std::min<std::chrono::nanoseconds>(pause_of(pauses), left);
  row.timer = pool_.loop().after(pause, [this, at] { go_on(at); });
}

/// What is refused again comes behind what waits in the same row by then.
void Detours::go_on(RowKey at) {
  const auto row = waiting_.extract(at);
  for (auto& waiting : row.mapped().requests) {
    Request& request = *waiting.request;
    if (!request.receiver) {
      pool_.requests().drop(request);
    } else if (pool_.loop().now() >= deadline(request)) {
      request.receiver->replied(request, told(waiting.error));
    } else if (Server* const home =
                   pool_.servers().home_of(waiting.key.empty() ? any_key : waiting.key);
               home && !waiting_.contains(at)) {
      go(request, waiting.lane, {home});
    } else {  // nobody has its slot, or one before it waits again
      auto& behind = waiting_[at];
      behind.requests.push_back(std::move(waiting));
      if (behind.requests.size() == 1)
        behind.timer = pool_.loop().after(longest, [this, at] { go_on(at); });
    }
  }
}

std::string Detours::key_of(const Request& request) const {
  const auto reader = pool_.protocol().request_reader();
  if (reader->read(*request.body) != RequestReader::State::complete) return {};
  const auto words = reader->words();
  const auto plan = pool_.protocol().plan(words);
  return plan.keys.empty() ? std::string{} : std::string{words[plan.keys.front()]};
}

Detours::RowKey Detours::row_of(std::uint64_t client, std::string_view key) const {
  const bool has_slot = pool_.settings().is_of_cluster() && !key.empty();
  return {client, has_slot ? hash_slot(key) : hash_slots};
}

SteadyTime Detours::deadline(const Request& request) const {
  return Clock::add(request.since, patience(pool_));
}

void Detours::end() {
  ended_ = true;
  for (auto& [at, row] : std::exchange(waiting_, {})) {
    pool_.loop().cancel(row.timer);
    for (const auto& waiting : row.requests) {
      Request& request = *waiting.request;
      if (request.receiver)
        request.receiver->failed(request, Failure::closed);
      else
        pool_.requests().drop(request);
    }
  }
}

}  // namespace sluice::proxy::flow
