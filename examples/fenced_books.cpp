/// A holder that sleeps too long, and three gates that refuse what it writes afterwards.
///   fenced_books [URL [DATABASE]]     default: embedded: :memory:
#include <fmt/format.h>

// SOCI converts Boost's types where it was built with them. Here are none, and no need of Boost's
// headers.
#include <soci-config.h>
#undef SOCI_HAVE_BOOST
#undef SOCI_HAVE_BOOST_DATE_TIME
#include <soci.h>
#include <sqlite3/soci-sqlite3.h>

#include <sluice/fencing.hpp>
#include <sluice/mutex.hpp>
#include <sluice/open.hpp>

/// Writes the total of the books. False: a newer hold was here.
static bool write_total(soci::session& database, sluice::FencingToken token, long long total) {
  static const std::string sql = sluice::fenced_sql::update("books", "total = :total", "id = 1");
  const auto number = static_cast<long long>(token.value);
  soci::statement statement =
      (database.prepare << sql, soci::use(total, "total"), soci::use(number, "token"));
  statement.execute(true);
  return statement.get_affected_rows() == 1;
}

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  soci::session database{soci::sqlite3, count > 2 ? words[2] : ":memory:"};
  database << "CREATE TABLE IF NOT EXISTS books (id INTEGER PRIMARY KEY, total BIGINT, "
           << sluice::fenced_sql::column << ")";
  database << "INSERT OR IGNORE INTO books (id, total) VALUES (1, 0)";

  // The first holder is paused; its hold ends, here by force, and another comes.
  sluice::Mutex mutex{*store, "books"};
  auto paused = mutex.acquire().get();
  mutex.force_release().get();
  auto next = mutex.acquire().get();

  // In SQL: the condition is part of the statement.
  const bool right = write_total(database, next.token(), 200);
  const bool wrong = write_total(database, paused.token(), 100);
  fmt::print("SQL: next {}, paused {}\n", right ? "wrote" : "refused", wrong ? "wrote" : "refused");

  // In Redis: the command and its check are one step.
  sluice::Fence fence{*store, "books"};
  const auto set = [&](sluice::FencingToken token, std::string_view total) {
    return fence.run(token, {"{books}:total"}, {"SET", "{books}:total", total}).get().has_value();
  };
  const bool also_right = set(next.token(), "200");
  const bool also_wrong = set(paused.token(), "100");
  fmt::print("Redis: next {}, paused {}\n", also_right ? "wrote" : "refused",
             also_wrong ? "wrote" : "refused");

  // In the memory of the one process that writes to a device.
  sluice::FenceGate gate;
  const bool admitted = gate.admit("books", next.token()).has_value();
  const auto refused = gate.admit("books", paused.token());
  if (!refused)
    fmt::print("memory: the paused holder is older than token {}\n", refused.error().largest.value);

  return right && !wrong && also_right && !also_wrong && admitted && !refused ? 0 : 1;
}
