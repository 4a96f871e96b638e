#include "sale/sql/sessions.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/random.hpp"
#include "sale/sql/schema.hpp"
#include "sluice/clock.hpp"

namespace sluice::sale {
namespace {

constexpr std::chrono::milliseconds shortest_pause{5};
constexpr std::chrono::milliseconds longest_pause{200};
constexpr int most_repeats = 12;
constexpr std::chrono::seconds longest_repeating{30};  // each may have waited ten for a lock

/// libpq's messages have several lines.
std::string in_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_blank = c == '\n' || c == '\t' || c == ' ';
    if (!is_blank || (!line.empty() && line.back() != ' ')) line += is_blank ? ' ' : c;
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

std::string without(std::string text, const std::string& secret) {
  if (secret.empty()) return text;
  for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at + 3))
    text.replace(at, secret.size(), "***");
  return text;
}

}  // namespace

SqlSessions::SqlSessions(SqlDialect dialect) : dialect_(std::move(dialect)) {
  idle_.reserve(dialect_.most_sessions);
  // Of processes that create a database at the same moment, SQLite lets one do it and fails the
  // others at once: they try again for a while.
  const auto give_up = system_clock().steady() + std::chrono::seconds{2};
  for (;;) {
    auto connection = std::make_unique<Connection>();
    connection->links = &links_;
    errno = 0;  // for classify()
    try {
      dialect_.connect(connection->sql);
      for (const auto statement : dialect_.on_connect) connection->sql << std::string{statement};
      migrate(connection->sql, dialect_);
      was_open_ = true;
      idle_.push_back(std::move(connection));
      return;
    } catch (const soci::soci_error& failure) {
      const auto why = dialect_.classify(failure, connection->sql);
      if (!why.busy || system_clock().steady() >= give_up)
        throw error_of(failure.get_error_message(), why, Effect::none);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
}

std::unique_ptr<Connection> SqlSessions::take() {
  std::unique_lock lock{mutex_};
  freed_.wait(lock, [&] { return taken_ < dialect_.most_sessions; });
  ++taken_;
  if (idle_.empty()) {
    lock.unlock();
    try {
      return connect();
    } catch (...) {
      give_back(nullptr);
      throw;
    }
  }
  auto connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

void SqlSessions::give_back(std::unique_ptr<Connection> connection) noexcept {
  const std::lock_guard lock{mutex_};
  if (connection) idle_.push_back(std::move(connection));
  --taken_;
  freed_.notify_one();
}

std::unique_ptr<Connection> SqlSessions::connect() {
  if (was_open_ && dialect_.check_before_reconnect) dialect_.check_before_reconnect();
  auto connection = std::make_unique<Connection>();
  connection->links = &links_;
  errno = 0;  // for classify()
  try {
    dialect_.connect(connection->sql);
    for (const auto statement : dialect_.on_connect) connection->sql << std::string{statement};
  } catch (const soci::soci_error& failure) {
    throw error_of(failure.get_error_message(), dialect_.classify(failure, connection->sql),
                   Effect::none);
  }
  return connection;
}

void SqlSessions::drop_idle() noexcept {
  const std::lock_guard lock{mutex_};
  idle_.clear();
}

void SqlSessions::Patience::after(const soci::soci_error& failure, Lease& lease) {
  const auto why = pool_.dialect_.classify(failure, lease->sql);
  const bool was_committing = lease->committing;
  // A session that stood idle may have ended long ago: what was said in it had no effect.
  const bool was_stale = why.lost && !lease->is_new && !was_committing;
  lease.drop();
  if (was_stale) pool_.drop_idle();
  const auto now = system_clock().steady();
  if (repeats_ == 0) give_up_ = now + longest_repeating;
  if ((!why.again && !was_stale) || ++repeats_ > most_repeats || now >= give_up_)
    throw pool_.error_of(failure.get_error_message(), why,
                         was_committing && !why.again ? Effect::unknown : Effect::none);
  if (why.again) {
    Backoff pause{shortest_pause * repeats_, longest_pause};
    std::this_thread::sleep_for(pause.next());
  }
}

Error SqlSessions::error_of(const std::string& message, const SqlFailure& why,
                            Effect effect) const {
  const auto what =
      fmt::format("{}{}{}", in_one_line(message), why.cause.empty() ? "" : ": ", why.cause);
  return {why.code, fmt::format("{}: {}", dialect_.description, without(what, dialect_.secret)),
          effect};
}

}  // namespace sluice::sale
