#include "proxy/flow/mirror.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <system_error>
#include <utility>

#include "net/socket.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/transaction.hpp"
#include "resp/writer.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::flow {
namespace {

constexpr std::string_view multi_bytes = "*1\r\n$5\r\nMULTI\r\n";
constexpr std::string_view exec_bytes = "*1\r\n$4\r\nEXEC\r\n";

std::uint64_t hash_of(std::string_view bytes) noexcept {
  return std::hash<std::string_view>{}(bytes);
}

bool is_error(std::string_view reply) noexcept {
  return reply.starts_with('-') || reply.starts_with("SERVER_ERROR ");
}

}  // namespace

Mirror::Mirror(Pool& pool, std::uint64_t first)
    : loop::Stream(pool.loop()), pool_(pool), first_(first), next_reply_(first) {}

Mirror::~Mirror() { end(); }

/// The clients need the worker's memory: a mirror has a quarter of it at most.
std::size_t Mirror::limit() const noexcept {
  const auto memory = loop_.blocks().limit();
  const auto queue = pool_.settings().mirror.queue;
  return memory == 0 ? queue : std::min(queue, memory / 4);
}

bool Mirror::is_sampled(std::string_view key) const noexcept {
  const auto one_in = pool_.settings().mirror.sample;
  return one_in == 1 || key.empty() || hash_of(key) % one_in == 0;
}

std::uint64_t Mirror::send(const ConnectionMode& mode, std::string_view bytes, const Plan& plan,
                           std::string_view key, bool alike) {
  if (!is_ready(bytes.size(), 1)) return 0;
  bring_to(mode);
  pool_.counters().mirror_requests.add();
  write(bytes);
  if (!plan.expects_reply) return 0;
  const auto number = next();
  return expect(key, plan.command, bytes.size(), alike).is_compared ? number : 0;
}

void Mirror::send(const ConnectionMode& mode, const MirroredBody& body, std::uint16_t exec,
                  std::string_view reply) {
  if (body.too_large || !is_ready(body.bytes.size(), body.requests)) {
    if (body.too_large) drop(body.requests);
    return;
  }
  bring_to(mode);
  say(multi_bytes, 1);
  say(body.bytes, body.requests);
  pool_.counters().mirror_requests.add();
  write(exec_bytes);
  auto& entry = expect(body.key, exec, exec_bytes.size(), body.alike);
  if (entry.is_compared) entry.first = outcome_of(reply);
}

/// Whether there is a connection with room for so much more; else that is dropped.
bool Mirror::is_ready(std::size_t bytes, std::size_t requests) {
  const auto waiting = std::max(under_way_, unsent()) + entries_.size() * sizeof(Entry);
  const bool fits = waiting + bytes <= limit() && loop_.blocks().has_room();
  if (fits && (!closed() || connect())) return true;
  drop(requests);
  return false;
}

void Mirror::drop(std::size_t requests) {
  pool_.counters().mirror_dropped.add(static_cast<std::int64_t>(requests));
  if (drops_told_.is_due(loop_.now()))
    log(LogLevel::warning,
        fmt::format("pool '{}': the mirror '{}' {}; requests are not mirrored, {} so far",
                    pool_.settings().name, pool_.settings().mirror.pool,
                    closed() ? "takes no connection" : "is too slow for its queue",
                    pool_.counters().mirror_dropped.get()));
}

bool Mirror::connect() {
  Pool* const second = pool_.context().find_pool(pool_.settings().mirror.pool);
  auto& descriptors = pool_.context().limits.descriptors;
  if (!second || !descriptors.enter()) return false;
  has_descriptor_ = true;
  int ends[2]{-1, -1};
  const int made = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
  net::Socket near{ends[0]}, far{ends[1]};
  try {
    if (made == 0 && second->clients().adopt(std::move(far))) {
      attach(std::make_unique<net::Socket>(std::move(near)));
      reader_ = second->protocol().reply_reader();
      mode_ = {.resp = 2, .db = second->settings().redis_db};
      return true;
    }
  } catch (const std::system_error&) {  // epoll takes no more
  }
  end();
  return false;
}

/// The database that is each pool's own is the same to both.
void Mirror::bring_to(const ConnectionMode& mode) {
  if (!pool_.settings().redis) return;
  const Pool* const second = pool_.context().find_pool(pool_.settings().mirror.pool);
  const int db =
      second && mode.db == pool_.settings().redis_db ? second->settings().redis_db : mode.db;
  std::string bytes;
  std::uint32_t replies = 0;
  if (mode_.resp != mode.resp) {
    resp::append_command(bytes, {"HELLO", std::to_string(mode.resp)});
    ++replies;
  }
  if (mode_.db != db) {
    resp::append_command(bytes, {"SELECT", std::to_string(db)});
    ++replies;
  }
  if (replies != 0) say(bytes, replies);
  mode_ = {.resp = mode.resp, .db = db};
}

/// Something of ours, or what a transaction queues: nobody compares the replies.
void Mirror::say(std::string_view bytes, std::uint32_t replies) {
  write(bytes);
  for (std::uint32_t i = 0; i < replies; ++i) {
    auto& entry = expect(i == 0 ? bytes.size() : 0);
    entry.is_ours = true;
    entry.first.is_here = true;
  }
}

Mirror::Entry& Mirror::expect(std::size_t bytes) {
  auto& entry = entries_.emplace_back();
  entry.bytes = static_cast<std::uint32_t>(bytes);
  under_way_ += bytes;
  return entry;
}

Mirror::Entry& Mirror::expect(std::string_view key, std::uint16_t command, std::size_t bytes,
                              bool alike) {
  auto& entry = expect(bytes);
  entry.command = command;
  entry.key_size = static_cast<std::uint8_t>(std::min(key.size(), entry.key.size()));
  std::ranges::copy(key.substr(0, entry.key_size), entry.key.begin());
  entry.is_compared = alike && pool_.settings().mirror.compare;
  entry.first.is_here = !entry.is_compared;
  return entry;
}

Mirror::Outcome Mirror::outcome_of(std::string_view reply) const {
  return {.hash = hash_of(reply),
          .is_here = true,
          .is_failure = is_error(reply) && pool_.protocol().is_failure(reply)};
}

void Mirror::replied(std::uint64_t number, std::string_view reply) {
  if (number < first_ || number >= next()) return;  // it was lost with its connection
  auto& entry = entries_[number - first_];
  entry.first = outcome_of(reply);
  settle(entry);
}

void Mirror::given_up(std::uint64_t number) {
  if (number < first_ || number >= next()) return;
  auto& entry = entries_[number - first_];
  entry.is_compared = false;
  entry.first.is_here = true;
  settle(entry);
}

std::size_t Mirror::consume(std::string_view bytes) {
  std::size_t used = 0;
  while (used < bytes.size()) {
    const auto rest = bytes.substr(used);
    const auto state = reader_->read(rest);
    if (state == ReplyReader::State::incomplete) break;
    if (state == ReplyReader::State::bad || next_reply_ == next()) {
      ended(EPROTO);
      return 0;
    }
    const auto reply = rest.substr(0, reader_->size());
    used += reply.size();
    auto& entry = entries_[next_reply_++ - first_];
    under_way_ -= entry.bytes;
    entry.second = outcome_of(reply);
    if (entry.is_ours) {
      misses_part_ |=
          entry.second.is_failure;  // what comes behind it is done wrongly, or not at all
    } else {
      entry.second.is_failure |= std::exchange(misses_part_, false) || is_lost_transaction(reply);
      if (entry.second.is_failure) pool_.counters().mirror_failures.add();
    }
    settle(entry);
  }
  return used;
}

/// Compares when both outcomes are here, and forgets what needs no more.
void Mirror::settle(Entry& entry) {
  const auto& [first, second] = std::pair{entry.first, entry.second};
  if (first.is_here && second.is_here && std::exchange(entry.is_compared, false) &&
      !first.is_failure && !second.is_failure) {
    auto& counters = pool_.counters();
    counters.mirror_compared.add();
    if (first.hash != second.hash) {
      counters.mirror_mismatches.add();
      if (differences_told_.is_due(loop_.now()))
        log(LogLevel::warning,
            fmt::format(
                "pool '{}': the mirror '{}' answers {} \"{}\" otherwise; so it did {} times "
                "so far",
                pool_.settings().name, pool_.settings().mirror.pool,
                pool_.protocol().command_name(entry.command),
                watch::excerpt({entry.key.data(), entry.key_size}),
                counters.mirror_mismatches.get()));
    }
  }
  while (!entries_.empty() && entries_.front().first.is_here && entries_.front().second.is_here) {
    entries_.pop_front();
    ++first_;
  }
}

void Mirror::ended(int error) {
  const auto lost = static_cast<std::size_t>(std::ranges::count_if(
      entries_, [](const Entry& entry) { return !entry.second.is_here && !entry.is_ours; }));
  pool_.counters().mirror_failures.add(static_cast<std::int64_t>(lost));
  if (lost != 0 && losses_told_.is_due(loop_.now()))
    log(LogLevel::warning,
        fmt::format("pool '{}': the connection to the mirror '{}' is lost with {} requests under "
                    "way: {}",
                    pool_.settings().name, pool_.settings().mirror.pool, lost,
                    error == 0 ? "it closed" : std::generic_category().message(error)));
  end();
}

void Mirror::end() noexcept {
  if (!closed()) detach();
  if (std::exchange(has_descriptor_, false)) pool_.context().limits.descriptors.leave();
  first_ = next_reply_ = next();
  entries_.clear();
  under_way_ = 0;
  misses_part_ = false;
}

}  // namespace sluice::proxy::flow
