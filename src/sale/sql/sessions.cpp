#include "sale/sql/sessions.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
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

/// What stands behind `password=`, as in the text by which a session is opened. A word of a message
/// that happens to be the password stays: hidden, it would say which word that is.
std::string without_password(std::string text) {
  constexpr std::string_view name = "password=";
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at)) {
    at += name.size();
    const bool is_quoted = at < text.size() && text[at] == '\'';
    auto end = at + (is_quoted ? 1 : 0);
    while (end < text.size() && text[end] != (is_quoted ? '\'' : ' '))
      end += is_quoted && text[end] == '\\' ? 2 : 1;
    end = std::min(end + (is_quoted ? 1 : 0), text.size());
    text.replace(at, end - at, "***");
  }
  return text;
}

}  // namespace

SqlSessions::SqlSessions(SqlDialect dialect, std::chrono::milliseconds longest_call)
    : dialect_(std::move(dialect)), longest_call_(longest_call) {
  idle_.reserve(dialect_.most_sessions);
  // Of processes that create a database at the same moment, SQLite lets one do it and fails the
  // others at once: they try again for a while.
  const auto give_up = system_clock().steady() + std::chrono::seconds{5};
  for (;;) {
    if (try_to_open(system_clock().steady() >= give_up)) return;
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
  if (connection && !connection->is_cut) idle_.push_back(std::move(connection));
  --taken_;
  freed_.notify_one();
}

/// False: another process has it at this moment.
bool SqlSessions::try_to_open(bool is_last_time) {
  auto first = std::make_unique<Connection>();
  Connection patient;
  auto* at = first.get();
  errno = 0;  // for classify()
  try {
    begin(*first, false);
    if (!is_up_to_date(first->sql, dialect_)) {
      if (dialect_.socket) begin(*(at = &patient), true);
      migrate(at->sql, dialect_);
    }
    at = first.get();
    limit(*first);
  } catch (const soci::soci_error& failure) {
    const auto why = dialect_.classify(failure, at->sql);
    if (why.trouble != SqlTrouble::undone || is_last_time)
      throw error_of(failure.get_error_message(), why, Effect::none);
    return false;
  }
  was_open_ = true;
  idle_.push_back(std::move(first));
  return true;
}

std::unique_ptr<Connection> SqlSessions::connect() {
  if (was_open_ && dialect_.check_before_reconnect) dialect_.check_before_reconnect();
  auto connection = std::make_unique<Connection>();
  errno = 0;  // for classify()
  try {
    begin(*connection, false);
    limit(*connection);
  } catch (const soci::soci_error& failure) {
    throw error_of(failure.get_error_message(), dialect_.classify(failure, connection->sql),
                   Effect::none);
  }
  return connection;
}

void SqlSessions::begin(Connection& at, bool is_patient) {
  at.links = &links_;
  dialect_.connect(at.sql, is_patient);
  if (dialect_.socket)
    at.line = Descriptor{::fcntl(dialect_.socket(at.sql), F_DUPFD_CLOEXEC, 0), "fcntl"};
  const SessionWatch::Turn turn{is_patient ? -1 : at.line.number(), longest_call_, at.is_cut};
  for (const auto statement : dialect_.on_connect) at.sql << std::string{statement};
}

/// A server ends what it does before the session is given up: then it says why.
void SqlSessions::limit(Connection& at) const {
  const auto within = longest_call_ * 4 / 5;
  const auto seconds = std::max<std::int64_t>(1, within / std::chrono::seconds{1});
  const SessionWatch::Turn turn{at.line.number(), longest_call_, at.is_cut};
  for (const auto statement : dialect_.limits)
    at.sql << fmt::format(fmt::runtime(statement), within.count(), seconds);
}

/// Of one call, as long as no attempt hangs: each may have waited ten seconds for a lock.
std::chrono::nanoseconds SqlSessions::longest_repeating() const {
  return std::min<std::chrono::nanoseconds>(longest_call_ * 3 / 5, std::chrono::seconds{30});
}

void SqlSessions::drop_idle() noexcept {
  const std::lock_guard lock{mutex_};
  idle_.clear();
}

/// By the row of the failure (failures.hpp). A session that stood idle may have ended long ago:
/// what was said in it had no effect; others of its age are in the same trouble.
void SqlSessions::Patience::after(const soci::soci_error& failure, Lease& lease) {
  const auto why = pool_.dialect_.classify(failure, lease->sql);
  const auto& row = row_of(why.trouble);
  const bool is_unknown = lease->committing && !row.is_sure;
  const bool was_cut = lease->is_cut;
  const bool is_of_earlier = row.once_more == OnceMore::elsewhere && !lease->is_new && !was_cut;
  const bool is_undone = row.once_more == OnceMore::as_a_whole;
  lease.drop();
  if (is_of_earlier || was_cut) pool_.drop_idle();
  const auto now = system_clock().steady();
  if ((!is_undone && !is_of_earlier) || is_unknown || ++repeats_ > most_repeats || now >= give_up_)
    throw pool_.error_of(was_cut ? pool_.no_answer() : failure.get_error_message(), why,
                         is_unknown ? Effect::unknown : Effect::none);
  if (is_undone) {
    Backoff pause{shortest_pause * repeats_, longest_pause};
    std::this_thread::sleep_for(pause.next());
  }
}

std::string SqlSessions::no_answer() const {
  return fmt::format("no answer within {} ms: the session is given up", longest_call_.count());
}

DatabaseFailure SqlSessions::error_of(const std::string& message, const SqlFailure& why,
                                      Effect effect) const {
  const auto what =
      fmt::format("{}{}{}", in_one_line(message), why.cause.empty() ? "" : ": ", why.cause);
  return {row_of(why.trouble).code,
          fmt::format("{}: {}", dialect_.description, without_password(what)), effect};
}

}  // namespace sluice::sale
