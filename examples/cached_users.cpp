/// A cache in front of a database: a thousand callers, one query.
///   cached_users [URL [DATABASE]]     default: embedded: :memory:
#include <fmt/format.h>
#include <sqlite3.h>

#include <atomic>
#include <memory>
#include <vector>

#include "sluice/cache_guard.hpp"
#include "sluice/open.hpp"
#include "sluice/when_all.hpp"

using namespace std::chrono_literals;

/// The table that the cache stands in front of.
class Users {
 public:
  explicit Users(const char* path) {
    sqlite3_open(path, &database_);
    run("CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY, name TEXT)");
    run("INSERT OR REPLACE INTO users VALUES (42, 'Ada')");
  }
  ~Users() { sqlite3_close(database_); }
  Users(const Users&) = delete;
  Users& operator=(const Users&) = delete;

  std::optional<std::string> name_of(const std::string& id) {
    ++queries;
    sqlite3_stmt* query = nullptr;
    sqlite3_prepare_v2(database_, "SELECT name FROM users WHERE id = ?", -1, &query, nullptr);
    sqlite3_bind_text(query, 1, id.c_str(), -1, SQLITE_TRANSIENT);
    std::optional<std::string> name;
    if (sqlite3_step(query) == SQLITE_ROW)
      name = reinterpret_cast<const char*>(sqlite3_column_text(query, 0));
    sqlite3_finalize(query);
    return name;
  }
  void run(const char* sql) { sqlite3_exec(database_, sql, nullptr, nullptr, nullptr); }

  std::atomic<int> queries{0};

 private:
  sqlite3* database_ = nullptr;
};

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  Users users{count > 2 ? words[2] : ":memory:"};
  sluice::CacheGuard<std::string> names{
      *store, "user-name", {.ttl = 10min, .is_valid = [](std::string_view id) {
                              return !id.empty() && id.front() != '-' && id != "0";
                            }}};
  const auto load = [&users](const std::string& id) { return users.name_of(id); };

  // A thousand callers of a name that is not cached: one of them asks the database.
  std::vector<sluice::Task<std::optional<std::string>>> calls;
  for (int i = 0; i < 1000; ++i) calls.push_back(names.get("42", load));
  for (const auto& name : sluice::when_all(std::move(calls)).get())
    if (name != "Ada") return 1;
  fmt::print("1000 callers, {} query\n", users.queries.load());

  // What does not exist is asked for once, and what cannot exist, never.
  for (int i = 0; i < 100; ++i) names.get("43", load).get();
  for (int i = 0; i < 100; ++i) names.get("-1", load).get();
  fmt::print("200 callers of nobody, {} query\n", users.queries.load() - 1);

  // A change: first the database, then the cache.
  users.run("UPDATE users SET name = 'Grace' WHERE id = 42");
  names.invalidate("42").get();
  const auto name = names.get("42", load).get();
  fmt::print("now {}\n", name.value_or("nobody"));
  return name == "Grace" && users.queries == 3 ? 0 : 1;
}
