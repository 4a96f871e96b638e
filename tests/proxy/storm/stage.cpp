#include "proxy/storm/stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "support/plain_client.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Counts = std::unordered_map<std::string, std::size_t>;

/// How long a client stays whose request waits on its server, or who listens.
constexpr auto stay = 20ms;

PoolLines started(Tongue& tongue, const std::vector<std::string>& settings) {
  tongue.start_servers();
  auto pool = tongue.pool();
  pool.lines.insert(pool.lines.begin(), settings.begin(), settings.end());
  return pool;
}

bool take(Counts& counts, const std::string& text) {
  const auto found = counts.find(text);
  if (found == counts.end()) return false;
  if (--found->second == 0) counts.erase(found);
  return true;
}

}  // namespace

Stage::Stage(Tongue& tongue, StageOptions options)
    : tongue_(tongue),
      options_(std::move(options)),
      proxy_(started(tongue, options_.settings), options_.as_program, options_.program),
      clients_(options_.clients) {
  prepare();
  for (std::size_t number = 0; number < options_.canaries; ++number)
    canaries_.emplace_back(tongue_, proxy_.port(), number, options_.canary);
}

void Stage::prepare() {
  PlainClient client{proxy_.port()};
  for (const auto& [bytes, answer, misses] : tongue_.fixture(options_.canaries, options_.clients)) {
    client.send(bytes);
    std::string reply;
    while (reply.size() < answer.size()) {
      const auto more = client.read_raw(answer.size() - reply.size());
      if (more.empty()) throw std::runtime_error{"the proxy closed: " + printable(bytes)};
      reply += more;
    }
    if (reply != answer)
      throw std::runtime_error{printable(bytes) + " was answered with " + printable(reply)};
  }
  static_cast<void>(tongue_.executed());
}

void Stage::begin(std::size_t number, const Batch& batch) {
  auto& client = clients_[number];
  if (batch.requests.empty()) return;
  if (batch.connects || !client.wire || client.wire->ended()) try {
      client.wire = std::make_unique<Wire>(proxy_.port());
    } catch (const std::system_error&) {
      if (!options_.canary.forgives) throw;
      return;
    }
  client.bytes = batch.bytes();
  client.understanding = tongue_.understand(client.bytes);
  client.sentinel = tongue_.sentinel(number, ++token_);
  for (const auto& deed : client.understanding.meant) ++meant_[deed];
  client.bytes += client.understanding.completion;
  if (!client.understanding.ends) client.bytes += client.sentinel.bytes;
  client.writes = batch.writes;
  client.vanishes = batch.vanishes;
  client.phase = Phase::sends;
}

void Stage::send_more(Client& client) {
  if (!client.wire->sent_all()) return;
  auto size = client.bytes.size();
  if (!client.writes.empty()) {
    size = std::min(size, client.writes.front());
    client.writes.erase(client.writes.begin());
  }
  client.wire->queue(std::string_view{client.bytes}.substr(0, size));
  client.bytes.erase(0, size);
  if (!client.bytes.empty()) return;
  client.phase = Phase::waits;
  client.sent = Clock::now();
}

void Stage::go_on(Client& client) {
  if (client.phase == Phase::done) return;
  if (client.wire->ended()) {
    client.phase = Phase::done;
  } else if (client.phase == Phase::sends) {
    send_more(client);
  } else if (!client.vanishes && client.wire->input().ends_with(client.sentinel.answer)) {
    client.phase = Phase::done;
  } else if (client.vanishes || client.understanding.may_wait || options_.canary.forgives) {
    const bool stays = !client.vanishes && Clock::now() - client.sent < stay;
    if (!client.wire->sent_all() || stays) return;
    client.wire->vanish();
    client.phase = Phase::done;
  }
}

void Stage::turn(int milliseconds) {
  std::vector<Wire*> wires;
  for (auto& canary : canaries_) wires.push_back(canary.wire());
  for (auto& client : clients_) wires.push_back(client.wire.get());
  Wire::turn(wires, milliseconds);
}

std::optional<Finding> Stage::look_at_all() {
  for (auto& canary : canaries_)
    if (auto wrong = canary.look()) return Finding{Finding::Kind::canary, std::move(*wrong)};
  return std::nullopt;
}

std::optional<Finding> Stage::wait_for_clients() {
  const auto deadline = Clock::now() + options_.canary.patience;
  for (;;) {
    for (auto& client : clients_) go_on(client);
    if (auto found = look_at_all()) return found;
    const auto waits = std::ranges::find_if(
        clients_, [](const Client& client) { return client.phase != Phase::done; });
    if (waits == clients_.end()) return std::nullopt;
    if (Clock::now() > deadline)
      return Finding{Finding::Kind::sentinel,
                     fmt::format("client {} waits for {} and has {}", waits - clients_.begin(),
                                 waits->understanding.ends ? "the end of its connection"
                                                           : printable(waits->sentinel.answer),
                                 printable(waits->wire->input()))};
    turn(1);
  }
}

/// Each has been answered on every connection that hostile requests could have brought out of step.
std::optional<Finding> Stage::wait_for_canaries() {
  constexpr std::uint64_t more = 6;
  std::vector<std::uint64_t> goals;
  for (const auto& canary : canaries_) goals.push_back(canary.replies() + canary.losses() + more);
  for (;;) {
    if (auto found = look_at_all()) return found;
    bool all = true;
    for (std::size_t i = 0; i < goals.size(); ++i)
      all = all && canaries_[i].replies() + canaries_[i].losses() >= goals[i];
    if (all) return std::nullopt;
    turn(1);
  }
}

std::optional<Finding> Stage::check_replies(std::size_t number) {
  auto& client = clients_[number];
  if (!client.wire || client.bytes.empty() == false) return std::nullopt;
  const auto& [completion, least, most, ends, may_wait, is_counted, meant] = client.understanding;
  auto& input = client.wire->input();
  const auto finding = [&](Finding::Kind kind, std::string_view what) {
    return Finding{kind, fmt::format("client {}: {}: {}", number, what, printable(input))};
  };
  if (client.vanishes || may_wait) {
    client.wire.reset();
    return std::nullopt;
  }
  if (!ends && client.wire->ended())
    return finding(Finding::Kind::sentinel, "the connection was closed");
  auto rest = std::string_view{input};
  if (!ends) {
    if (!rest.ends_with(client.sentinel.answer))
      return finding(Finding::Kind::sentinel, "more came behind its last answer");
    rest.remove_suffix(client.sentinel.answer.size());
  }
  const auto reader = tongue_.reply_reader();
  std::size_t replies = 0;
  for (; !rest.empty(); rest.remove_prefix(reader->size())) {
    const auto state = reader->read(rest);
    if (state == proxy::ReplyReader::State::bad)
      return finding(Finding::Kind::count, "this is no reply");
    if (state != proxy::ReplyReader::State::complete) break;
    if (!reader->is_push()) ++replies;
  }
  // A connection that is reset takes replies with it.
  const bool too_few = replies < least || !rest.empty();
  if (is_counted && (replies > most || (too_few && !ends)))
    return finding(Finding::Kind::count,
                   fmt::format("{} replies where {} to {} are due", replies, least, most));
  input.clear();
  if (ends) client.wire.reset();
  return std::nullopt;
}

std::optional<Finding> Stage::check_executed() {
  for (const auto& deed : tongue_.executed())
    if (!take(meant_, deed))
      return Finding{Finding::Kind::executed,
                     "a server executed what nobody meant: " + printable(deed)};
  return std::nullopt;
}

std::optional<Finding> Stage::idle(std::chrono::milliseconds time) {
  for (const auto until = Clock::now() + time; Clock::now() < until; turn(1))
    if (auto found = look_at_all()) return found;
  return std::nullopt;
}

LatencyCounts Stage::latencies() const {
  LatencyCounts sum;
  for (const auto& canary : canaries_) sum += canary.latencies();
  return sum;
}

std::uint64_t Stage::replies() const {
  std::uint64_t sum = 0;
  for (const auto& canary : canaries_) sum += canary.replies();
  return sum;
}

std::uint64_t Stage::losses() const {
  std::uint64_t sum = 0;
  for (const auto& canary : canaries_) sum += canary.losses();
  return sum;
}

std::optional<Finding> Stage::play(const Round& round) {
  for (std::size_t number = 0; number < round.size(); ++number) begin(number, round[number]);
  if (auto found = wait_for_clients()) return found;
  if (auto found = wait_for_canaries()) return found;
  if (options_.canary.forgives) {
    for (auto& client : clients_)
      if (client.wire) client.wire->input().clear();
    return std::nullopt;
  }
  for (std::size_t number = 0; number < round.size(); ++number)
    if (!round[number].requests.empty())
      if (auto found = check_replies(number)) return found;
  return check_executed();
}

std::optional<Finding> Stage::inspect() {
  const auto names = tongue_.forbidden();
  if (names.empty()) return std::nullopt;
  return Finding{Finding::Kind::forbidden, "a server executed " + names.front()};
}

}  // namespace sluice::test
